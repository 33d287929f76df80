// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/pages/acceptance_page.h"

#include <QComboBox>
#include <QEvent>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QSignalBlocker>
#include <QSplitter>
#include <QTableView>
#include <QVBoxLayout>

#include "widgets/common/empty_state.h"
#include "widgets/common/palette.h"
#include "widgets/common/plain_text.h"
#include "widgets/common/table_export.h"
#include "widgets/models/model_table.h"

namespace mla::ui
{

AcceptancePage::AcceptancePage(StudyDocument& document, SelectionModel& selection, QWidget* parent)
    : Page(document, selection, parent), m_model(new AcceptanceTableModel(this)),
      m_filtered(new AcceptanceFilterProxy(this)), m_view(new QTableView(this)),
      m_filter(new QLineEdit(this)), m_count(new QLabel(this))
{
    auto* plots = new QSplitter(Qt::Horizontal, this);
    plots->addWidget(buildChoice(m_byTask, tr("Acceptance by task")));
    plots->addWidget(buildChoice(m_byPosition, tr("Acceptance by draft position")));
    auto* splitter = new QSplitter(Qt::Vertical, this);
    splitter->addWidget(buildTable());
    splitter->addWidget(plots);
    splitter->setSizes({1000, 1000});
    for (QSplitter* each : {plots, splitter})
        each->setChildrenCollapsible(false);
    m_state = new EmptyState(splitter, this);
    m_state->setText(tr("No acceptance was measured"),
                     tr("A run measures it when its dialog names task files: File › New run."));
    auto* layout = new QVBoxLayout(this);
    layout->addWidget(m_state);
    AcceptancePage::refresh();
}

QWidget* AcceptancePage::buildTable()
{
    auto* part = new QWidget(this);
    m_filtered->setSourceModel(m_model);
    m_view->setModel(m_filtered);
    m_view->setAccessibleName(tr("Acceptance measurements"));
    m_view->setSortingEnabled(true);
    m_view->horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);
    m_view->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_view->setSelectionMode(QAbstractItemView::SingleSelection);
    m_view->setAlternatingRowColors(true);
    m_view->setShowGrid(false);
    m_view->setTabKeyNavigation(false);
    m_view->verticalHeader()->hide();
    m_view->horizontalHeader()->setHighlightSections(false);
    m_view->verticalHeader()->setDefaultSectionSize(m_view->fontMetrics().height() + 6);
    m_view->horizontalHeader()->setSectionsMovable(true);
    m_view->horizontalHeader()->setStretchLastSection(true);
    connect(m_view, &QTableView::activated, this, [this](const QModelIndex& index) {
        const QString run = m_model->row(m_filtered->mapToSource(index).row()).run;
        if (m_document.run(run))
            m_selection.setRun(run);
    });
    m_filter->setPlaceholderText(tr("Filter by converter, variant, task, run…"));
    m_filter->setAccessibleName(tr("Filter measurements"));
    m_filter->setClearButtonEnabled(true);
    connect(m_filter, &QLineEdit::textChanged, this, [this](const QString& words) {
        m_filtered->setWords(words);
        updateCount();
    });
    auto* exports = new TableExportButton(
        [this] {
            return tableFromModel(*m_filtered, AcceptanceTableModel::valueRole,
                                  QStringLiteral("acceptance"), tr("Acceptance"));
        },
        this);
    connect(exports, &TableExportButton::exportFailed, this, &Page::failed);
    auto* line = new QHBoxLayout;
    line->addWidget(m_filter, 1);
    line->addWidget(m_count);
    line->addWidget(exports);
    auto* layout = new QVBoxLayout(part);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addLayout(line);
    layout->addWidget(m_view, 1);
    return part;
}

QWidget* AcceptancePage::buildChoice(Choice& choice, const QString& name)
{
    auto* part = new QWidget(this);
    choice.plot = addPlot(name);
    choice.box = new QComboBox(part);
    choice.box->setAccessibleName(name);
    choice.box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    connect(choice.box, &QComboBox::currentIndexChanged, this, [&choice](int index) {
        if (index >= 0)
            choice.plot->setFigure(choice.figures[static_cast<std::size_t>(index)]);
    });
    auto* layout = new QVBoxLayout(part);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(choice.box);
    layout->addWidget(choice.plot, 1);
    return part;
}

void AcceptancePage::fill(Choice& choice, std::vector<Figure> figures)
{
    const QString before = choice.box->currentText();
    const QSignalBlocker quiet(choice.box);
    choice.figures = std::move(figures);
    choice.box->clear();
    for (const Figure& figure : choice.figures)
        choice.box->addItem(text(figure.title));
    if (choice.figures.empty()) {
        choice.plot->clear(tr("Nothing was measured."));
        return;
    }
    choice.box->setCurrentIndex(std::max(0, choice.box->findText(before)));
    choice.plot->setFigure(choice.figures[static_cast<std::size_t>(choice.box->currentIndex())]);
}

void AcceptancePage::refresh()
{
    const StudyData& study = m_document.study();
    m_model->setDark(isDark(palette()));
    m_model->setRows(acceptanceRows(study));
    m_state->setEmpty(study.acceptance.empty());
    fill(m_byTask, acceptanceByTask(study));
    fill(m_byPosition, acceptanceByPosition(study));
    const bool choose = m_byTask.figures.size() > 1 || m_byPosition.figures.size() > 1;
    m_byTask.box->setVisible(choose);
    m_byPosition.box->setVisible(choose);
    if (!m_sized && !study.acceptance.empty()) {
        m_view->resizeColumnsToContents();
        m_sized = true;
    }
    updateCount();
    showRun();
}

void AcceptancePage::updateCount()
{
    m_count->setText(
        tr("%1 of %2").arg(m_filtered->rowCount()).arg(m_model->rowCount(QModelIndex())));
}

void AcceptancePage::follow(Choice& choice, const QString& converter)
{
    const auto isOf = [&](int index) {
        return index >= 0 &&
               text(choice.figures[static_cast<std::size_t>(index)].id).contains(converter);
    };
    if (isOf(choice.box->currentIndex()))
        return;
    for (int index = 0; index < choice.box->count(); ++index) {
        if (!isOf(index))
            continue;
        choice.box->setCurrentIndex(index);
        return;
    }
}

/// Marks the first row of the selected run and turns to the figures of its converter.
void AcceptancePage::showRun()
{
    if (const RunRecord* run = m_document.run(m_selection.run())) {
        follow(m_byTask, text(run->converter));
        follow(m_byPosition, text(run->converter));
    }
    for (int row = 0; row < m_filtered->rowCount(); ++row) {
        const QModelIndex index = m_filtered->index(row, 0);
        if (m_model->row(m_filtered->mapToSource(index).row()).run != m_selection.run())
            continue;
        m_view->setCurrentIndex(index);
        m_view->scrollTo(index, QAbstractItemView::PositionAtTop);
        return;
    }
    m_view->clearSelection();
}

void AcceptancePage::changeEvent(QEvent* event)
{
    Page::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        m_model->setDark(isDark(palette()));
}

} // namespace mla::ui
