// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/models/layer_table_model.h"

#include <algorithm>
#include <numeric>

#include <QCoreApplication>

#include "widgets/common/format.h"

namespace mla::ui
{

namespace
{

QString translated(const char* text)
{
    return QCoreApplication::translate("LayerTable", text);
}

std::optional<double> errorOf(const std::optional<FidelityRecord>& fidelity)
{
    return fidelity ? std::optional(fidelity->relativeError) : std::nullopt;
}

std::optional<double> spectrumValue(const LayerRecord& layer, double SpectrumRecord::*member,
                                    double factor = 1)
{
    return layer.spectrum ? std::optional(factor * ((*layer.spectrum).*member)) : std::nullopt;
}

/// Share of the key energy that loses rotation, in percent.
std::optional<double> lostRotaryEnergy(const LayerRecord& layer)
{
    if (!layer.rope || layer.rope->keyEnergy.empty())
        return std::nullopt;
    const auto sum = [](const std::vector<double>& values) {
        return std::accumulate(values.begin(), values.end(), 0.0);
    };
    const double all = sum(layer.rope->keyEnergy);
    return all > 0 ? std::optional(100 * (all - sum(layer.rope->keptEnergy)) / all) : std::nullopt;
}

/// Of the nearest or farthest measured distance; a token's distance to itself says nothing.
std::optional<double> residualAt(const LayerRecord& layer, bool farthest)
{
    std::optional<double> found;
    if (!layer.rope)
        return found;
    const RopeRecord& rope = *layer.rope;
    for (std::size_t i = 0; i < std::min(rope.distance.size(), rope.scoreResidual.size()); ++i)
        if (rope.distance[i] >= 1 && (farthest || !found))
            found = rope.scoreResidual[i];
    return found;
}

} // namespace

std::vector<LayerColumn> refinementColumns()
{
    return {
        {translated("Loss before"), translated("Held-out loss of the objective"), -1,
         [](const LayerRecord& layer) { return layer.lossBefore; }},
        {translated("Loss after"), translated("Held-out loss of the objective"), -1,
         [](const LayerRecord& layer) { return layer.lossAfter; }},
        {translated("Error before"), translated("Relative functional error, held-out"), 3,
         [](const LayerRecord& layer) { return errorOf(layer.before); }},
        {translated("Error after"), translated("Relative functional error, held-out"), 3,
         [](const LayerRecord& layer) { return errorOf(layer.after); }},
        {translated("Seconds"),
         {},
         1,
         [](const LayerRecord& layer) {
             return layer.seconds > 0 ? std::optional(layer.seconds) : std::nullopt;
         }},
    };
}

std::vector<LayerColumn> errorSourceColumns()
{
    return {
        {translated("Rotary alone"), translated("Relative error at full rank"), 3,
         [](const LayerRecord& layer) { return errorOf(layer.sources.ropeOnly); }},
        {translated("Low rank alone"), translated("Relative error with every pair rotary"), 3,
         [](const LayerRecord& layer) { return errorOf(layer.sources.rankOnly); }},
        {translated("Both"), translated("Relative error of the converted block"), 3,
         [](const LayerRecord& layer) { return errorOf(layer.sources.both); }},
        {translated("Refined"), translated("Relative error after refinement"), 3,
         [](const LayerRecord& layer) { return errorOf(layer.sources.refined); }},
    };
}

std::vector<LayerColumn> spectrumColumns()
{
    return {
        {translated("Rank"), translated("kv_lora_rank of the run"), 0,
         [](const LayerRecord& layer) {
             return layer.spectrum ? std::optional(double(layer.spectrum->rank)) : std::nullopt;
         }},
        {translated("Retained (%)"), translated("Share of the energy kept at this rank"), 2,
         [](const LayerRecord& layer) {
             return spectrumValue(layer, &SpectrumRecord::retainedEnergy, 100);
         }},
        {translated("Effective rank"),
         translated("Exponential of the entropy of the squared singular values"), 1,
         [](const LayerRecord& layer) {
             return spectrumValue(layer, &SpectrumRecord::effectiveRank);
         }},
        {translated("Tail bound"), translated("Square root of the share beyond the rank"), 3,
         [](const LayerRecord& layer) { return spectrumValue(layer, &SpectrumRecord::tailBound); }},
    };
}

std::vector<LayerColumn> ropeColumns()
{
    return {
        {translated("Energy lost (%)"), translated("Share of key energy that loses rotation"), 2,
         lostRotaryEnergy},
        {translated("Residual near"),
         translated("Mean change of the attention logit at the shortest distance"), -1,
         [](const LayerRecord& layer) { return residualAt(layer, false); }},
        {translated("Residual far"),
         translated("Mean change of the attention logit at the longest distance"), -1,
         [](const LayerRecord& layer) { return residualAt(layer, true); }},
    };
}

LayerTableModel::LayerTableModel(std::vector<LayerColumn> columns, QObject* parent)
    : QAbstractTableModel(parent), m_columns(std::move(columns))
{
}

LayerTableModel::Row LayerTableModel::rowFor(const LayerRecord& record) const
{
    Row row{record.layer.value, {}, record.keptConverted};
    for (const LayerColumn& column : m_columns)
        row.values.push_back(column.value(record));
    return row;
}

void LayerTableModel::setLayers(const std::vector<LayerRecord>& layers)
{
    std::vector<Row> rows;
    rows.reserve(layers.size());
    for (const LayerRecord& record : layers)
        rows.push_back(rowFor(record));
    const bool sameLayers =
        std::equal(rows.begin(), rows.end(), m_rows.begin(), m_rows.end(),
                   [](const Row& a, const Row& b) { return a.layer == b.layer; });
    if (!sameLayers) {
        beginResetModel();
        m_rows = std::move(rows);
        endResetModel();
        return;
    }
    // The same layers with new numbers: a running job must not take the user's selection away.
    m_rows = std::move(rows);
    if (!m_rows.empty())
        emit dataChanged(index(0, 0), index(static_cast<int>(m_rows.size()) - 1,
                                            static_cast<int>(m_columns.size())));
}

std::optional<int> LayerTableModel::layerAt(int row) const
{
    if (row < 0 || row >= static_cast<int>(m_rows.size()))
        return std::nullopt;
    return m_rows[static_cast<std::size_t>(row)].layer;
}

int LayerTableModel::rowOf(int layer) const
{
    for (std::size_t row = 0; row < m_rows.size(); ++row)
        if (m_rows[row].layer == layer)
            return static_cast<int>(row);
    return -1;
}

int LayerTableModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}

int LayerTableModel::columnCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_columns.size()) + 1;
}

QVariant LayerTableModel::data(const QModelIndex& index, int role) const
{
    if (!index.isValid())
        return {};
    const Row& row = m_rows[static_cast<std::size_t>(index.row())];
    if (role == Qt::TextAlignmentRole)
        return int(Qt::AlignRight | Qt::AlignVCenter);
    if (role == Qt::ToolTipRole && row.keptConverted)
        return tr("Refinement did not help here: the converted weights stay");
    if (role != Qt::DisplayRole && role != valueRole)
        return {};
    if (index.column() == 0) {
        if (role == valueRole)
            return row.layer;
        return row.keptConverted ? tr("%1 (kept)").arg(row.layer) : QString::number(row.layer);
    }
    const auto column = static_cast<std::size_t>(index.column()) - 1;
    const std::optional<double>& value = row.values[column];
    if (role == valueRole)
        return value ? QVariant(*value) : QVariant();
    const int decimals = m_columns[column].decimals;
    return value && decimals < 0 ? significantText(*value) : numberText(value, decimals);
}

QVariant LayerTableModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || section < 0 ||
        section > static_cast<int>(m_columns.size()))
        return {};
    if (section == 0)
        return role == Qt::DisplayRole ? QVariant(tr("Layer")) : QVariant();
    const LayerColumn& column = m_columns[static_cast<std::size_t>(section) - 1];
    if (role == Qt::DisplayRole)
        return column.title;
    if (role == Qt::ToolTipRole && !column.explanation.isEmpty())
        return column.explanation;
    return {};
}

} // namespace mla::ui
