// SPDX-License-Identifier: GPL-3.0-or-later
// A grid as job arrays of a real Slurm on this machine: the study is that of a run without it.
#include "core/store/study.h"

#include <algorithm>

#include <QDir>
#include <QElapsedTimer>
#include <QFileInfo>
#include <QTemporaryDir>
#include <QThread>

#include "tests/support/cli_program.h"

using namespace mla::test;

class TestGridSlurm : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase();
    void cleanupTestCase();
    void refusedWithoutSlurm();
    void scriptsArePrinted();
    void arraysGiveTheSameStudy();

private:
    [[nodiscard]] QString path(const QString& name) const { return m_folder.filePath(name); }
    [[nodiscard]] QStringList grid(const QString& name) const
    {
        return {"grid", path("grid.json"), "-o", path(name), "--device",
                "cpu",  "--threads",       "1",  "--json"};
    }
    static CliResult cluster(const QString& action, const QString& folder);
    QTemporaryDir m_folder;
    QString m_reason; ///< why there is no cluster; empty if there is
};

CliResult TestGridSlurm::cluster(const QString& action, const QString& folder)
{
    QProcess process;
    // The daemons inherit these pipes: only the script's own end is waited for.
    process.setStandardOutputFile(QProcess::nullDevice());
    process.setStandardErrorFile(folder + ".log");
    process.start("bash", {MLA_TEST_DATA "/support/slurm_cluster.sh", action, folder});
    CliResult result = finished(process, 120);
    QFile log(folder + ".log");
    if (log.open(QIODevice::ReadOnly))
        result.err = log.readAll().trimmed();
    return result;
}

void TestGridSlurm::initTestCase()
{
    QVERIFY(writeText(path("grid.json"), R"({
        "models": ")" MLA_RESOURCES R"(/demo", "tasks_folder": ")" MLA_RESOURCES R"(/demo/tasks",
        "pairs": [{"name": "stories", "family": "llama", "target": "stories260K",
                   "draft": "stories260K"}],
        "converters": [{"converter": "transmla", "kv_lora_rank": 28, "qk_rope_head_dim": 4,
                        "freqfold": 2},
                       {"converter": "mha2mla", "kv_lora_rank": 16, "qk_rope_head_dim": 4}],
        "variants": ["original", "partial-rope", "functional"],
        "backends": ["native"], "tasks": ["animals", "weather"],
        "calibration": {"source": "self:)" MLA_RESOURCES R"(/prompts/stories.txt",
                        "sequences": 16, "length": 64},
        "refine": {"steps": 10},
        "accept": {"max_new_tokens": 16, "min_new_tokens": 8, "limit": 2}})"));
    qputenv("SLURM_CONF", path("cluster/slurm.conf").toUtf8());
    const CliResult started = cluster("start", path("cluster"));
    if (started.exitCode != 0)
        m_reason = "no Slurm here: " + QString::fromUtf8(started.err.split('\n').last());
}

void TestGridSlurm::cleanupTestCase()
{
    if (m_reason.isEmpty())
        cluster("stop", path("cluster"));
}

void TestGridSlurm::refusedWithoutSlurm()
{
    QProcess process;
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert("PATH", path("nothing"));
    process.setProcessEnvironment(environment);
    process.start(programPath(), grid("refused") << "--slurm");
    const CliResult result = finished(process, 60);
    QCOMPARE(result.exitCode, 2);
    QVERIFY(result.error().value("message").toString().contains("there is no Slurm here"));
    QVERIFY(!QFileInfo::exists(path("refused")));
}

void TestGridSlurm::scriptsArePrinted()
{
    const CliResult result = runCli(grid("printed") << "--slurm"
                                                    << "--dry-run"
                                                    << "--slurm-options"
                                                    << "--time=1:00 --mem=2G");
    QVERIFY2(result.exitCode == 0, result.text());
    const QJsonArray jobs = result.json().value("jobs").toArray();
    QCOMPARE(jobs.size(), 3);
    const QString drafts = jobs.at(0).toObject().value("script").toString();
    QVERIFY(drafts.contains("#SBATCH --array=0-1\n"));
    QVERIFY(drafts.contains("#SBATCH --time=1:00\n#SBATCH --mem=2G\n"));
    QVERIFY(!drafts.contains("--gres")); // this cluster has no GPUs
    QVERIFY(jobs.at(1).toObject().value("script").toString().contains("#SBATCH --array=2-6\n"));
    QVERIFY(!QFileInfo::exists(path("printed")));
}

void TestGridSlurm::arraysGiveTheSameStudy()
{
    if (!m_reason.isEmpty())
        QSKIP(qPrintable(m_reason));
    const CliResult submitted = runCli(grid("cluster-grid") << "--slurm");
    QVERIFY2(submitted.exitCode == 0, submitted.text());
    QCOMPARE(submitted.json().value("jobs").toArray().size(), 3);
    QVERIFY(submitted.json().value("jobs").toArray().at(2).toObject().contains("id"));
    // The last job ends with the study written; its output ends with the counts.
    const QString log = path("cluster-grid/slurm/collect.log");
    QElapsedTimer timer;
    timer.start();
    const auto collected = [&] {
        QFile file(log);
        return file.open(QIODevice::ReadOnly) && file.readAll().contains("configurations are");
    };
    while (!collected() && timer.elapsed() < 300'000)
        QThread::msleep(500);
    QVERIFY2(collected(), qPrintable(log));

    const CliResult alone = runCli(grid("alone"));
    QVERIFY2(alone.exitCode == 0, alone.text());
    const CliResult gathered = runCli(grid("cluster-grid") << "--collect");
    QVERIFY2(gathered.exitCode == 0, gathered.text());
    QCOMPARE(gathered.json().value("done").toInt(), 12);
    QCOMPARE(gathered.json().value("failed").toInt(), 0);
    QCOMPARE(gathered.json().value("cells"), alone.json().value("cells"));
    const auto whole = mla::loadStudy(path("cluster-grid/grid.h5").toStdString());
    QVERIFY(whole.ok());
    QCOMPARE(whole->runs.size(), std::size_t{6});
    QCOMPARE(whole->acceptance.size(), std::size_t{10});
}

QTEST_GUILESS_MAIN(TestGridSlurm)
#include "tst_grid_slurm.moc"
