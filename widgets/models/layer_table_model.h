// SPDX-License-Identifier: GPL-3.0-or-later
// Per-layer numbers of one run as a table; what its columns are is the page's choice.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <QAbstractTableModel>

#include "core/store/records.h"

namespace mla::ui
{

struct LayerColumn {
    QString title, explanation;
    int decimals = 3; ///< -1: significant digits
    std::function<std::optional<double>(const LayerRecord&)> value;
};
/// Loss and functional error around refinement, seconds.
[[nodiscard]] std::vector<LayerColumn> refinementColumns();
/// Relative functional error by source: rotary alone, low rank alone, both, after refinement.
[[nodiscard]] std::vector<LayerColumn> errorSourceColumns();
/// Rank, retained energy, effective rank, tail bound.
[[nodiscard]] std::vector<LayerColumn> spectrumColumns();
/// Key energy that leaves the rotary path, residual at short and long distance.
[[nodiscard]] std::vector<LayerColumn> ropeColumns();

/// Column 0 is the layer number; a note at the end says when the converted weights were kept.
class LayerTableModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    /// Numbers for sorting and export; invalid where there is no value.
    static constexpr int valueRole = Qt::UserRole;

    explicit LayerTableModel(std::vector<LayerColumn> columns, QObject* parent = nullptr);

    void setLayers(const std::vector<LayerRecord>& layers);
    [[nodiscard]] std::optional<int> layerAt(int row) const;
    [[nodiscard]] int rowOf(int layer) const; ///< -1 if it isn't there

    [[nodiscard]] int rowCount(const QModelIndex& parent) const override;
    [[nodiscard]] int columnCount(const QModelIndex& parent) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
    [[nodiscard]] QVariant headerData(int section, Qt::Orientation, int role) const override;

private:
    struct Row {
        int layer = 0;
        std::vector<std::optional<double>> values;
        bool keptConverted = false;
        bool operator==(const Row&) const = default;
    };
    [[nodiscard]] Row rowFor(const LayerRecord& record) const;

    std::vector<LayerColumn> m_columns;
    std::vector<Row> m_rows;
};

} // namespace mla::ui
