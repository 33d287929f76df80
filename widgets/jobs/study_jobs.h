// SPDX-License-Identifier: GPL-3.0-or-later
// The jobs of the window, whole studies and others: queue, list, live record, and what is needed to
// run them again.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>

#include <QTimer>

#include "core/pipeline/pipeline.h"
#include "widgets/jobs/job_runner.h"
#include "widgets/jobs/live_run.h"
#include "widgets/models/job_list_model.h"

namespace mla::ui
{

using StudyRunner = std::function<Result<StudyOutcome>(JobContext&, const StudyPlan&)>;

/// A job that is no whole study.
struct JobTask {
    QString title;
    std::function<Status(JobContext&)> work; ///< runs on the worker thread
    std::filesystem::path study;             ///< what it adds to; may be empty
    std::filesystem::path folder;            ///< where its results are
    std::function<void()> succeeded;         ///< called on the GUI thread; may be empty
};

/// Lives on the GUI thread.
class StudyJobs : public QObject
{
    Q_OBJECT
public:
    explicit StudyJobs(StudyRunner run, QObject* parent = nullptr);

    JobId start(const StudyPlan& plan);
    JobId start(const JobTask& task);
    /// Queues a job that goes on where a cancelled or failed one stopped; a task that is no study
    /// starts again.
    JobId resume(JobId ended);
    void cancel(JobId job) { m_runner.cancel(job); }
    void cancelAll() { m_runner.cancelAll(); }
    [[nodiscard]] bool busy() const { return m_runner.busy(); }
    [[nodiscard]] JobId current() const { return m_runner.current(); }
    [[nodiscard]] const StudyPlan* plan(JobId job) const; ///< null for what is no study
    [[nodiscard]] JobTask task(JobId job) const;          ///< empty for an unknown job
    [[nodiscard]] JobListModel& list() { return m_list; }
    [[nodiscard]] LiveRun& live() { return m_live; }

signals:
    void queued(mla::ui::JobId job);
    void started(mla::ui::JobId job);
    void progressed(mla::ui::JobId job);
    void studyWritten(const QString& study); ///< a stage ended: the file has something new
    void warned(const QString& text);
    void ended(mla::ui::JobId job, const mla::ui::JobEnd& end);

private:
    JobId enqueue(const JobTask& task, const std::optional<StudyPlan>& plan);
    void begin(JobId job);
    void consume(JobId job, const std::vector<JobEvent>& events);
    void end(JobId job, const JobEnd& end);
    void announceStudy(JobId job);

    StudyRunner m_run;
    struct Known {
        JobTask task;
        std::optional<StudyPlan> plan;
    };
    std::map<JobId, Known> m_known;
    JobListModel m_list;
    LiveRun m_live;
    QTimer m_clock; ///< elapsed and remaining times while a job runs
    JobRunner m_runner;
};

} // namespace mla::ui
