// SPDX-License-Identifier: GPL-3.0-or-later
#include <atomic>
#include <chrono>
#include <latch>
#include <thread>

#include <QElapsedTimer>
#include <QSignalSpy>
#include <QTest>

#include "widgets/jobs/event_queue.h"
#include "widgets/jobs/job_runner.h"
#include "widgets/jobs/latest_task.h"

using namespace mla;
using namespace mla::ui;
using namespace std::chrono_literals;

namespace
{

/// Events as readable words.
QStringList words(const std::vector<JobEvent>& events)
{
    QStringList list;
    for (const JobEvent& event : events) {
        if (const auto* stage = std::get_if<StageStarted>(&event))
            list << QString::fromStdString(stage->stage);
        else if (const auto* progress = std::get_if<StageProgress>(&event))
            list << QString::number(progress->done);
        else if (const auto* point = std::get_if<LossPoint>(&event))
            list << QStringLiteral("step%1").arg(point->step);
        else if (const auto* message = std::get_if<JobMessage>(&event))
            list << QString::fromStdString(message->text);
    }
    return list;
}

/// Records what a runner reports, in order.
struct Log {
    QStringList lines;
    int batches = 0;
    explicit Log(JobRunner& runner)
    {
        QObject::connect(&runner, &JobRunner::jobStarted, &runner,
                         [this](JobId job) { lines << QStringLiteral("start %1").arg(job); });
        QObject::connect(&runner, &JobRunner::eventsArrived, &runner,
                         [this](JobId, const std::vector<JobEvent>& events) {
                             ++batches;
                             lines << words(events);
                         });
        QObject::connect(&runner, &JobRunner::jobEnded, &runner,
                         [this](JobId job, const JobEnd& end) {
                             static const char* names[] = {"queued",   "running",   "cancelling",
                                                           "finished", "cancelled", "failed"};
                             lines << QStringLiteral("%1 %2").arg(names[int(end.state)]).arg(job);
                             if (end.error)
                                 lines << QString::fromStdString(end.error->text());
                         });
    }
};

Status untilCancelled(JobContext& job)
{
    while (!job.stopRequested())
        std::this_thread::sleep_for(1ms);
    return cancelled();
}

} // namespace

class JobRunnerTest : public QObject
{
    Q_OBJECT
private slots:
    void staleEventsAreDropped();
    void onlyTheLastProgressOfAStageIsKept();
    void jobsRunInOrderAndDeliverTheirEvents();
    void failuresCarryTheirError();
    void exceptionsDoNotEscape();
    void cancelledIsNotFinished();
    void waitingJobsAreCancelledAtOnce();
    void manyEventsArriveInFewBatches();
    void destructionStopsAndJoins();
    void workRunsOffTheGuiThread();
    void onlyTheLatestAnswerIsDelivered();
    void droppedRequestsAreSilent();
};

void JobRunnerTest::staleEventsAreDropped()
{
    EventQueue queue;
    queue.push(1, LossPoint{LayerIndex(0), 1, 0.5, {}, 0});
    queue.push(2, LossPoint{LayerIndex(0), 2, 0.5, {}, 0});
    queue.push(1, JobMessage{JobMessage::Level::Info, "late"});
    QCOMPARE(words(queue.take(2)), QStringList({"step2"}));
    QVERIFY(queue.take(1).empty());
}

void JobRunnerTest::onlyTheLastProgressOfAStageIsKept()
{
    EventQueue queue;
    queue.push(1, StageStarted{"convert", 8, "layers", {}});
    queue.push(1, StageProgress{"convert", 1, 8});
    queue.push(1, StageProgress{"convert", 8, 8});
    queue.push(1, StageStarted{"refine", 8, "layers", {}});
    queue.push(1, LossPoint{LayerIndex(0), 1, 0.5, {}, 0});
    queue.push(1, StageProgress{"refine", 2, 8});
    queue.push(1, LossPoint{LayerIndex(0), 2, 0.4, {}, 0});
    queue.push(1, StageProgress{"refine", 3, 8});
    QCOMPARE(words(queue.take(1)), QStringList({"convert", "8", "refine", "step1", "step2", "3"}));
}

void JobRunnerTest::jobsRunInOrderAndDeliverTheirEvents()
{
    JobRunner runner;
    Log log(runner);
    for (const char* text : {"one", "two"})
        runner.enqueue({text, [text](JobContext& job) -> Status {
                            job.info(text);
                            return {};
                        }});
    QVERIFY(runner.busy());
    QTRY_VERIFY(!runner.busy());
    QCOMPARE(log.lines,
             QStringList({"start 1", "one", "finished 1", "start 2", "two", "finished 2"}));
}

void JobRunnerTest::failuresCarryTheirError()
{
    JobRunner runner;
    Log log(runner);
    runner.enqueue({"bad", [](JobContext&) -> Status {
                        return badInput("config.json lacks hidden_size", "/models/x");
                    }});
    QTRY_VERIFY(!runner.busy());
    QCOMPARE(log.lines,
             QStringList({"start 1", "failed 1", "/models/x: config.json lacks hidden_size"}));
}

void JobRunnerTest::exceptionsDoNotEscape()
{
    JobRunner runner;
    Log log(runner);
    runner.enqueue(
        {"throws", [](JobContext&) -> Status { throw std::runtime_error("out of range"); }});
    QTRY_VERIFY(!runner.busy());
    QCOMPARE(log.lines, QStringList({"start 1", "failed 1", "out of range"}));
}

void JobRunnerTest::cancelledIsNotFinished()
{
    JobRunner runner;
    Log log(runner);
    QSignalSpy requested(&runner, &JobRunner::cancelRequested);
    const JobId job = runner.enqueue({"long", untilCancelled});
    QTRY_COMPARE(runner.current(), job);
    runner.cancel(job);
    QCOMPARE(requested.size(), 1);
    QTRY_VERIFY(!runner.busy());
    QCOMPARE(log.lines, QStringList({"start 1", "cancelled 1"}));
}

void JobRunnerTest::waitingJobsAreCancelledAtOnce()
{
    JobRunner runner;
    Log log(runner);
    runner.enqueue({"long", untilCancelled});
    const JobId second = runner.enqueue({"never runs", [](JobContext&) -> Status { return {}; }});
    QTRY_COMPARE(runner.current(), JobId(1));
    runner.cancel(second);
    QCOMPARE(log.lines, QStringList({"start 1", "cancelled 2"}));
    runner.cancelAll();
    QTRY_VERIFY(!runner.busy());
    QCOMPARE(log.lines.last(), QStringLiteral("cancelled 1"));
}

void JobRunnerTest::manyEventsArriveInFewBatches()
{
    JobRunner runner;
    Log log(runner);
    QElapsedTimer clock;
    clock.start();
    runner.enqueue({"busy", [](JobContext& job) -> Status {
                        for (int step = 1; step <= 2000; ++step) {
                            job.emitEvent(LossPoint{LayerIndex(0), step, 1.0 / step, {}, 0});
                            std::this_thread::sleep_for(100us);
                        }
                        return {};
                    }});
    QTRY_VERIFY_WITH_TIMEOUT(!runner.busy(), 60000);
    // At most one batch per interval, and one at the end; none of the points is lost.
    QVERIFY(log.batches <= clock.elapsed() / JobRunner::coalescingMs + 1);
    QCOMPARE(log.lines.size(), 2002);
    QCOMPARE(log.lines[1], QStringLiteral("step1"));
    QCOMPARE(log.lines[2000], QStringLiteral("step2000"));
}

void JobRunnerTest::destructionStopsAndJoins()
{
    std::atomic<bool> left = false;
    {
        JobRunner runner;
        runner.enqueue({"long", [&left](JobContext& job) {
                            Status status = untilCancelled(job);
                            left = true;
                            return status;
                        }});
        QTRY_COMPARE(runner.current(), JobId(1));
    }
    QVERIFY(left);
}

void JobRunnerTest::workRunsOffTheGuiThread()
{
    JobRunner runner;
    std::atomic<bool> same = true;
    const auto here = std::this_thread::get_id();
    runner.enqueue({"where", [&](JobContext&) -> Status {
                        same = std::this_thread::get_id() == here;
                        return {};
                    }});
    QTRY_VERIFY(!runner.busy());
    QVERIFY(!same);
}

void JobRunnerTest::onlyTheLatestAnswerIsDelivered()
{
    LatestTask task;
    QSignalSpy busy(&task, &LatestTask::busyChanged);
    QList<int> answers;
    std::latch go(1);
    const auto deliver = [&answers](int answer) { answers << answer; };
    task.start(
        [&go] {
            go.wait();
            return 1;
        },
        deliver);
    task.start([] { return 2; }, deliver);
    task.start([] { return 3; }, deliver);
    QVERIFY(task.busy());
    go.count_down();
    QTRY_COMPARE(answers, QList<int>({3}));
    QVERIFY(!task.busy());
    QCOMPARE(busy.size(), 2);
}

void JobRunnerTest::droppedRequestsAreSilent()
{
    LatestTask task;
    QList<int> answers;
    task.start([] { return 1; }, [&answers](int answer) { answers << answer; });
    task.drop();
    QTRY_VERIFY(!task.busy());
    QVERIFY(answers.isEmpty());
}

QTEST_GUILESS_MAIN(JobRunnerTest)
#include "tst_job_runner.moc"
