// SPDX-License-Identifier: GPL-3.0-or-later
// What the user's jobs on a Slurm cluster are doing: followed while it is seen, cancelled from
// here.
#pragma once

#include <functional>

#include <QTimer>
#include <QWidget>

#include "widgets/jobs/latest_task.h"
#include "widgets/models/cluster_job_model.h"

class QLabel;
class QPushButton;
class QTableView;

namespace mla::ui
{

class EmptyState;

/// How the cluster is asked. Both are called off the GUI thread.
struct ClusterServices {
    std::function<Result<std::vector<ClusterJob>>()> list; ///< empty: there is no cluster
    std::function<Status(const std::string& id)> cancel;
};

class ClusterView : public QWidget
{
    Q_OBJECT
public:
    explicit ClusterView(ClusterServices services, QWidget* parent = nullptr);

    void refresh();

protected:
    void showEvent(QShowEvent* event) override;
    void hideEvent(QHideEvent* event) override;

private:
    void showJobs(const Result<std::vector<ClusterJob>>& jobs);
    void cancelCurrent();
    void showCurrent();

    ClusterServices m_services;
    ClusterJobModel* m_model;
    QTableView* m_view;
    QLabel* m_trouble; ///< why the list is not a new one
    QPushButton* m_cancel;
    EmptyState* m_state;
    QTimer m_timer;
    LatestTask m_listing, m_cancelling;
};

} // namespace mla::ui
