// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/models/cache_budget_model.h"

#include <QGuiApplication>
#include <QPalette>

#include "widgets/common/format.h"
#include "widgets/common/palette.h"

namespace mla::ui
{

std::optional<std::int64_t>
convertedBytes(const ModelConfig& config, std::optional<std::int64_t> elements, const CacheUse& use)
{
    if (config.isMla())
        return ownCacheBytes(config, use);
    if (!elements)
        return std::nullopt;
    return cacheBytes(config, *elements, use);
}

void CacheBudgetModel::setCache(const std::optional<ModelConfig>& config,
                                std::optional<std::int64_t> elements, const CacheUse& use)
{
    const bool same = m_config.has_value() == config.has_value();
    if (!same)
        beginResetModel();
    m_config = config;
    m_elements = elements;
    m_use = use;
    if (!same)
        endResetModel();
    else if (config)
        emit dataChanged(index(0, 0), index(rowCount({}) - 1, Columns - 1));
    emit headerDataChanged(Qt::Horizontal, Original, Converted);
}

const std::vector<std::int64_t>& CacheBudgetModel::contexts()
{
    static const std::vector<std::int64_t> lengths = {1024,  2048,  4096,  8192,
                                                      16384, 32768, 65536, 131072};
    return lengths;
}

int CacheBudgetModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() || !m_config ? 0 : static_cast<int>(contexts().size());
}

int CacheBudgetModel::columnCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : Columns;
}

QVariant CacheBudgetModel::value(int row, int column) const
{
    CacheUse use = m_use;
    use.context = contexts().at(static_cast<std::size_t>(row));
    const qint64 original = cacheBytes(*m_config, originalCacheElements(*m_config), use);
    const std::optional<qint64> converted = convertedBytes(*m_config, m_elements, use);
    switch (column) {
    case Context:
        return qint64(use.context);
    case Original:
        return original;
    case Converted:
        return converted ? QVariant(*converted) : QVariant();
    default:
        return converted ? QVariant(original - *converted) : QVariant();
    }
}

QVariant CacheBudgetModel::data(const QModelIndex& index, int role) const
{
    if (!index.isValid())
        return {};
    const QVariant number = value(index.row(), index.column());
    const qint64 context = contexts().at(static_cast<std::size_t>(index.row()));
    const bool beyond = context > m_config->maxPositionEmbeddings;
    switch (role) {
    case Qt::DisplayRole: {
        if (!number.isValid())
            return missingText();
        const qint64 size = number.toLongLong();
        if (index.column() == Context)
            return countText(size);
        if (size == 0)
            return tr("0 bytes");
        return size < 0 ? QStringLiteral("−") + bytesText(-size) : bytesText(size);
    }
    case valueRole:
        return number;
    case Qt::TextAlignmentRole:
        return int(Qt::AlignRight | Qt::AlignVCenter);
    case Qt::ForegroundRole:
        return beyond ? QVariant(plotThemeFor(QGuiApplication::palette()).mutedText) : QVariant();
    case Qt::ToolTipRole:
        return beyond ? QVariant(tr("Longer than the %1 positions this model was made for")
                                     .arg(countText(m_config->maxPositionEmbeddings)))
                      : QVariant();
    default:
        return {};
    }
}

QVariant CacheBudgetModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation == Qt::Horizontal && role == Qt::ToolTipRole && section == Context)
        return tr("Tokens of a sequence");
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole)
        return {};
    const bool draft = m_config && m_config->isMla();
    switch (section) {
    case Context:
        return tr("Context");
    case Original:
        return draft ? tr("Before conversion") : tr("Original");
    case Converted:
        return draft ? tr("This draft") : tr("MLA");
    default:
        return tr("Saved");
    }
}

} // namespace mla::ui
