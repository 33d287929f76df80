// SPDX-License-Identifier: GPL-3.0-or-later
// Sorts, filters and groups acceptance measurements.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include <QColor>
#include <QSortFilterProxyModel>

namespace mla::ui
{

/// Sorts by value (rows without one last, whatever the order) and keeps rows that contain every
/// word of the filter in one of their texts and the chosen value in each column with a choice.
class AcceptanceFilterProxy : public QSortFilterProxyModel
{
    Q_OBJECT
public:
    explicit AcceptanceFilterProxy(QObject* parent = nullptr);
    void setWords(const QString& words);
    void setChoice(int column, const QString& value); ///< "" = all
    /// Rows of one value in `column` stand together, every second group shaded; the sort order is
    /// that within a group. nullopt: no groups.
    void setGrouping(std::optional<int> column);
    [[nodiscard]] std::optional<int> grouping() const { return m_grouping; }
    void setBandColor(const QColor& color); ///< of every second group

    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;

protected:
    [[nodiscard]] bool filterAcceptsRow(int row, const QModelIndex& parent) const override;
    [[nodiscard]] bool lessThan(const QModelIndex& left, const QModelIndex& right) const override;

private:
    [[nodiscard]] bool isShaded(int row) const;

    QStringList m_words;
    std::map<int, QString> m_choices;
    std::optional<int> m_grouping;
    QColor m_band;
    mutable std::vector<bool> m_shaded; ///< by row; empty = to be found out
};

} // namespace mla::ui
