// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/models/core_table_model.h"

#include "widgets/common/palette.h"
#include "widgets/common/plain_text.h"

namespace mla::ui
{

namespace
{

QVariant valueOf(const Cell& cell)
{
    if (const auto* text = std::get_if<std::string>(&cell))
        return ui::text(*text);
    if (const auto* number = std::get_if<double>(&cell))
        return *number;
    if (const auto* count = std::get_if<std::int64_t>(&cell))
        return qlonglong(*count);
    return {};
}

/// The number of a cell that is a change of acceptance.
std::optional<double> change(const Cell& cell, const Column& column)
{
    const auto* number = std::get_if<double>(&cell);
    return number && column.withSign && column.unit == "pp" ? std::optional(*number) : std::nullopt;
}

} // namespace

void CoreTableModel::setTable(Table table)
{
    beginResetModel();
    m_table = std::move(table);
    endResetModel();
}

void CoreTableModel::setDark(bool dark)
{
    m_dark = dark;
    if (rowCount() > 0 && columnCount() > 0)
        emit dataChanged(index(0, 0), index(rowCount() - 1, columnCount() - 1),
                         {Qt::ForegroundRole, Qt::BackgroundRole});
}

int CoreTableModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_table.rows.size());
}

int CoreTableModel::columnCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_table.columns.size());
}

const Cell& CoreTableModel::cellAt(const QModelIndex& index) const
{
    return m_table.rows.at(static_cast<std::size_t>(index.row()))
        .at(static_cast<std::size_t>(index.column()));
}

const Column& CoreTableModel::columnAt(int column) const
{
    return m_table.columns.at(static_cast<std::size_t>(column));
}

QVariant CoreTableModel::data(const QModelIndex& index, int role) const
{
    if (!index.isValid())
        return {};
    const Cell& cell = cellAt(index);
    const Column& column = columnAt(index.column());
    switch (role) {
    case Qt::DisplayRole:
        return text(cellText(cell, column));
    case valueRole:
        return valueOf(cell);
    case Qt::TextAlignmentRole:
        return int(Qt::AlignVCenter |
                   (std::holds_alternative<std::string>(cell) ? Qt::AlignLeft : Qt::AlignRight));
    case Qt::ForegroundRole:
        if (const auto points = change(cell, column))
            return deltaColor(*points, m_dark);
        return {};
    case Qt::BackgroundRole:
        if (const auto points = change(cell, column))
            return deltaTint(*points, m_dark);
        return {};
    default:
        return {};
    }
}

QVariant CoreTableModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole || section < 0 ||
        section >= columnCount())
        return {};
    const Column& column = columnAt(section);
    return column.unit.empty()
               ? text(column.name)
               : QStringLiteral("%1 (%2)").arg(text(column.name), text(column.unit));
}

} // namespace mla::ui
