// SPDX-License-Identifier: GPL-3.0-or-later
// The packages as cpack makes them of this build: contents, dependencies, validators, start.
#include "core/store/study.h"

#include <QDir>
#include <QTemporaryDir>

#include "tests/support/package_tree.h"
#include "tests/support/study_fixture.h"

using namespace mla::test;

namespace
{

// Skips when the tool is missing; validators are no part of a build machine.
#define MLA_NEED_TOOL(name)                                                                        \
    if (!hasTool(name))                                                                            \
    QSKIP(name " is not installed (installer/setup.sh --tests)")

QByteArray version()
{
    static const QByteArray told = runCli({"--version"}).out.trimmed().split(' ').value(1);
    return told;
}

/// Bytes of a file made by gzip.
QByteArray unpacked(const QString& path)
{
    return runTool("gzip", {"-dc", path}).out;
}

} // namespace

class TestPackaging : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase();
    void theDebNeedsLibrariesButNotLibtorch();
    void theDebHoldsWhatItShould_data();
    void theDebHoldsWhatItShould();
    void theDebHoldsNothingElse();
    void programsSearchNoBuildFolder();
    void launchersStartThePrograms_data();
    void launchersStartThePrograms();
    void theArchiveRunsWhereverItIs();
    void manualsNameEveryCommandAndOption();
    void versionsAgree();
    void studiesHaveATypeOfTheirOwn_data();
    void studiesHaveATypeOfTheirOwn();
    void theDesktopFileIsValid();
    void theMetainfoIsValid();
    void lintianFindsNoError();

private:
    QTemporaryDir m_dir;
    QString m_deb, m_root; ///< the .deb, and the folder it is unpacked in
    QString path(const QString& name) const { return m_dir.filePath(name); }
    /// Packs this build; the path of what has come out.
    QString packed(const QString& generator, const QString& pattern) const
    {
        const CliResult result =
            runTool("cpack", {"--config", MLA_BIN "/../CPackConfig.cmake", "-G", generator, "-B",
                              m_dir.path(), "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip"});
        if (result.exitCode != 0)
            qWarning() << result.text();
        const QStringList files = QDir(m_dir.path()).entryList({pattern}, QDir::Files);
        return files.size() == 1 ? path(files.first()) : QString();
    }
};

void TestPackaging::initTestCase()
{
    for (const char* tool : {"cpack", "dpkg-deb", "dpkg-shlibdeps", "gzip"})
        if (!hasTool(tool))
            QSKIP(qPrintable(QStringLiteral("%1 is not installed").arg(tool)));
    if (!QFile::exists(MLA_BIN "/mla-workbench"))
        QSKIP("mla-workbench is not built");
    QVERIFY(m_dir.isValid());
    m_deb = packed("DEB", "mla-draft-workbench_*.deb");
    QVERIFY(!m_deb.isEmpty());
    m_root = path("root");
    QCOMPARE(runTool("dpkg-deb", {"-x", m_deb, m_root}).exitCode, 0);
}

void TestPackaging::theDebNeedsLibrariesButNotLibtorch()
{
    const QByteArray needs = runTool("dpkg-deb", {"-f", m_deb, "Depends"}).out;
    for (const char* package : {"libc6", "libstdc++6", "libhdf5-", "libicu", "libpcre2-8-0",
                                "libsentencepiece0", "libqt6widgets6", "libqcustomplot"})
        QVERIFY2(needs.contains(package), needs.constData());
    QVERIFY2(!needs.contains("torch") && !needs.contains("-dev"), needs.constData());
    QCOMPARE(runTool("dpkg-deb", {"-f", m_deb, "Version"}).out.trimmed(), version());
}

void TestPackaging::theDebHoldsWhatItShould_data()
{
    QTest::addColumn<bool>("runnable");
    for (const char* file :
         {"bin/mla-draft", "bin/mla-workbench", "bin/mla-draft-setup",
          "lib/mla-draft-workbench/mla-draft", "lib/mla-draft-workbench/mla-workbench",
          "share/mla-draft-workbench/installer/setup.sh"})
        QTest::newRow(file) << true;
    for (const char* file :
         {"share/mla-draft-workbench/demo/stories260K/model.safetensors",
          "share/mla-draft-workbench/prompts/calibration.txt",
          "share/mla-draft-workbench/tasks/human_eval.jsonl",
          "share/mla-draft-workbench/grids/demo.json",
          "share/mla-draft-workbench/help/index.md",
          "share/mla-draft-workbench/python/hf_backend.py",
          "share/mla-draft-workbench/installer/lib/environments.sh",
          "share/mla-draft-workbench/installer/requirements-libtorch.txt",
          "share/applications/mla-workbench.desktop", "share/mime/packages/mla-draft-workbench.xml",
          "share/metainfo/org.mla_draft_workbench.Workbench.metainfo.xml",
          "share/icons/hicolor/scalable/apps/mla-draft-workbench.svg",
          "share/icons/hicolor/48x48/apps/mla-draft-workbench.png",
          "share/bash-completion/completions/mla-draft", "share/doc/mla-draft-workbench/copyright",
          "share/doc/mla-draft-workbench/changelog.gz", "share/doc/mla-draft-workbench/LICENSE.gz",
          "share/man/man1/mla-draft.1.gz"})
        QTest::newRow(file) << false;
}

void TestPackaging::theDebHoldsWhatItShould()
{
    QFETCH(bool, runnable);
    const QFileInfo file(m_root + "/usr/" + QTest::currentDataTag());
    QVERIFY(file.isFile());
    QVERIFY(file.size() > 0);
    QVERIFY(file.permission(QFile::ReadOther));
    QCOMPARE(file.permission(QFile::ExeOther), runnable);
}

void TestPackaging::theDebHoldsNothingElse()
{
    const QList<QByteArray> lines = runTool("dpkg-deb", {"-c", m_deb}).out.split('\n');
    QVERIFY(!lines.isEmpty());
    for (const QByteArray& line : lines) {
        QVERIFY2(line.isEmpty() || line.contains(" root/root "), line.constData());
        for (const char* unwanted : {"libtorch_", "__pycache__", "/include/", ".h\n", "tst_"})
            QVERIFY2(!line.contains(unwanted), line.constData());
    }
}

void TestPackaging::programsSearchNoBuildFolder()
{
    MLA_NEED_TOOL("readelf");
    for (const char* name : {"mla-draft", "mla-workbench"}) {
        const QByteArray entries =
            runTool("readelf", {"-d", m_root + "/usr/lib/mla-draft-workbench/" + name}).out;
        QVERIFY2(entries.contains("libtorch_cpu.so"), entries.constData());
        QVERIFY2(!entries.contains("RUNPATH") && !entries.contains("RPATH"), entries.constData());
    }
}

void TestPackaging::launchersStartThePrograms_data()
{
    QTest::addColumn<QByteArray>("help");
    QTest::newRow("mla-draft") << QByteArray("Usage: mla-draft COMMAND");
    QTest::newRow("mla-workbench") << QByteArray("Usage: mla-workbench [STUDY]");
}

void TestPackaging::launchersStartThePrograms()
{
    QFETCH(QByteArray, help);
    const QString name = QTest::currentDataTag(), program = m_root + "/usr/bin/" + name;
    const QStringList chosen = {"LIBTORCH_ROOT=" + libtorchRoot(), "LD_LIBRARY_PATH"};
    const CliResult told = runTool(program, {"--version"}, chosen);
    QVERIFY2(told.exitCode == 0, told.text().constData());
    QCOMPARE(told.out, name.toUtf8() + " " + version() + "\n");
    const CliResult explained = runTool(program, {"--help"}, chosen);
    QCOMPARE(explained.exitCode, 0);
    QVERIFY2(explained.out.contains(help), explained.out.constData());
}

void TestPackaging::theArchiveRunsWhereverItIs()
{
    const QString archive = packed("TGZ", "mla-draft-workbench-*.tar.gz");
    QVERIFY(!archive.isEmpty());
    QVERIFY(QDir().mkpath(path("else where")));
    QCOMPARE(
        runTool("tar", {"-xf", archive, "-C", path("else where"), "--strip-components=1"}).exitCode,
        0);
    const CliResult told = runTool(path("else where/bin/mla-draft"), {"--version"},
                                   {"LIBTORCH_ROOT=" + libtorchRoot(), "LD_LIBRARY_PATH"});
    QVERIFY2(told.exitCode == 0, told.text().constData());
    QCOMPARE(told.out, "mla-draft " + version() + "\n");
}

void TestPackaging::manualsNameEveryCommandAndOption()
{
    const QString manuals = m_root + "/usr/share/man/man1/";
    const QByteArray manual = unpacked(manuals + "mla-draft.1.gz");
    const QByteArray help = runCli({"--help"}).out;
    static const QRegularExpression command("^  ([a-z-]+) ", QRegularExpression::MultilineOption);
    auto commands = command.globalMatch(QString::fromUtf8(help.mid(help.indexOf("Commands:"))));
    QVERIFY(commands.hasNext());
    while (commands.hasNext()) {
        const QByteArray name = commands.next().captured(1).toUtf8();
        QVERIFY2(manual.contains("\n.B " + name + "\n"), name.constData());
    }
    const QByteArray window = unpacked(manuals + "mla-workbench.1.gz").replace("\\-", "-");
    static const QRegularExpression option("--[a-z]+");
    auto options =
        option.globalMatch(QString::fromUtf8(runTool(MLA_BIN "/mla-workbench", {"--help"}).out));
    QVERIFY(options.hasNext());
    while (options.hasNext()) {
        const QByteArray name = options.next().captured().toUtf8();
        QVERIFY2(window.contains(name), name.constData());
    }
    const QByteArray setup = unpacked(manuals + "mla-draft-setup.1.gz").replace("\\-", "-");
    for (const char* name : {"--cuda", "--python", "--backends", "--print-root", "--print-python"})
        QVERIFY2(setup.contains(name), name);
}

void TestPackaging::versionsAgree()
{
    const QByteArray changelog =
        unpacked(m_root + "/usr/share/doc/mla-draft-workbench/changelog.gz");
    QVERIFY2(changelog.startsWith("mla-draft-workbench (" + version() + ") "),
             changelog.constData());
    const QByteArray metainfo =
        contents(packageSource() + "/org.mla_draft_workbench.Workbench.metainfo.xml");
    QVERIFY2(metainfo.contains("<release version=\"" + version() + "\""), metainfo.constData());
}

void TestPackaging::studiesHaveATypeOfTheirOwn_data()
{
    QTest::addColumn<bool>("study");
    QTest::addColumn<QByteArray>("type");
    QTest::newRow("ours.h5") << true << QByteArray("application/x-mla-draft-study");
    QTest::newRow("ours-without-ending") << true << QByteArray("application/x-mla-draft-study");
    QTest::newRow("other.h5") << false << QByteArray("application/x-hdf");
}

void TestPackaging::studiesHaveATypeOfTheirOwn()
{
    MLA_NEED_TOOL("update-mime-database");
    MLA_NEED_TOOL("gio");
    if (!QFile::exists("/usr/share/mime/packages/freedesktop.org.xml"))
        QSKIP("shared-mime-info's types are not in /usr/share");
    QFETCH(bool, study);
    QFETCH(QByteArray, type);
    const QString share = m_root + "/usr/share", file = path(QTest::currentDataTag());
    QCOMPARE(runTool("update-mime-database", {share + "/mime"}).exitCode, 0);
    QVERIFY(mla::saveStudy(file.toStdString(), study ? toyStudy() : mla::StudyData{}).ok());
    if (!study) {
        // Any other HDF5 file: the same bytes without our mark.
        QByteArray bytes = contents(file);
        QVERIFY(bytes.contains("mla-draft-study"));
        QVERIFY(writeText(file, bytes.replace("mla-draft-study", "somebody-else's")));
    }
    const CliResult result =
        runTool("gio", {"info", "-a", "standard::content-type", file},
                {"XDG_DATA_DIRS=" + share + ":/usr/share", "XDG_DATA_HOME=" + path("home")});
    QVERIFY2(result.out.contains("content-type: " + type + "\n"), result.text().constData());
}

void TestPackaging::theDesktopFileIsValid()
{
    MLA_NEED_TOOL("desktop-file-validate");
    const CliResult result = runTool("desktop-file-validate",
                                     {m_root + "/usr/share/applications/mla-workbench.desktop"});
    QVERIFY2(result.exitCode == 0 && result.out.isEmpty(), result.text().constData());
}

void TestPackaging::theMetainfoIsValid()
{
    MLA_NEED_TOOL("appstreamcli");
    const CliResult result =
        runTool("appstreamcli",
                {"validate", "--no-net", "--explain",
                 m_root + "/usr/share/metainfo/org.mla_draft_workbench.Workbench.metainfo.xml"});
    QVERIFY2(result.exitCode == 0, result.text().constData());
}

void TestPackaging::lintianFindsNoError()
{
    MLA_NEED_TOOL("lintian");
    // As root, lintian asks for this; as anyone else it does no harm.
    const CliResult result =
        runTool("lintian", {"--allow-root", "--fail-on", "error", m_deb});
    QVERIFY2(result.exitCode == 0, result.text().constData());
}

QTEST_APPLESS_MAIN(TestPackaging)
#include "tst_packaging.moc"
