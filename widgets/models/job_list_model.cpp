// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/models/job_list_model.h"

#include <cmath>
#include <limits>

#include <QTime>

#include "widgets/common/format.h"
#include "widgets/common/plain_text.h"

namespace mla::ui
{

QString jobStateText(JobState state)
{
    switch (state) {
    case JobState::Queued:
        return JobListModel::tr("Waiting");
    case JobState::Running:
        return JobListModel::tr("Running");
    case JobState::Cancelling:
        return JobListModel::tr("Cancelling…");
    case JobState::Finished:
        return JobListModel::tr("Finished");
    case JobState::Cancelled:
        return JobListModel::tr("Cancelled");
    case JobState::Failed:
        return JobListModel::tr("Failed");
    }
    return {};
}

namespace
{

bool isActive(JobState state)
{
    return state == JobState::Running || state == JobState::Cancelling;
}

} // namespace

void JobListModel::addJob(JobId job, const QString& title)
{
    const int row = static_cast<int>(m_jobs.size());
    beginInsertRows({}, row, row);
    Job& added = m_jobs.emplace_back();
    added.id = job;
    added.title = title;
    endInsertRows();
}

void JobListModel::setRunning(JobId job)
{
    const int row = rowOf(job);
    if (row < 0)
        return;
    Job& entry = m_jobs[static_cast<std::size_t>(row)];
    entry.state = JobState::Running;
    entry.running.start();
    note(entry, tr("Started"));
    rowChanged(row);
}

void JobListModel::setCancelling(JobId job)
{
    const int row = rowOf(job);
    if (row < 0)
        return;
    m_jobs[static_cast<std::size_t>(row)].state = JobState::Cancelling;
    rowChanged(row);
}

void JobListModel::setEnded(JobId job, const JobEnd& end)
{
    const int row = rowOf(job);
    if (row < 0)
        return;
    Job& entry = m_jobs[static_cast<std::size_t>(row)];
    entry.seconds = entry.running.isValid() ? elapsed(entry) : 0;
    entry.state = end.state;
    note(entry,
         end.error ? tr("Failed: %1").arg(text(end.error->text())) : jobStateText(end.state));
    rowChanged(row);
}

void JobListModel::applyEvents(JobId job, const std::vector<JobEvent>& events)
{
    const int row = rowOf(job);
    if (row < 0)
        return;
    for (const JobEvent& event : events)
        apply(m_jobs[static_cast<std::size_t>(row)], event);
    rowChanged(row);
}

void JobListModel::apply(Job& job, const JobEvent& event)
{
    if (const auto* stage = std::get_if<StageStarted>(&event)) {
        job.stage = text(stage->stage);
        job.unit = text(stage->unit);
        job.total = stage->total;
        job.done = 0;
        job.stageRunning.start();
        const QString of = stage->run.empty() ? QString() : QLatin1Char(' ') + text(stage->run);
        note(job, tr("%1%2: %3 %4").arg(job.stage, of).arg(job.total).arg(job.unit));
    } else if (const auto* progress = std::get_if<StageProgress>(&event)) {
        job.done = progress->done;
        job.total = progress->total;
    } else if (const auto* layer = std::get_if<LayerFinished>(&event)) {
        QString line =
            tr("layer %1 done in %2 s").arg(layer->layer.value).arg(numberText(layer->seconds, 1));
        if (layer->relativeErrorAfter)
            line += tr(", error %1 → %2")
                        .arg(numberText(layer->relativeErrorBefore, 3),
                             numberText(layer->relativeErrorAfter, 3));
        note(job, layer->keptConverted ? line + tr(", converted weights kept") : line);
    } else if (const auto* message = std::get_if<JobMessage>(&event)) {
        const bool warning = message->level == JobMessage::Level::Warning;
        note(job, warning ? tr("Warning: %1").arg(text(message->text)) : text(message->text));
    }
}

void JobListModel::note(Job& job, const QString& line)
{
    job.log +=
        QTime::currentTime().toString(QStringLiteral("HH:mm:ss  ")) + line + QLatin1Char('\n');
    emit logChanged(job.id);
}

void JobListModel::refreshTimes()
{
    for (std::size_t row = 0; row < m_jobs.size(); ++row)
        if (isActive(m_jobs[row].state))
            emit dataChanged(index(static_cast<int>(row), Elapsed),
                             index(static_cast<int>(row), Remaining));
}

double JobListModel::elapsed(const Job& job)
{
    return isActive(job.state) ? static_cast<double>(job.running.elapsed()) / 1000 : job.seconds;
}

double JobListModel::remaining(const Job& job)
{
    if (job.state != JobState::Running || job.done <= 0 || job.total <= 0)
        return std::numeric_limits<double>::quiet_NaN();
    const double spent = static_cast<double>(job.stageRunning.elapsed()) / 1000;
    return spent * (job.total - job.done) / job.done;
}

QString JobListModel::progressText(const Job& job)
{
    if (job.total <= 0)
        return {};
    const double done = std::floor(job.done * 10) / 10;
    return QStringLiteral("%1 / %2 %3").arg(done).arg(job.total).arg(job.unit);
}

QString JobListModel::shownText(const Job& job, int column)
{
    switch (column) {
    case Title:
        return job.title;
    case State:
        return jobStateText(job.state);
    case Stage:
        return job.stage;
    case Progress:
        return progressText(job);
    case Elapsed:
        return job.running.isValid() ? durationText(elapsed(job)) : missingText();
    default:
        return durationText(remaining(job));
    }
}

QString JobListModel::statusLine(JobId job) const
{
    const int row = rowOf(job);
    if (row < 0)
        return {};
    const Job& entry = m_jobs[static_cast<std::size_t>(row)];
    QStringList parts{entry.state == JobState::Cancelling ? jobStateText(entry.state) : entry.stage,
                      progressText(entry)};
    if (const double left = remaining(entry); std::isfinite(left))
        parts << tr("%1 left").arg(durationText(left));
    parts.removeAll(QString());
    return parts.join(QStringLiteral(" · "));
}

JobId JobListModel::jobAt(int row) const
{
    return row >= 0 && row < static_cast<int>(m_jobs.size())
               ? m_jobs[static_cast<std::size_t>(row)].id
               : 0;
}

int JobListModel::rowOf(JobId job) const
{
    for (std::size_t row = 0; row < m_jobs.size(); ++row)
        if (m_jobs[row].id == job)
            return static_cast<int>(row);
    return -1;
}

JobState JobListModel::stateOf(JobId job) const
{
    const int row = rowOf(job);
    return row < 0 ? JobState::Queued : m_jobs[static_cast<std::size_t>(row)].state;
}

QString JobListModel::logOf(JobId job) const
{
    const int row = rowOf(job);
    return row < 0 ? QString() : m_jobs[static_cast<std::size_t>(row)].log;
}

void JobListModel::rowChanged(int row)
{
    emit dataChanged(index(row, 0), index(row, Columns - 1));
}

int JobListModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_jobs.size());
}

int JobListModel::columnCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : Columns;
}

QVariant JobListModel::data(const QModelIndex& index, int role) const
{
    if (!index.isValid())
        return {};
    const Job& job = m_jobs[static_cast<std::size_t>(index.row())];
    if (role == Qt::DisplayRole)
        return shownText(job, index.column());
    if (role == progressRole && job.total > 0)
        return job.done / job.total;
    if (role == Qt::TextAlignmentRole && index.column() >= Elapsed)
        return int(Qt::AlignRight | Qt::AlignVCenter);
    return {};
}

QVariant JobListModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal)
        return {};
    if (role == Qt::ToolTipRole && section == Remaining)
        return tr("Estimate for the current stage");
    if (role != Qt::DisplayRole)
        return {};
    switch (section) {
    case Title:
        return tr("Job");
    case State:
        return tr("State");
    case Stage:
        return tr("Stage");
    case Progress:
        return tr("Progress");
    case Elapsed:
        return tr("Elapsed");
    default:
        return tr("Remaining");
    }
}

} // namespace mla::ui
