// SPDX-License-Identifier: GPL-3.0-or-later
// squeue's lines, and what becomes of its failures. A cluster of one machine: tst_grid_slurm.
#include <QFile>
#include <QTemporaryDir>
#include <QTest>

#include "core/pipeline/slurm_queue.h"

using namespace mla;

class TestSlurmQueue : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void init();
    void jobsAsSqueueTellsThem();
    void noJobs();
    void silentControllerIsAnError();
    void withoutSlurm();
    void cancelNamesTheJob();

private:
    /// A program of that name in PATH, a shell script.
    void install(const QString& name, const QByteArray& script);
    std::unique_ptr<QTemporaryDir> m_folder;
};

void TestSlurmQueue::init()
{
    m_folder = std::make_unique<QTemporaryDir>();
    qputenv("PATH", m_folder->path().toUtf8());
}

void TestSlurmQueue::install(const QString& name, const QByteArray& script)
{
    QFile file(m_folder->filePath(name));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write("#!/bin/sh\n" + script);
    file.close();
    QVERIFY(file.setPermissions(QFile::ReadOwner | QFile::ExeOwner));
}

void TestSlurmQueue::jobsAsSqueueTellsThem()
{
    // Slurm's own words (man squeue): %i|%T|%M|%l|%R|%j
    install("squeue", "echo '41_3|RUNNING|1-02:03:04|2-00:00:00|node7|smollm2-measurements'\n"
                      "echo '41_[4-7]|PENDING|0:00|2-00:00:00|(Resources)|smollm2-measurements'\n"
                      "echo '42|PENDING|0:00|UNLIMITED|(Dependency)|odd|name'\n");
    JobContext job;
    const auto jobs = clusterJobs(job);
    QVERIFY2(jobs, jobs ? "" : jobs.error().text().c_str());
    QCOMPARE(jobs->size(), std::size_t(3));
    QVERIFY((*jobs)[0] == (ClusterJob{"41_3", "RUNNING", "1-02:03:04", "2-00:00:00", "node7",
                                      "smollm2-measurements"}));
    QCOMPARE((*jobs)[1].id, std::string("41_[4-7]"));
    QCOMPARE((*jobs)[1].where, std::string("(Resources)"));
    QCOMPARE((*jobs)[2].name, std::string("odd|name"));
    QCOMPARE((*jobs)[2].limit, std::string("UNLIMITED"));
}

void TestSlurmQueue::noJobs()
{
    install("squeue", "exit 0\n");
    JobContext job;
    const auto jobs = clusterJobs(job);
    QVERIFY(jobs && jobs->empty());
}

void TestSlurmQueue::silentControllerIsAnError()
{
    install("squeue", "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2\n"
                      "exit 1\n");
    QVERIFY(hasSlurm());
    JobContext job;
    const auto jobs = clusterJobs(job);
    QVERIFY(!jobs);
    QCOMPARE(jobs.error().code, ErrorCode::ComputeFailed);
    QVERIFY2(jobs.error().text().find("Unable to contact slurm controller") != std::string::npos,
             jobs.error().text().c_str());
}

void TestSlurmQueue::withoutSlurm()
{
    QVERIFY(!hasSlurm());
    JobContext job;
    const auto jobs = clusterJobs(job);
    QVERIFY(!jobs);
    QCOMPARE(jobs.error().code, ErrorCode::Usage);
}

void TestSlurmQueue::cancelNamesTheJob()
{
    install("scancel", "echo \"$@\" > '" + m_folder->filePath("asked").toUtf8() + "'\n");
    JobContext job;
    QVERIFY(cancelClusterJob(job, "41_3").ok());
    QFile asked(m_folder->filePath("asked"));
    QVERIFY(asked.open(QIODevice::ReadOnly));
    QCOMPARE(asked.readAll(), QByteArray("41_3\n"));
}

QTEST_GUILESS_MAIN(TestSlurmQueue)
#include "tst_slurm_queue.moc"
