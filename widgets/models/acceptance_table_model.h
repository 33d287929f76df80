// SPDX-License-Identifier: GPL-3.0-or-later
// Acceptance measurements as a table.
#pragma once

#include <vector>

#include <QAbstractTableModel>

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
        Backend,
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

} // namespace mla::ui
