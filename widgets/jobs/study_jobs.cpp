// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/jobs/study_jobs.h"

#include "widgets/common/plain_text.h"

namespace mla::ui
{

namespace
{

QString titleOf(const StudyPlan& plan)
{
    const QString study = text(plan.study.stem());
    return plan.resume ? StudyJobs::tr("%1 (resumed)").arg(study) : study;
}

} // namespace

StudyJobs::StudyJobs(StudyRunner run, QObject* parent) : QObject(parent), m_run(std::move(run))
{
    m_clock.setInterval(1000);
    connect(&m_clock, &QTimer::timeout, &m_list, &JobListModel::refreshTimes);
    connect(&m_runner, &JobRunner::jobQueued, &m_list, &JobListModel::addJob);
    connect(&m_runner, &JobRunner::jobStarted, this, &StudyJobs::begin);
    connect(&m_runner, &JobRunner::cancelRequested, &m_list, &JobListModel::setCancelling);
    connect(&m_runner, &JobRunner::eventsArrived, this, &StudyJobs::consume);
    connect(&m_runner, &JobRunner::jobEnded, this, &StudyJobs::end);
}

JobId StudyJobs::start(const StudyPlan& plan)
{
    JobTask task;
    task.title = titleOf(plan);
    task.study = plan.study;
    task.folder = plan.study.parent_path();
    task.work = [run = m_run, plan](JobContext& context) -> Status {
        MLA_CHECK(run(context, plan));
        return {};
    };
    return enqueue(task, plan);
}

JobId StudyJobs::start(const JobTask& task)
{
    return enqueue(task, std::nullopt);
}

JobId StudyJobs::enqueue(const JobTask& task, const std::optional<StudyPlan>& plan)
{
    const JobId job = m_runner.enqueue({task.title, task.work});
    m_known[job] = {task, plan};
    emit queued(job);
    return job;
}

JobId StudyJobs::resume(JobId ended)
{
    const auto found = m_known.find(ended);
    if (found == m_known.end())
        return 0;
    const Known known = found->second;
    if (!known.plan)
        return start(known.task);
    StudyPlan again = *known.plan;
    again.resume = true;
    return start(again);
}

const StudyPlan* StudyJobs::plan(JobId job) const
{
    const auto found = m_known.find(job);
    return found == m_known.end() || !found->second.plan ? nullptr : &*found->second.plan;
}

JobTask StudyJobs::task(JobId job) const
{
    const auto found = m_known.find(job);
    return found == m_known.end() ? JobTask() : found->second.task;
}

void StudyJobs::begin(JobId job)
{
    m_list.setRunning(job);
    m_live.follow(job);
    m_clock.start();
    emit started(job);
}

void StudyJobs::consume(JobId job, const std::vector<JobEvent>& events)
{
    m_list.applyEvents(job, events);
    m_live.consume(job, events);
    bool stageBegan = false;
    for (const JobEvent& event : events) {
        stageBegan |= std::holds_alternative<StageStarted>(event);
        const auto* message = std::get_if<JobMessage>(&event);
        if (message && message->level == JobMessage::Level::Warning)
            emit warned(text(message->text));
    }
    emit progressed(job);
    // A stage begins when the one before it has been stored.
    if (stageBegan)
        announceStudy(job);
}

void StudyJobs::end(JobId job, const JobEnd& end)
{
    m_list.setEnded(job, end);
    m_live.end(job);
    m_clock.stop();
    announceStudy(job);
    if (const JobTask task = this->task(job); end.state == JobState::Finished && task.succeeded)
        task.succeeded();
    emit ended(job, end);
}

/// A task may belong to no study.
void StudyJobs::announceStudy(JobId job)
{
    if (const std::filesystem::path study = task(job).study; !study.empty())
        emit studyWritten(text(study));
}

} // namespace mla::ui
