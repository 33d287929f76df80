// SPDX-License-Identifier: GPL-3.0-or-later
// A table of core's report on screen: what it shows is what the report writes.
#pragma once

#include <QAbstractTableModel>

#include "core/report/tables.h"

namespace mla::ui
{

/// Changes of acceptance (signed, in pp) are coloured beyond +-0.5.
class CoreTableModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    /// Numbers and texts for sorting; invalid where there is no value.
    static constexpr int valueRole = Qt::UserRole;

    explicit CoreTableModel(QObject* parent = nullptr) : QAbstractTableModel(parent) {}

    void setTable(Table table);
    [[nodiscard]] const Table& table() const { return m_table; }
    void setDark(bool dark);

    [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
    [[nodiscard]] QVariant headerData(int section, Qt::Orientation, int role) const override;

private:
    [[nodiscard]] const Cell& cellAt(const QModelIndex& index) const;
    [[nodiscard]] const Column& columnAt(int column) const;

    Table m_table;
    bool m_dark = false;
};

} // namespace mla::ui
