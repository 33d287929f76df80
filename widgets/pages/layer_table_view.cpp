// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/pages/layer_table_view.h"

#include <QHeaderView>
#include <QLabel>
#include <QSignalBlocker>
#include <QSortFilterProxyModel>
#include <QTableView>
#include <QVBoxLayout>

#include "widgets/common/row_table.h"
#include "widgets/common/table_export.h"
#include "widgets/models/model_table.h"

namespace mla::ui
{

LayerTableView::LayerTableView(std::vector<LayerColumn> columns, const QString& id, QWidget* parent)
    : QWidget(parent), m_model(new LayerTableModel(std::move(columns), this)),
      m_sorted(new QSortFilterProxyModel(this)), m_view(new QTableView(this))
{
    m_sorted->setSourceModel(m_model);
    m_sorted->setSortRole(LayerTableModel::valueRole);
    m_view->setModel(m_sorted);
    m_view->setAccessibleName(tr("Layers"));
    m_view->setSortingEnabled(true);
    m_view->sortByColumn(0, Qt::AscendingOrder);
    setUpRowTable(*m_view);
    connect(m_view->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
            [this](const QModelIndex& current) {
                const auto layer = m_model->layerAt(m_sorted->mapToSource(current).row());
                if (current.isValid() && layer && layer != m_selected) {
                    m_selected = layer;
                    emit layerActivated(*layer);
                }
            });

    auto* exports = new TableExportButton(
        [this, id] {
            return tableFromModel(*m_sorted, LayerTableModel::valueRole, id, tr("Layers"));
        },
        this);
    connect(exports, &TableExportButton::exportFailed, this, &LayerTableView::exportFailed);
    auto* line = new QHBoxLayout;
    line->addWidget(new QLabel(tr("Layers"), this), 1);
    line->addWidget(exports);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addLayout(line);
    layout->addWidget(m_view, 1);
}

void LayerTableView::setLayers(const std::vector<LayerRecord>& layers)
{
    m_model->setLayers(layers);
    if (!m_sized && !layers.empty()) {
        m_view->resizeColumnsToContents();
        m_sized = true;
    }
    setSelectedLayer(m_selected);
}

void LayerTableView::setSelectedLayer(std::optional<int> layer)
{
    m_selected = layer;
    const int row = layer ? m_model->rowOf(*layer) : -1;
    if (row < 0) {
        m_view->clearSelection();
        m_view->selectionModel()->setCurrentIndex({}, QItemSelectionModel::NoUpdate);
        return;
    }
    const QModelIndex index = m_sorted->mapFromSource(m_model->index(row, 0));
    m_view->setCurrentIndex(index);
    m_view->scrollTo(index);
}

} // namespace mla::ui
