// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/pages/matched_view.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QSortFilterProxyModel>
#include <QSplitter>
#include <QTableView>

#include "core/report/figure_data.h"
#include "widgets/common/empty_state.h"
#include "widgets/common/plain_text.h"
#include "widgets/common/row_table.h"
#include "widgets/common/table_export.h"
#include "widgets/pages/figure_choice.h"

namespace mla::ui
{

namespace
{

enum TableIndex { Cells, Crossover, Paper };

} // namespace

MatchedView::MatchedView(FigureChoice* deltas, FigureChoice* crossover, QWidget* parent)
    : QWidget(parent), m_model(new CoreTableModel(this)), m_sorted(new QSortFilterProxyModel(this)),
      m_view(new QTableView(this)), m_choice(new QComboBox(this)), m_summary(new QLabel(this)),
      m_deltas(deltas), m_crossover(crossover)
{
    buildView();
    auto* plots = new QSplitter(Qt::Horizontal, this);
    plots->addWidget(m_deltas);
    plots->addWidget(m_crossover);
    plots->setSizes({1600, 1000});
    auto* splitter = new QSplitter(Qt::Vertical, this);
    splitter->addWidget(buildTable());
    splitter->addWidget(plots);
    splitter->setSizes({1000, 1400});
    for (QSplitter* each : {plots, splitter})
        each->setChildrenCollapsible(false);
    m_state = new EmptyState(splitter, this);
    m_state->setText(tr("No cell can be compared yet"),
                     tr("A cell needs a partial-rope and a functional draft of one conversion, "
                        "refined with equal settings and measured on the same prompts: File › New "
                        "run makes both."));
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_state);
}

void MatchedView::buildView()
{
    m_sorted->setSourceModel(m_model);
    m_sorted->setSortRole(CoreTableModel::valueRole);
    m_view->setModel(m_sorted);
    m_view->setAccessibleName(tr("Matched cells"));
    m_view->setSortingEnabled(true);
    m_view->horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);
    setUpRowTable(*m_view);
    connect(m_view, &QTableView::activated, this, [this](const QModelIndex& index) {
        const auto row = static_cast<std::size_t>(m_sorted->mapToSource(index).row());
        if (m_choice->currentIndex() == Cells)
            emit runActivated(text(m_cells.cells.at(row).functionalRun));
    });
}

QWidget* MatchedView::buildTable()
{
    m_choice->setAccessibleName(tr("Table"));
    m_choice->addItems(
        {tr("Matched cells"), tr("By family and converter"), tr("Published in the paper")});
    connect(m_choice, &QComboBox::currentIndexChanged, this, &MatchedView::showTable);
    m_summary->setWordWrap(true);
    auto* exports = new TableExportButton([this] { return shownTable(); }, this);
    connect(exports, &TableExportButton::exportFailed, this, &MatchedView::exportFailed);
    auto* line = new QHBoxLayout;
    line->addWidget(m_choice);
    line->addWidget(m_summary, 1);
    line->addWidget(exports);
    auto* part = new QWidget(this);
    auto* layout = new QVBoxLayout(part);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addLayout(line);
    layout->addWidget(m_view, 1);
    return part;
}

void MatchedView::setCells(StudyCells cells)
{
    m_cells = std::move(cells);
    m_state->setEmpty(m_cells.cells.empty());
    m_summary->setText(summary());
    m_deltas->setFigures(matchedDeltas(m_cells), tr("No matched cell."));
    std::vector<Figure> grid;
    if (!m_cells.cells.empty())
        grid.push_back(crossoverGrid(m_cells));
    m_crossover->setFigures(std::move(grid), tr("No matched cell."));
    showTable();
}

QString MatchedView::summary() const
{
    const VerdictCounts counts = m_cells.summary().all;
    QString sentence = tr("%1 gain, %2 unchanged, %3 decline; %4 gain throughput as well.")
                           .arg(counts.gain)
                           .arg(counts.unchanged)
                           .arg(counts.decline)
                           .arg(counts.gainWithThroughput);
    if (!m_cells.unmatched.empty())
        sentence +=
            QLatin1Char(' ') + tr("Left out: %1, halves measured on other prompts or seeds.")
                                   .arg(m_cells.unmatched.size());
    return sentence;
}

void MatchedView::showTable()
{
    switch (m_choice->currentIndex()) {
    case Crossover:
        m_model->setTable(crossoverTable(m_cells));
        break;
    case Paper:
        m_model->setTable(paperTable());
        break;
    default:
        m_model->setTable(matchedTable(m_cells));
    }
    m_view->resizeColumnsToContents();
}

/// In the order on screen.
Table MatchedView::shownTable() const
{
    Table table = m_model->table();
    for (int row = 0; row < m_sorted->rowCount(); ++row) {
        const int source = m_sorted->mapToSource(m_sorted->index(row, 0)).row();
        table.rows[static_cast<std::size_t>(row)] =
            m_model->table().rows[static_cast<std::size_t>(source)];
    }
    return table;
}

void MatchedView::selectRun(const QString& run)
{
    m_view->clearSelection();
    if (m_choice->currentIndex() != Cells)
        return;
    for (std::size_t i = 0; i < m_cells.cells.size(); ++i) {
        if (text(m_cells.cells[i].functionalRun) != run)
            continue;
        const QModelIndex source = m_model->index(static_cast<int>(i), 0);
        m_view->setCurrentIndex(m_sorted->mapFromSource(source));
        return;
    }
}

void MatchedView::setDark(bool dark)
{
    m_model->setDark(dark);
}

} // namespace mla::ui
