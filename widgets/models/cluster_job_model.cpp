// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/models/cluster_job_model.h"

#include <algorithm>

#include "widgets/common/plain_text.h"

namespace mla::ui
{

namespace
{

/// Slurm writes its states in capitals: "PENDING", "NODE_FAIL".
QString stateText(const std::string& state)
{
    QString text = ui::text(state).toLower();
    text.replace(QLatin1Char('_'), QLatin1Char(' '));
    return text;
}

auto withId(const std::string& id)
{
    return [&id](const ClusterJob& job) { return job.id == id; };
}

} // namespace

void ClusterJobModel::removeOthers(const std::vector<ClusterJob>& jobs)
{
    for (int row = rowCount() - 1; row >= 0; --row) {
        const auto gone = m_jobs.begin() + row;
        if (std::ranges::any_of(jobs, withId(gone->id)))
            continue;
        beginRemoveRows({}, row, row);
        m_jobs.erase(gone);
        endRemoveRows();
    }
}

void ClusterJobModel::setJobs(std::vector<ClusterJob> jobs)
{
    removeOthers(jobs);
    for (ClusterJob& job : jobs) {
        const auto known = std::ranges::find_if(m_jobs, withId(job.id));
        if (known == m_jobs.end()) {
            beginInsertRows({}, rowCount(), rowCount());
            m_jobs.push_back(std::move(job));
            endInsertRows();
        } else if (*known != job) {
            const int row = static_cast<int>(known - m_jobs.begin());
            *known = std::move(job);
            emit dataChanged(index(row, 0), index(row, Columns - 1));
        }
    }
}

QString ClusterJobModel::idAt(int row) const
{
    return row >= 0 && row < rowCount() ? text(m_jobs[static_cast<std::size_t>(row)].id)
                                        : QString();
}

int ClusterJobModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_jobs.size());
}

int ClusterJobModel::columnCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : Columns;
}

QVariant ClusterJobModel::data(const QModelIndex& index, int role) const
{
    if (!index.isValid() || (role != Qt::DisplayRole && role != Qt::ToolTipRole))
        return {};
    const ClusterJob& job = m_jobs[static_cast<std::size_t>(index.row())];
    switch (index.column()) {
    case Id:
        return text(job.id);
    case Name:
        return text(job.name);
    case State:
        return stateText(job.state);
    case Elapsed:
        return text(job.elapsed);
    case Limit:
        return text(job.limit);
    default:
        return text(job.where);
    }
}

QVariant ClusterJobModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole)
        return {};
    const QString names[] = {tr("Job"),     tr("Name"),  tr("State"),
                             tr("Elapsed"), tr("Limit"), tr("Nodes or reason")};
    return section >= 0 && section < Columns ? names[section] : QString();
}

} // namespace mla::ui
