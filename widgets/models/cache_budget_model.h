// SPDX-License-Identifier: GPL-3.0-or-later
// Context lengths and the bytes of KV cache they take: of the original, and of a draft or a plan.
#pragma once

#include <optional>
#include <vector>

#include <QAbstractTableModel>

#include "core/convert/conversion_limits.h"

namespace mla::ui
{

class CacheBudgetModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    enum ColumnIndex { Context, Original, Converted, Saved, Columns };
    /// Tokens or bytes, for sorting and export; invalid where there is no value.
    static constexpr int valueRole = Qt::UserRole;

    explicit CacheBudgetModel(QObject* parent = nullptr) : QAbstractTableModel(parent) {}

    /// `elements` a token and layer of a plan; none while there is no legal one. An MLA draft's own
    /// cache is shown instead. `use.context` is not looked at: every row has its own.
    void setCache(const std::optional<ModelConfig>& config, std::optional<std::int64_t> elements,
                  const CacheUse& use);
    [[nodiscard]] static const std::vector<std::int64_t>& contexts(); ///< 1 Ki ... 128 Ki tokens

    [[nodiscard]] int rowCount(const QModelIndex& parent) const override;
    [[nodiscard]] int columnCount(const QModelIndex& parent) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
    [[nodiscard]] QVariant headerData(int section, Qt::Orientation, int role) const override;

private:
    [[nodiscard]] QVariant value(int row, int column) const;

    std::optional<ModelConfig> m_config;
    std::optional<std::int64_t> m_elements;
    CacheUse m_use;
};

/// Bytes of the converted cache: of the draft itself, or of a plan with `elements`.
[[nodiscard]] std::optional<std::int64_t> convertedBytes(const ModelConfig& config,
                                                         std::optional<std::int64_t> elements,
                                                         const CacheUse& use);

} // namespace mla::ui
