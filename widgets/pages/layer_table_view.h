// SPDX-License-Identifier: GPL-3.0-or-later
// The per-layer table of a page: sorts, exports, and shares the layer selection.
#pragma once

#include <optional>
#include <vector>

#include <QWidget>

#include "widgets/models/layer_table_model.h"

class QSortFilterProxyModel;
class QTableView;

namespace mla::ui
{

class LayerTableView : public QWidget
{
    Q_OBJECT
public:
    /// `id`: file name stem of its exports.
    LayerTableView(std::vector<LayerColumn> columns, const QString& id, QWidget* parent = nullptr);

    void setLayers(const std::vector<LayerRecord>& layers);
    void setSelectedLayer(std::optional<int> layer);

signals:
    void layerActivated(int layer);
    void exportFailed(const QString& message);

private:
    LayerTableModel* m_model;
    QSortFilterProxyModel* m_sorted;
    QTableView* m_view;
    std::optional<int> m_selected;
    bool m_sized = false;
};

} // namespace mla::ui
