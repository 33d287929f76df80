// SPDX-License-Identifier: GPL-3.0-or-later
// The user's jobs on a Slurm cluster.
#pragma once

#include <vector>

#include <QAbstractTableModel>

#include "core/pipeline/slurm_queue.h"

namespace mla::ui
{

class ClusterJobModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    enum ColumnIndex { Id, Name, State, Elapsed, Limit, Where, Columns };

    explicit ClusterJobModel(QObject* parent = nullptr) : QAbstractTableModel(parent) {}

    /// Rows whose id stays are kept, so that a selection survives.
    void setJobs(std::vector<ClusterJob> jobs);
    [[nodiscard]] QString idAt(int row) const; ///< "" if there is none

    [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
    [[nodiscard]] QVariant headerData(int section, Qt::Orientation, int role) const override;

private:
    void removeOthers(const std::vector<ClusterJob>& jobs);

    std::vector<ClusterJob> m_jobs;
};

} // namespace mla::ui
