// SPDX-License-Identifier: GPL-3.0-or-later
// Acceptance measurements as a table, and the proxy that sorts and filters it.
#pragma once

#include <vector>

#include <QAbstractTableModel>
#include <QSortFilterProxyModel>

#include "widgets/models/acceptance_rows.h"

namespace mla::ui
{

class AcceptanceTableModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    enum ColumnIndex {
        Converter,
        Variant,
        Task,
        Rate,
        Interval,
        Length,
        Delta,
        K,
        Method,
        Steps,
        Drafted,
        Accepted,
        Speed,
        Run,
        Columns
    };
    /// Numbers for sorting and export; invalid where there is no value.
    static constexpr int valueRole = Qt::UserRole;

    explicit AcceptanceTableModel(QObject* parent = nullptr) : QAbstractTableModel(parent) {}

    void setRows(std::vector<AcceptanceRow> rows);
    [[nodiscard]] const AcceptanceRow& row(int index) const;
    void setDark(bool dark); ///< tones of the Δ column

    [[nodiscard]] int rowCount(const QModelIndex& parent) const override;
    [[nodiscard]] int columnCount(const QModelIndex& parent) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
    [[nodiscard]] QVariant headerData(int section, Qt::Orientation, int role) const override;

private:
    std::vector<AcceptanceRow> m_rows;
    bool m_dark = false;
};

/// Sorts by value (rows without one last, whatever the order) and keeps rows that contain every
/// word of the filter in one of their texts.
class AcceptanceFilterProxy : public QSortFilterProxyModel
{
    Q_OBJECT
public:
    explicit AcceptanceFilterProxy(QObject* parent = nullptr);
    void setWords(const QString& words);

protected:
    [[nodiscard]] bool filterAcceptsRow(int row, const QModelIndex& parent) const override;
    [[nodiscard]] bool lessThan(const QModelIndex& left, const QModelIndex& right) const override;

private:
    QStringList m_words;
};

} // namespace mla::ui
