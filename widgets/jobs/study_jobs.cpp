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
    const auto work = [run = m_run, plan](JobContext& context) -> Status {
        MLA_CHECK(run(context, plan));
        return {};
    };
    const JobId job = m_runner.enqueue({titleOf(plan), work});
    m_plans[job] = plan;
    emit queued(job);
    return job;
}

JobId StudyJobs::resume(JobId ended)
{
    const StudyPlan* plan = this->plan(ended);
    if (!plan)
        return 0;
    StudyPlan again = *plan;
    again.resume = true;
    return start(again);
}

const StudyPlan* StudyJobs::plan(JobId job) const
{
    const auto found = m_plans.find(job);
    return found == m_plans.end() ? nullptr : &found->second;
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
        emit studyWritten(text(m_plans[job].study));
}

void StudyJobs::end(JobId job, const JobEnd& end)
{
    m_list.setEnded(job, end);
    m_live.end(job);
    m_clock.stop();
    emit studyWritten(text(m_plans[job].study));
    emit ended(job, end);
}

} // namespace mla::ui
