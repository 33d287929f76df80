// SPDX-License-Identifier: GPL-3.0-or-later
// The jobs of this session with their messages; cancel and resume.
#pragma once

#include <QWidget>

#include "widgets/models/job_list_model.h"

class QLabel;
class QPlainTextEdit;
class QPushButton;
class QTableView;
class QTabWidget;

namespace mla::ui
{

class EmptyState;

class JobsPage : public QWidget
{
    Q_OBJECT
public:
    explicit JobsPage(JobListModel& jobs, QWidget* parent = nullptr);

    void addStartAction(QAction* action); ///< offered while there are no jobs
    /// A second tab beside this machine's jobs.
    void addCluster(QWidget* view);
    void select(JobId job);

signals:
    void cancelRequested(mla::ui::JobId job);
    void resumeRequested(mla::ui::JobId job); ///< of a cancelled or failed job
    void revealRequested(mla::ui::JobId job); ///< show its files

private:
    QWidget* buildButtons();
    [[nodiscard]] JobId current() const;
    void showCurrent();
    void showLog(JobId job);

    JobListModel& m_jobs;
    QTableView* m_view;
    QPlainTextEdit* m_log;
    QPushButton* m_cancel;
    QPushButton* m_resume;
    QPushButton* m_copy;
    QPushButton* m_reveal;
    EmptyState* m_state;
    QTabWidget* m_tabs = nullptr; ///< only with a cluster
};

} // namespace mla::ui
