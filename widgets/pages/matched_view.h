// SPDX-License-Identifier: GPL-3.0-or-later
// Did functional reconstruction help here? Matched cells as a table, the change in each, and the
// crossover of families and converters.
#pragma once

#include <QWidget>

#include "core/report/study_cells.h"
#include "widgets/models/core_table_model.h"

class QComboBox;
class QLabel;
class QSortFilterProxyModel;
class QTableView;

namespace mla::ui
{

class EmptyState;
class FigureChoice;

class MatchedView : public QWidget
{
    Q_OBJECT
public:
    MatchedView(FigureChoice* deltas, FigureChoice* crossover, QWidget* parent = nullptr);

    void setCells(StudyCells cells);
    void selectRun(const QString& run); ///< marks the first cell of a functional draft
    void setDark(bool dark);

signals:
    void runActivated(const QString& run);
    void exportFailed(const QString& message);

private:
    void buildView();
    [[nodiscard]] QWidget* buildTable();
    void showTable();
    [[nodiscard]] Table shownTable() const;
    [[nodiscard]] QString summary() const;

    CoreTableModel* m_model;
    QSortFilterProxyModel* m_sorted;
    QTableView* m_view;
    QComboBox* m_choice;
    QLabel* m_summary;
    FigureChoice* m_deltas;
    FigureChoice* m_crossover;
    EmptyState* m_state;
    StudyCells m_cells;
};

} // namespace mla::ui
