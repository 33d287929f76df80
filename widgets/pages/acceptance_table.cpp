// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/pages/acceptance_table.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QSignalBlocker>
#include <QTableView>

#include "widgets/common/palette.h"
#include "widgets/common/row_table.h"
#include "widgets/common/table_export.h"
#include "widgets/models/model_table.h"

namespace mla::ui
{

using Model = AcceptanceTableModel;

AcceptanceTable::AcceptanceTable(QWidget* parent)
    : QWidget(parent), m_model(new AcceptanceTableModel(this)),
      m_filtered(new AcceptanceFilterProxy(this)), m_view(new QTableView(this)),
      m_count(new QLabel(this))
{
    m_filtered->setSourceModel(m_model);
    buildView();
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addLayout(buildFilters());
    layout->addWidget(m_view, 1);
}

void AcceptanceTable::buildView()
{
    m_view->setModel(m_filtered);
    m_view->setAccessibleName(tr("Acceptance measurements"));
    m_view->setSortingEnabled(true);
    m_view->horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);
    setUpRowTable(*m_view);
    m_view->horizontalHeader()->setSectionsMovable(true);
    m_view->horizontalHeader()->setStretchLastSection(true);
    connect(m_view, &QTableView::activated, this, [this](const QModelIndex& index) {
        emit runActivated(m_model->row(m_filtered->mapToSource(index).row()).run);
    });
}

QHBoxLayout* AcceptanceTable::buildFilters()
{
    auto* words = new QLineEdit(this);
    words->setPlaceholderText(tr("Filter by converter, variant, task, run…"));
    words->setAccessibleName(tr("Filter measurements"));
    words->setClearButtonEnabled(true);
    connect(words, &QLineEdit::textChanged, this, [this](const QString& text) {
        m_filtered->setWords(text);
        updateCount();
    });
    auto* line = new QHBoxLayout;
    line->addWidget(words, 1);
    addChoice(line, Model::Task, tr("All tasks"));
    addChoice(line, Model::Backend, tr("All backends"));
    addChoice(line, Model::Converter, tr("All converters"));
    addChoice(line, Model::Variant, tr("All variants"));
    auto* groups = new QComboBox(this);
    groups->setAccessibleName(tr("Group measurements"));
    groups->addItem(tr("Not grouped"));
    groups->addItem(tr("By task"), int(Model::Task));
    groups->addItem(tr("By backend"), int(Model::Backend));
    groups->addItem(tr("By converter"), int(Model::Converter));
    connect(groups, &QComboBox::currentIndexChanged, this, [this, groups] {
        const QVariant column = groups->currentData();
        m_view->setAlternatingRowColors(!column.isValid());
        m_filtered->setGrouping(column.isValid() ? std::optional(column.toInt()) : std::nullopt);
    });
    line->addWidget(groups);
    line->addWidget(m_count);
    auto* exports = new TableExportButton(
        [this] {
            return tableFromModel(*m_filtered, Model::valueRole, QStringLiteral("acceptance"),
                                  tr("Acceptance"));
        },
        this);
    connect(exports, &TableExportButton::exportFailed, this, &AcceptanceTable::exportFailed);
    line->addWidget(exports);
    return line;
}

void AcceptanceTable::addChoice(QHBoxLayout* line, int column, const QString& all)
{
    auto* box = new QComboBox(this);
    box->addItem(all);
    box->setAccessibleName(all);
    box->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    connect(box, &QComboBox::currentIndexChanged, this, [this, box, column](int index) {
        m_filtered->setChoice(column, index > 0 ? box->currentText() : QString());
        updateCount();
    });
    line->addWidget(box);
    m_choices.push_back({column, all, box});
}

/// The values a column has; what was chosen stays if there is still such a row.
void AcceptanceTable::fillChoices()
{
    for (const Choice& choice : m_choices) {
        QStringList values;
        for (int row = 0; row < m_model->rowCount({}); ++row) {
            const QString value = m_model->index(row, choice.column).data().toString();
            if (!values.contains(value))
                values << value;
        }
        const QSignalBlocker quiet(choice.box);
        const QString before = choice.box->currentIndex() > 0 ? choice.box->currentText() : "";
        choice.box->clear();
        choice.box->addItem(choice.all);
        choice.box->addItems(values);
        const int kept = before.isEmpty() ? 0 : std::max(0, choice.box->findText(before));
        choice.box->setCurrentIndex(kept);
        choice.box->setVisible(values.size() > 1);
        m_filtered->setChoice(choice.column, kept > 0 ? before : QString());
    }
}

void AcceptanceTable::setRows(std::vector<AcceptanceRow> rows)
{
    m_model->setRows(std::move(rows));
    fillChoices();
    updateCount();
    fitColumns();
}

/// To the first rows; later ones, as a run adds them, only widen a column.
void AcceptanceTable::fitColumns()
{
    const int rows = m_model->rowCount({});
    if (rows <= m_sizedRows)
        return;
    if (m_sizedRows == 0)
        m_view->resizeColumnsToContents();
    const QAbstractItemView* view = m_view;
    for (int column = 0; column < m_filtered->columnCount(); ++column)
        m_view->setColumnWidth(
            column, std::max(m_view->columnWidth(column), view->sizeHintForColumn(column)));
    m_sizedRows = rows;
}

void AcceptanceTable::updateCount()
{
    m_count->setText(tr("%1 of %2").arg(m_filtered->rowCount()).arg(m_model->rowCount({})));
}

void AcceptanceTable::selectRun(const QString& run)
{
    for (int row = 0; row < m_filtered->rowCount(); ++row) {
        const QModelIndex index = m_filtered->index(row, 0);
        if (m_model->row(m_filtered->mapToSource(index).row()).run != run)
            continue;
        m_view->setCurrentIndex(index);
        m_view->scrollTo(index, QAbstractItemView::PositionAtTop);
        return;
    }
    m_view->clearSelection();
}

void AcceptanceTable::setDark(bool dark)
{
    m_model->setDark(dark);
    m_filtered->setBandColor(palette().color(QPalette::AlternateBase));
}

} // namespace mla::ui
