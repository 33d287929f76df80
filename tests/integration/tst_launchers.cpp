// SPDX-License-Identifier: GPL-3.0-or-later
// The launchers of the package, around a program that only prints what it was started with.
#include <QDir>
#include <QTemporaryDir>

#include "tests/support/package_tree.h"

using namespace mla::test;

namespace
{

constexpr int unavailable = 69; // EX_UNAVAILABLE of sysexits.h

constexpr auto printer = "#!/bin/sh\nprintf '%s\\n' \"$LD_LIBRARY_PATH\" \"$@\"\n";

bool writeProgram(const QString& path, const QByteArray& text)
{
    QDir().mkpath(QFileInfo(path).path());
    return writeText(path, text) &&
           QFile::setPermissions(path, QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
}

/// The version that the launcher asks for.
QByteArray wantedVersion()
{
    static const QRegularExpression line("^version=(.*)$", QRegularExpression::MultilineOption);
    return line.match(QString::fromUtf8(contents(MLA_BIN "/../package/launcher.sh")))
        .captured(1)
        .toUtf8();
}

/// Something that looks like LibTorch from outside.
void makeLibtorch(const QString& root, const QByteArray& version)
{
    QDir().mkpath(root + "/lib");
    for (const char* library : {"/lib/libtorch_cpu.so", "/lib/libc10.so"})
        QVERIFY(writeText(root + library, {}));
    QVERIFY(writeText(root + "/version.py", "__version__ = '" + version + "+cu130'\n"));
}

} // namespace

class TestLaunchers : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void init();
    void theRootOfTheEnvironmentIsTaken();
    void anotherVersionThereIsWarnedOf();
    void aRootWithoutLibrariesIsRefused();
    void theCacheIsLookedThrough();
    void environmentsThatDoNotFitAreLeft_data();
    void environmentsThatDoNotFitAreLeft();
    void librariesForGpusComeFirst();
    void argumentsAndLinksPassThrough();
    void setupExplainsItself();
    void setupLeavesAChosenLibtorchAlone();

private:
    std::unique_ptr<QTemporaryDir> m_dir;
    QString path(const QString& name) const { return m_dir->filePath(name); }
    QString environmentRoot(const QString& name) const
    {
        return path("cache/mla-draft-workbench/" + name + "/lib/python3.11/site-packages/torch");
    }
    void makeEnvironment(const QString& name, const QByteArray& version, const QString& mark) const
    {
        makeLibtorch(environmentRoot(name), version);
        QVERIFY(writeText(path("cache/mla-draft-workbench/" + name + "/" + mark), {}));
    }
    CliResult launch(const QStringList& arguments = {}, const QStringList& changes = {}) const
    {
        const QStringList plain = {"LIBTORCH_ROOT", "LD_LIBRARY_PATH", "DISPLAY", "WAYLAND_DISPLAY",
                                   "XDG_CACHE_HOME=" + path("cache")};
        return runTool(path("usr/bin/mla-draft"), arguments, plain + changes);
    }
};

void TestLaunchers::init()
{
    m_dir = std::make_unique<QTemporaryDir>();
    QVERIFY(m_dir->isValid());
    for (const char* root : {"/opt/libtorch", "/usr/local/libtorch"})
        if (QFileInfo::exists(root))
            QSKIP("this machine has a LibTorch in /opt or /usr/local");
    QVERIFY(writeProgram(path("usr/bin/mla-draft"), contents(MLA_BIN "/../package/launcher.sh")));
    QVERIFY(writeProgram(path("usr/lib/mla-draft-workbench/mla-draft"), printer));
    QVERIFY(!wantedVersion().isEmpty());
}

void TestLaunchers::theRootOfTheEnvironmentIsTaken()
{
    makeLibtorch(path("torch"), wantedVersion());
    const CliResult result =
        launch({}, {"LIBTORCH_ROOT=" + path("torch"), "LD_LIBRARY_PATH=/before"});
    QCOMPARE(result.exitCode, 0);
    QCOMPARE(result.out, path("torch/lib").toUtf8() + ":/before\n");
    QCOMPARE(result.err, QByteArray());
}

void TestLaunchers::anotherVersionThereIsWarnedOf()
{
    makeLibtorch(path("torch"), "1.13.1");
    const CliResult result = launch({}, {"LIBTORCH_ROOT=" + path("torch")});
    QCOMPARE(result.exitCode, 0);
    QCOMPARE(result.out, path("torch/lib").toUtf8() + "\n");
    for (const QByteArray& part : {QByteArray("warning"), wantedVersion(), path("torch").toUtf8()})
        QVERIFY2(result.err.contains(part), result.err.constData());
}

void TestLaunchers::aRootWithoutLibrariesIsRefused()
{
    const CliResult result = launch({}, {"LIBTORCH_ROOT=" + path("nothing")});
    QCOMPARE(result.exitCode, unavailable);
    for (const QByteArray& part :
         {QByteArray("mla-draft: "), path("nothing").toUtf8(), QByteArray("lib/libtorch_cpu.so")})
        QVERIFY2(result.err.contains(part), result.err.constData());
}

void TestLaunchers::theCacheIsLookedThrough()
{
    const CliResult missing = launch();
    QCOMPARE(missing.exitCode, unavailable);
    QCOMPARE(missing.out, QByteArray());
    for (const QByteArray& part :
         {"LibTorch " + wantedVersion(), path("usr/bin/mla-draft-setup").toUtf8(),
          QByteArray("--cuda"), QByteArray("LIBTORCH_ROOT")})
        QVERIFY2(missing.err.contains(part), missing.err.constData());

    makeEnvironment("libtorch-1", wantedVersion(), "complete");
    const CliResult found = launch();
    QCOMPARE(found.out, environmentRoot("libtorch-1").toUtf8() + "/lib\n");
    QCOMPARE(found.exitCode, 0);
    QCOMPARE(found.err, QByteArray());
}

void TestLaunchers::environmentsThatDoNotFitAreLeft_data()
{
    QTest::addColumn<QByteArray>("version");
    QTest::addColumn<QString>("mark");
    QTest::newRow("older") << QByteArray("2.4.0") << "complete";
    QTest::newRow("a longer number") << wantedVersion() + "1"
                                     << "complete";
    QTest::newRow("half installed") << wantedVersion() << "half";
    QTest::newRow("CUDA, half installed") << wantedVersion() << "cuda-0123";
}

void TestLaunchers::environmentsThatDoNotFitAreLeft()
{
    QFETCH(QByteArray, version);
    QFETCH(QString, mark);
    makeEnvironment("libtorch-0", version, mark);
    QCOMPARE(launch().exitCode, unavailable);
    makeEnvironment("libtorch-1", wantedVersion(), "complete");
    QCOMPARE(launch().out, environmentRoot("libtorch-1").toUtf8() + "/lib\n");
}

void TestLaunchers::librariesForGpusComeFirst()
{
    makeEnvironment("libtorch-1", wantedVersion(), "complete");
    makeEnvironment("libtorch-2", wantedVersion(), "complete");
    makeEnvironment("libtorch-2", wantedVersion(), "cuda-0123");
    QCOMPARE(launch().out, environmentRoot("libtorch-2").toUtf8() + "/lib\n");
}

void TestLaunchers::argumentsAndLinksPassThrough()
{
    makeEnvironment("libtorch-1", wantedVersion(), "complete");
    QVERIFY(QFile::link(path("usr/bin/mla-draft"), path("linked")));
    const CliResult result =
        runTool(path("linked"), {"two words", "", "*", "--json"},
                {"LIBTORCH_ROOT", "LD_LIBRARY_PATH", "XDG_CACHE_HOME=" + path("cache")});
    QCOMPARE(result.exitCode, 0);
    QCOMPARE(result.out, environmentRoot("libtorch-1").toUtf8() + "/lib\ntwo words\n\n*\n--json\n");
}

void TestLaunchers::setupExplainsItself()
{
    const QString setup = packageSource() + "/bin/mla-draft-setup";
    const CliResult help = runTool(setup, {"--help"});
    QCOMPARE(help.exitCode, 0);
    for (const char* option : {"--cuda", "--python", "--backends", "--print-root"})
        QVERIFY2(help.out.contains(option), help.out.constData());
    const CliResult wrong = runTool(setup, {"--tests"});
    QCOMPARE(wrong.exitCode, 2);
    QVERIFY2(wrong.err.contains("unknown option: --tests"), wrong.err.constData());
}

void TestLaunchers::setupLeavesAChosenLibtorchAlone()
{
    // Where the package puts them; --runtime must ask for no Debian packages, so there is no list.
    const QString source = QStringLiteral(MLA_TEST_DATA "/../installer/");
    const QString target = path("usr/share/mla-draft-workbench/installer/");
    for (const char* file : {"setup.sh", "lib/common.sh", "lib/debian.sh", "lib/environments.sh"})
        QVERIFY(writeProgram(target + file, contents(source + file)));
    const QString setup = path("usr/bin/mla-draft-setup");
    QVERIFY(writeProgram(setup, contents(packageSource() + "/bin/mla-draft-setup")));
    const CliResult result =
        runTool(setup, {}, {"LIBTORCH_ROOT=" + path("torch"), "XDG_CACHE_HOME=" + path("cache")});
    QVERIFY2(result.exitCode == 0, result.text().constData());
    QCOMPARE(result.out, path("torch").toUtf8() + "\n");
    QVERIFY(!QFileInfo::exists(path("cache")));
}

QTEST_APPLESS_MAIN(TestLaunchers)
#include "tst_launchers.moc"
