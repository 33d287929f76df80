// SPDX-License-Identifier: GPL-3.0-or-later
// The jobs of this session: what waits, what runs and how far it is, how each ended.
#pragma once

#include <vector>

#include <QAbstractTableModel>
#include <QElapsedTimer>

#include "widgets/jobs/job_runner.h"

namespace mla::ui
{

class JobListModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    enum ColumnIndex { Title, State, Stage, Progress, Elapsed, Remaining, Columns };
    static constexpr int progressRole = Qt::UserRole; ///< 0..1 of the current stage, or invalid

    explicit JobListModel(QObject* parent = nullptr) : QAbstractTableModel(parent) {}

    void addJob(JobId job, const QString& title);
    void setRunning(JobId job);
    void setCancelling(JobId job);
    void applyEvents(JobId job, const std::vector<JobEvent>& events);
    void setEnded(JobId job, const JobEnd& end);
    void refreshTimes(); ///< once a second while a job runs

    [[nodiscard]] JobId jobAt(int row) const; ///< 0 if there is none
    [[nodiscard]] int rowOf(JobId job) const;
    [[nodiscard]] JobState stateOf(JobId job) const;
    [[nodiscard]] QString logOf(JobId job) const;      ///< its messages, one a line
    [[nodiscard]] QString statusLine(JobId job) const; ///< "refine 3/8 layers, 0:12 left"

    [[nodiscard]] int rowCount(const QModelIndex& parent) const override;
    [[nodiscard]] int columnCount(const QModelIndex& parent) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
    [[nodiscard]] QVariant headerData(int section, Qt::Orientation, int role) const override;

signals:
    void logChanged(mla::ui::JobId job);

private:
    struct Job {
        JobId id = 0;
        QString title, stage, unit, log;
        double done = 0;
        int total = 0;
        JobState state = JobState::Queued;
        QElapsedTimer running, stageRunning;
        double seconds = 0; ///< once it has ended
    };
    [[nodiscard]] static double elapsed(const Job& job);
    [[nodiscard]] static double remaining(const Job& job); ///< of the stage; NaN if unknown
    [[nodiscard]] static QString progressText(const Job& job);
    [[nodiscard]] static QString shownText(const Job& job, int column);
    void apply(Job& job, const JobEvent& event);
    void note(Job& job, const QString& line);
    void rowChanged(int row);

    std::vector<Job> m_jobs;
};

[[nodiscard]] QString jobStateText(JobState state);

} // namespace mla::ui
