// SPDX-License-Identifier: GPL-3.0-or-later
// Two or more runs of the study beside each other: curves over each other, differences, settings.
#pragma once

#include <vector>

#include "core/report/run_comparison.h"
#include "widgets/models/core_table_model.h"
#include "widgets/pages/page.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QListWidget;
class QTableView;

namespace mla::ui
{

class EmptyState;
class FigureChoice;

class ComparePage : public Page
{
    Q_OBJECT
public:
    ComparePage(StudyDocument& document, SelectionModel& selection, QWidget* parent = nullptr);

    /// Ids of the compared runs, in the study's order. The first is the one compared with, unless
    /// another was chosen.
    [[nodiscard]] QStringList compared() const;
    void setCompared(const QStringList& runs);

protected:
    void refresh() override;
    void showRun() override {} // what is compared is chosen here

private:
    enum TableIndex { Measures, Layers, Settings };
    QWidget* buildRuns();
    QWidget* buildTable();
    [[nodiscard]] Runs runs() const; ///< the one compared with first
    [[nodiscard]] Table table() const;
    void showComparison();
    void showTable();
    void fillBase();
    void changeEvent(QEvent* event) override;

    QListWidget* m_runs;
    QComboBox* m_base;
    FigureChoice* m_figures;
    CoreTableModel* m_model;
    QTableView* m_view;
    QComboBox* m_choice;
    QCheckBox* m_all;
    QLabel* m_hint;
    EmptyState* m_state = nullptr;
};

} // namespace mla::ui
