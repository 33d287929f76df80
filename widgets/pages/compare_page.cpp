// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/pages/compare_page.h"

#include <algorithm>

#include <QCheckBox>
#include <QComboBox>
#include <QEvent>
#include <QHeaderView>
#include <QLabel>
#include <QListWidget>
#include <QSignalBlocker>
#include <QSplitter>
#include <QTableView>
#include <QVBoxLayout>

#include "core/report/report_text.h"
#include "widgets/common/empty_state.h"
#include "widgets/common/palette.h"
#include "widgets/common/plain_text.h"
#include "widgets/common/row_table.h"
#include "widgets/common/table_export.h"
#include "widgets/pages/figure_choice.h"

namespace mla::ui
{

ComparePage::ComparePage(StudyDocument& document, SelectionModel& selection, QWidget* parent)
    : Page(document, selection, parent), m_runs(new QListWidget(this)), m_base(new QComboBox(this)),
      m_figures(new FigureChoice(addPlot(tr("Compared curves")), tr("Compared curves"), this)),
      m_model(new CoreTableModel(this)), m_view(new QTableView(this)),
      m_choice(new QComboBox(this)), m_all(new QCheckBox(tr("&equal ones too"), this)),
      m_hint(new QLabel(this))
{
    auto* right = new QSplitter(Qt::Vertical, this);
    right->addWidget(m_figures);
    right->addWidget(buildTable());
    right->setSizes({1100, 1000});
    auto* splitter = new QSplitter(Qt::Horizontal, this);
    splitter->addWidget(buildRuns());
    splitter->addWidget(right);
    splitter->setStretchFactor(1, 1);
    splitter->setSizes({260, 900});
    for (QSplitter* each : {right, splitter})
        each->setChildrenCollapsible(false);
    m_state = new EmptyState(splitter, this);
    m_state->setText(tr("Nothing to compare yet"),
                     tr("A comparison needs two runs in one study: File › New run adds them."));
    auto* layout = new QVBoxLayout(this);
    layout->addWidget(m_state);
    connect(&selection, &SelectionModel::layerChanged, this, &ComparePage::showComparison);
    ComparePage::refresh();
}

QWidget* ComparePage::buildRuns()
{
    m_runs->setAccessibleName(tr("Runs to compare"));
    m_runs->setTextElideMode(Qt::ElideMiddle);
    connect(m_runs, &QListWidget::itemChanged, this, [this] {
        fillBase();
        showComparison();
    });
    m_base->setAccessibleName(tr("Compared with"));
    m_base->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    connect(m_base, &QComboBox::currentIndexChanged, this, &ComparePage::showComparison);
    m_hint->setWordWrap(true);
    auto* part = new QWidget(this);
    auto* column = new QVBoxLayout(part);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(m_runs, 1);
    auto* title = new QLabel(tr("&Differences from"), part);
    title->setBuddy(m_base);
    column->addWidget(title);
    column->addWidget(m_base);
    column->addWidget(m_hint);
    return part;
}

QWidget* ComparePage::buildTable()
{
    m_view->setModel(m_model);
    m_view->setAccessibleName(tr("Comparison"));
    setUpRowTable(*m_view);
    m_view->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
    m_choice->setAccessibleName(tr("Table"));
    m_choice->addItems({tr("Measures"), tr("Error of each layer"), tr("Settings")});
    connect(m_choice, &QComboBox::currentIndexChanged, this, &ComparePage::showTable);
    m_all->setToolTip(tr("Show settings that all compared runs share as well"));
    connect(m_all, &QCheckBox::toggled, this, &ComparePage::showTable);
    auto* exports = new TableExportButton([this] { return table(); }, this);
    connect(exports, &TableExportButton::exportFailed, this, &Page::failed);
    auto* line = new QHBoxLayout;
    line->addWidget(m_choice);
    line->addWidget(m_all);
    line->addStretch(1);
    line->addWidget(exports);
    auto* part = new QWidget(this);
    auto* column = new QVBoxLayout(part);
    column->setContentsMargins(0, 0, 0, 0);
    column->addLayout(line);
    column->addWidget(m_view, 1);
    return part;
}

QStringList ComparePage::compared() const
{
    QStringList ids;
    for (int row = 0; row < m_runs->count(); ++row)
        if (m_runs->item(row)->checkState() == Qt::Checked)
            ids << m_runs->item(row)->data(Qt::UserRole).toString();
    return ids;
}

void ComparePage::setCompared(const QStringList& runs)
{
    {
        const QSignalBlocker quiet(m_runs);
        for (int row = 0; row < m_runs->count(); ++row) {
            QListWidgetItem* item = m_runs->item(row);
            const bool chosen = runs.contains(item->data(Qt::UserRole).toString());
            item->setCheckState(chosen ? Qt::Checked : Qt::Unchecked);
        }
    }
    fillBase();
    showComparison();
}

/// Runs keep their marks by id; a study that is opened starts with all of its first converter's.
void ComparePage::refresh()
{
    const QStringList before = compared();
    const std::vector<RunRecord>& runs = m_document.study().runs;
    {
        const QSignalBlocker quiet(m_runs);
        m_runs->clear();
        for (const RunRecord& run : runs) {
            auto* item = new QListWidgetItem(text(runLabel(run)), m_runs);
            item->setToolTip(text(run.id));
            item->setData(Qt::UserRole, text(run.id));
            item->setFlags(item->flags() | Qt::ItemIsUserCheckable);
            const bool first = before.isEmpty() && run.converter == runs.front().converter;
            item->setCheckState(first || before.contains(text(run.id)) ? Qt::Checked
                                                                       : Qt::Unchecked);
        }
    }
    m_state->setEmpty(runs.size() < 2);
    fillBase();
    showComparison();
}

/// Keeps the run compared with as long as it is among the compared.
void ComparePage::fillBase()
{
    const QString before = m_base->currentData().toString();
    const QSignalBlocker quiet(m_base);
    m_base->clear();
    for (int row = 0; row < m_runs->count(); ++row) {
        const QListWidgetItem* item = m_runs->item(row);
        if (item->checkState() == Qt::Checked)
            m_base->addItem(item->text(), item->data(Qt::UserRole));
    }
    m_base->setCurrentIndex(std::max(0, m_base->findData(before)));
}

Runs ComparePage::runs() const
{
    Runs runs;
    if (const RunRecord* base = m_document.run(m_base->currentData().toString()))
        runs.push_back(base);
    for (const QString& id : compared())
        if (const RunRecord* run = m_document.run(id); run && !std::ranges::count(runs, run))
            runs.push_back(run);
    return runs;
}

Table ComparePage::table() const
{
    switch (m_choice->currentIndex()) {
    case Layers:
        return layerComparison(runs());
    case Settings:
        return settingsComparison(m_document.study(), runs(), m_all->isChecked());
    default:
        return measureComparison(m_document.study(), runs());
    }
}

void ComparePage::showComparison()
{
    const Runs chosen = runs();
    const std::optional<int> selected = m_selection.layer();
    const auto layer = selected ? std::optional(LayerIndex(*selected)) : std::nullopt;
    m_hint->setText(chosen.size() < 2 ? tr("Check two runs or more.") : QString());
    m_hint->setVisible(chosen.size() < 2);
    std::vector<Figure> figures = {layerErrorComparison(chosen), lossComparison(chosen, layer),
                                   retainedEnergyComparison(chosen)};
    std::erase_if(figures, [](const Figure& figure) { return figure.series.empty(); });
    m_figures->setFigures(std::move(figures), tr("Check the runs to compare, at the left."));
    for (PlotView* plot : plots())
        plot->setSelectedLayer(selected);
    showTable();
}

void ComparePage::showTable()
{
    m_all->setVisible(m_choice->currentIndex() == Settings);
    m_model->setDark(isDark(palette()));
    m_model->setTable(table());
}

void ComparePage::changeEvent(QEvent* event)
{
    Page::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        m_model->setDark(isDark(palette()));
}

} // namespace mla::ui
