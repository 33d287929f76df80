// SPDX-License-Identifier: GPL-3.0-or-later
// No room on the disk: files stop growing in their middle, at several sizes. Every command says
// which file, and leaves what was there as it was.
#include <sys/resource.h>

#include <QDir>
#include <QTemporaryDir>

#include "core/store/study.h"
#include "tests/support/cli_program.h"

using namespace mla::test;

namespace
{

/// As runCli(); no file may grow beyond `bytes`, and writing more is an error as on a full disk.
CliResult runInRoom(const QStringList& arguments, rlim_t bytes)
{
    QProcess process;
    process.setChildProcessModifier([bytes] {
        ::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{bytes, bytes};
        ::setrlimit(RLIMIT_FSIZE, &limit);
    });
    process.start(programPath(), arguments);
    return finished(process, 600);
}

/// Every file of a folder with its content; what a run may be resumed from is no matter here.
QMap<QString, QByteArray> contentOf(const QString& folder)
{
    QMap<QString, QByteArray> content;
    for (const QFileInfo& entry :
         QDir(folder).entryInfoList(QDir::AllEntries | QDir::Hidden | QDir::NoDotAndDotDot)) {
        if (entry.fileName().endsWith(".parts"))
            continue;
        if (entry.isDir()) {
            content[entry.fileName() + "/"] = {};
            content.insert(contentOf(entry.filePath()));
            continue;
        }
        QFile file(entry.filePath());
        content[entry.filePath()] = file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
    }
    return content;
}

} // namespace

class TestFullDisk : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase();
    void nothingIsHalfWritten_data();
    void nothingIsHalfWritten();

private:
    QTemporaryDir m_dir;
    QString path(const QString& name) const { return m_dir.filePath("work/" + name); }
};

void TestFullDisk::initTestCase()
{
    QVERIFY(m_dir.isValid() && QDir(m_dir.path()).mkpath("work"));
    QVERIFY(writeText(m_dir.filePath("task.jsonl"), "{\"prompt\": \"Once upon a time\"}\n"));
    const CliResult made =
        runCli({"convert", demoCheckpoint(), "-o", path("draft"), "--converter", "transmla",
                "--kv-lora-rank", "28", "--qk-rope-head-dim", "4", "--calibration", "self",
                "--sequences", "8", "--length", "32", "--study", path("s.h5")});
    QVERIFY2(made.exitCode == 0, made.text());
}

void TestFullDisk::nothingIsHalfWritten_data()
{
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<int>("kib"); ///< room for a file
    const QString draft = path("draft"), study = path("s.h5");
    const std::pair<const char*, QStringList> commands[] = {
        {"convert",
         {"convert", demoCheckpoint(), "-o", path("other"), "--converter", "mha2mla",
          "--kv-lora-rank", "16", "--qk-rope-head-dim", "4", "--calibration", "self", "--sequences",
          "8", "--length", "32", "--study", study}},
        {"refine",
         {"refine", draft, "--original", demoCheckpoint(), "-o", path("functional"), "--objective",
          "functional", "--steps", "4", "--study", study}},
        {"fidelity",
         {"fidelity", draft, "--original", demoCheckpoint(), "--study", study, "--error-sources"}},
        {"accept",
         {"accept", "--target", demoCheckpoint(), "--draft", draft, "--tasks",
          m_dir.filePath("task.jsonl"), "-k", "2", "--max-new-tokens", "8", "--study", study}},
        {"export", {"export", draft, "-o", path("exported"), "--layout", "huggingface"}},
        {"report", {"report", study, "-o", path("tables"), "--tables", "csv,md"}},
    };
    for (const auto& [name, arguments] : commands)
        for (const int kib : {0, 4, 16, 256})
            QTest::addRow("%s, %d KiB", name, kib) << arguments << kib;
}

void TestFullDisk::nothingIsHalfWritten()
{
    QFETCH(QStringList, arguments);
    QFETCH(int, kib);
    const auto before = contentOf(path(""));
    const CliResult run = runInRoom(arguments, rlim_t(kib) * 1024);
    if (run.exitCode == 0) { // there was room enough
        QVERIFY2(kib >= 4, run.text());
        QDir(path("tables")).removeRecursively(); // a row may make it again
        return;
    }
    QVERIFY2(run.exitCode == 4, run.text());
    QVERIFY2(run.err.contains(m_dir.path().toUtf8()), run.text()); // which file
    QVERIFY2(run.err.toLower().contains("too large") || run.err.contains("no room"), run.text());
    const auto after = contentOf(path(""));
    QCOMPARE(after.keys(), before.keys());
    QVERIFY(after == before);
    QVERIFY(mla::loadStudy(path("s.h5").toStdString()).ok());
}

QTEST_GUILESS_MAIN(TestFullDisk)
#include "tst_full_disk.moc"
