// SPDX-License-Identifier: GPL-3.0-or-later
// A refinement killed at ten moments: the study stays readable, --resume ends with the weights of
// an uninterrupted run, byte for byte; and so does any number of threads.
#include "core/store/study.h"

#include <algorithm>

#include <QDir>
#include <QElapsedTimer>
#include <QTemporaryDir>
#include <QTest>

#include "tests/support/cli_program.h"

using namespace mla::test;

class TestResume : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase();
    void threads();
    void killed_data();
    void killed();

private:
    [[nodiscard]] QString path(const QString& name) const { return m_folder.filePath(name); }
    [[nodiscard]] QStringList refinement(const QString& name, int threads = 2) const;
    [[nodiscard]] QByteArray weights(const QString& name) const;
    /// Empty, or what is wrong with the study.
    [[nodiscard]] static QString unreadable(const QString& study);
    QTemporaryDir m_folder;
    QByteArray m_expected; ///< model.safetensors of an uninterrupted run
    qint64 m_duration = 0; ///< of such a run, milliseconds
};

/// Each refinement works on a copy of the study that holds the conversion.
QStringList TestResume::refinement(const QString& name, int threads) const
{
    return {"refine",      path("converted"),
            "--original",  demoCheckpoint(),
            "-o",          path(name),
            "--objective", "functional",
            "--steps",     "60",
            "--study",     path(name + ".h5"),
            "--device",    "cpu",
            "--threads",   QString::number(threads),
            "--json"};
}

QByteArray TestResume::weights(const QString& name) const
{
    QFile file(path(name) + "/model.safetensors");
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

QString TestResume::unreadable(const QString& study)
{
    const auto loaded = mla::loadStudy(study.toStdString());
    if (!loaded.ok())
        return QString::fromStdString(loaded.error().text());
    if (!loaded.value().findRun("stories260K/transmla-28+4-f2/converted"))
        return QStringLiteral("the conversion is gone");
    const QString python = qEnvironmentVariable("MLA_PYTHON");
    if (python.isEmpty())
        return {};
    QProcess reader;
    reader.start(python, {"-c",
                          "import h5py, sys\n"
                          "with h5py.File(sys.argv[1], 'r') as f:\n"
                          "    f.visititems(lambda n, o: o[()] if hasattr(o, 'shape') else None)\n"
                          "    assert f.attrs['format'] and len(f['runs'])\n",
                          study});
    const CliResult result = finished(reader, 120);
    return result.exitCode == 0 ? QString() : QString(result.text());
}

void TestResume::initTestCase()
{
    const CliResult converted = runCli({"convert",
                                        demoCheckpoint(),
                                        "-o",
                                        path("converted"),
                                        "--converter",
                                        "transmla",
                                        "--kv-lora-rank",
                                        "28",
                                        "--qk-rope-head-dim",
                                        "4",
                                        "--freqfold",
                                        "2",
                                        "--sequences",
                                        "32",
                                        "--length",
                                        "128",
                                        "--study",
                                        path("start.h5"),
                                        "--device",
                                        "cpu",
                                        "--json"});
    QVERIFY2(converted.exitCode == 0, converted.text());
    QVERIFY(QFile::copy(path("start.h5"), path("whole.h5")));
    QElapsedTimer timer;
    timer.start();
    const CliResult whole = runCli(refinement("whole"));
    m_duration = timer.elapsed();
    QVERIFY2(whole.exitCode == 0, whole.text());
    m_expected = weights("whole");
    QVERIFY(!m_expected.isEmpty());
    QVERIFY(!QFile::exists(path("whole.parts"))); // finished work leaves nothing behind
    qInfo("an uninterrupted run takes %lld ms", static_cast<long long>(m_duration));
}

void TestResume::threads()
{
    for (const int threads : {1, 3}) {
        const QString name = QString("threads%1").arg(threads);
        QVERIFY(QFile::copy(path("start.h5"), path(name + ".h5")));
        const CliResult result = runCli(refinement(name, threads));
        QVERIFY2(result.exitCode == 0, result.text());
        QVERIFY(weights(name) == m_expected);
    }
}

void TestResume::killed_data()
{
    QTest::addColumn<double>("moment"); // share of the whole run
    for (int i = 0; i < 10; ++i)
        QTest::newRow(qPrintable(QString::number(i))) << (i + 0.5) / 10;
}

void TestResume::killed()
{
    QFETCH(double, moment);
    const QString name = QString("killed%1").arg(moment);
    const QString study = path(name + ".h5");
    auto delay = static_cast<int>(moment * static_cast<double>(m_duration));
    for (bool caught = false; !caught; delay = delay * 4 / 5) { // a faster run than the first
        QDir(path(name)).removeRecursively();
        QDir(path(name + ".parts")).removeRecursively();
        QFile::remove(study);
        QVERIFY(QFile::copy(path("start.h5"), study));
        QProcess process;
        process.start(programPath(), refinement(name));
        QVERIFY(process.waitForStarted());
        caught = !process.waitForFinished(std::max(1, delay));
        process.kill(); // SIGKILL
        process.waitForFinished();
        caught = caught && process.exitStatus() == QProcess::CrashExit;
    }
    const QString problem = unreadable(study);
    QVERIFY2(problem.isEmpty(), qPrintable(problem));

    const CliResult resumed = runCli(refinement(name) << "--resume");
    QVERIFY2(resumed.exitCode == 0, resumed.text());
    QVERIFY(weights(name) == m_expected);
    QVERIFY(unreadable(study).isEmpty());
    const auto loaded = mla::loadStudy(study.toStdString());
    QVERIFY(loaded.ok());
    const mla::RunRecord* run = loaded.value().findRun("stories260K/transmla-28+4-f2/functional");
    QVERIFY(run);
    QCOMPARE(run->layers.size(), std::size_t{5});
    QVERIFY(!QFile::exists(path(name + ".parts")));
}

QTEST_GUILESS_MAIN(TestResume)
#include "tst_resume.moc"
