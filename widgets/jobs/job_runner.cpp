// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/jobs/job_runner.h"

#include <sys/resource.h>

#include <algorithm>
#include <exception>

namespace mla::ui
{

namespace
{

/// The calling thread, and those that it will start, compute where nothing else has to: the window
/// stays quick while a job uses every core. On Linux a thread has a nice value of its own.
void yieldToTheWindow()
{
    constexpr int niceness = 10;
    ::setpriority(PRIO_PROCESS, 0, niceness);
}

/// A job must not take the window down with it, whatever a library throws.
Status runGuarded(const std::function<Status(JobContext&)>& work, JobContext& context)
{
    try {
        return work(context);
    } catch (const std::exception& failure) {
        return computeFailed(failure.what());
    }
}

JobEnd describeEnd(const Status& status)
{
    if (status.ok())
        return {JobState::Finished, std::nullopt};
    if (status.error().code == ErrorCode::Cancelled)
        return {JobState::Cancelled, std::nullopt};
    return {JobState::Failed, status.error()};
}

} // namespace

JobRunner::JobRunner(QObject* parent) : QObject(parent)
{
    m_timer.setInterval(coalescingMs);
    connect(&m_timer, &QTimer::timeout, this, &JobRunner::deliverEvents);
}

JobRunner::~JobRunner()
{
    m_thread.request_stop();
    if (m_thread.joinable())
        m_thread.join();
}

JobId JobRunner::enqueue(JobRequest request)
{
    const JobId id = ++m_lastId;
    emit jobQueued(id, request.title);
    m_waiting.push_back({id, std::move(request)});
    // Queued, so that the caller knows the id before anything happens to the job.
    QMetaObject::invokeMethod(this, &JobRunner::startNext, Qt::QueuedConnection);
    return id;
}

void JobRunner::startNext()
{
    if (m_current != 0 || m_waiting.empty())
        return;
    Waiting next = std::move(m_waiting.front());
    m_waiting.pop_front();
    m_current = next.id;
    m_timer.start();
    emit jobStarted(next.id);
    m_thread = std::jthread([this, id = next.id,
                             work = std::move(next.request.work)](const std::stop_token& stop) {
        yieldToTheWindow();
        JobContext context(stop, [this, id](const JobEvent& event) { m_events.push(id, event); });
        const Status status = runGuarded(work, context);
        QMetaObject::invokeMethod(
            this, [this, id, status] { finish(id, status); }, Qt::QueuedConnection);
    });
}

void JobRunner::deliverEvents()
{
    const std::vector<JobEvent> events = m_events.take(m_current);
    if (!events.empty())
        emit eventsArrived(m_current, events);
}

void JobRunner::finish(JobId job, const Status& status)
{
    m_thread.join();
    m_timer.stop();
    deliverEvents();
    m_current = 0;
    emit jobEnded(job, describeEnd(status));
    startNext();
}

void JobRunner::cancel(JobId job)
{
    if (job == m_current && job != 0) {
        m_thread.request_stop();
        emit cancelRequested(job);
        return;
    }
    const auto found = std::find_if(m_waiting.begin(), m_waiting.end(),
                                    [job](const Waiting& waiting) { return waiting.id == job; });
    if (found == m_waiting.end())
        return;
    m_waiting.erase(found);
    emit jobEnded(job, {JobState::Cancelled, std::nullopt});
}

void JobRunner::cancelAll()
{
    while (!m_waiting.empty())
        cancel(m_waiting.back().id);
    if (m_current != 0)
        cancel(m_current);
}

} // namespace mla::ui
