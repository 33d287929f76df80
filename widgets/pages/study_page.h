// SPDX-License-Identifier: GPL-3.0-or-later
// What is in the study: checkpoints, runs and their parents, calibrations, measurements, and where
// each comes from.
#pragma once

#include "widgets/models/details_model.h"
#include "widgets/models/study_tree_model.h"
#include "widgets/pages/page.h"

class QLabel;
class QTableView;
class QTreeView;

namespace mla::ui
{

class EmptyState;

class StudyPage : public Page
{
    Q_OBJECT
public:
    StudyPage(StudyDocument& document, SelectionModel& selection, QWidget* parent = nullptr);

    /// Actions offered while no study is open.
    void setStartActions(const QList<QAction*>& actions);

protected:
    void refresh() override;
    void showRun() override;

private:
    void buildTree();
    void buildDetails();
    void expandRuns(const QModelIndex& index);
    void showDetails(const QModelIndex& index);

    StudyTreeModel* m_tree;
    DetailsModel* m_details;
    QTreeView* m_treeView;
    QTableView* m_detailsView;
    EmptyState* m_state;
};

} // namespace mla::ui
