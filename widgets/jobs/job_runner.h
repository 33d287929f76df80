// SPDX-License-Identifier: GPL-3.0-or-later
// Runs jobs one after another on a worker thread and reports them to the GUI thread.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include <QObject>
#include <QString>
#include <QTimer>

#include "core/base/job.h"
#include "core/base/result.h"
#include "widgets/jobs/event_queue.h"

namespace mla::ui
{

enum class JobState { Queued, Running, Cancelling, Finished, Cancelled, Failed };

struct JobRequest {
    QString title;
    std::function<Status(JobContext&)> work; ///< runs on the worker thread
};

/// How a job ended. A job that was asked to stop and stopped is Cancelled, never Finished.
struct JobEnd {
    JobState state = JobState::Finished;
    std::optional<Error> error; ///< set when state is Failed
};

/// Lives on the GUI thread, as do all its signals. At most one job runs; the rest wait in order.
/// Destruction asks the running job to stop and joins its thread.
class JobRunner : public QObject
{
    Q_OBJECT
public:
    static constexpr int coalescingMs = 50; ///< events reach the window at most 20 times a second

    explicit JobRunner(QObject* parent = nullptr);
    ~JobRunner() override;

    JobId enqueue(JobRequest request);
    /// A waiting job ends at once; the running one ends when it sees the request.
    void cancel(JobId job);
    void cancelAll();
    [[nodiscard]] bool busy() const { return m_current != 0 || !m_waiting.empty(); }
    [[nodiscard]] JobId current() const { return m_current; } ///< 0 when idle

signals:
    void jobQueued(mla::ui::JobId job, const QString& title);
    void jobStarted(mla::ui::JobId job);
    void cancelRequested(mla::ui::JobId job);
    void eventsArrived(mla::ui::JobId job, const std::vector<mla::JobEvent>& events);
    void jobEnded(mla::ui::JobId job, const mla::ui::JobEnd& end);

private:
    struct Waiting {
        JobId id;
        JobRequest request;
    };
    void startNext();
    void deliverEvents();
    void finish(JobId job, const Status& status);

    std::deque<Waiting> m_waiting;
    EventQueue m_events;
    QTimer m_timer;
    JobId m_lastId = 0, m_current = 0;
    std::jthread m_thread; ///< last member: stopped and joined before the rest goes
};

} // namespace mla::ui
