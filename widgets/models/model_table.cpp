// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/models/model_table.h"

#include <algorithm>

namespace mla::ui
{

namespace
{

Cell cellOf(const QModelIndex& index, int valueRole)
{
    const QVariant value = index.data(valueRole);
    switch (value.typeId()) {
    case QMetaType::Double:
        return value.toDouble();
    case QMetaType::Int:
    case QMetaType::LongLong:
        return static_cast<std::int64_t>(value.toLongLong());
    case QMetaType::QString:
        return value.toString().toStdString();
    default:
        return std::monostate();
    }
}

/// First cells of the rows without children, in order; of a table: of all rows.
void appendLeaves(const QAbstractItemModel& model, const QModelIndex& parent,
                  QModelIndexList& leaves)
{
    for (int row = 0; row < model.rowCount(parent); ++row) {
        const QModelIndex index = model.index(row, 0, parent);
        if (model.hasChildren(index))
            appendLeaves(model, index, leaves);
        else
            leaves << index;
    }
}

/// Decimals that the column shows, so that LaTeX and Markdown look like the screen.
int shownDecimals(const QModelIndexList& rows, int column)
{
    int decimals = 0;
    for (const QModelIndex& row : rows) {
        const QString shown = row.siblingAtColumn(column).data().toString();
        const auto point = shown.lastIndexOf(QLatin1Char('.'));
        if (point >= 0)
            decimals = std::max(decimals, static_cast<int>(shown.size() - point - 1));
    }
    return decimals;
}

} // namespace

Table tableFromModel(const QAbstractItemModel& model, int valueRole, const QString& id,
                     const QString& title)
{
    Table table{id.toStdString(), title.toStdString(), {}, {}};
    QModelIndexList rows;
    appendLeaves(model, {}, rows);
    for (int column = 0; column < model.columnCount(); ++column) {
        const QString name = model.headerData(column, Qt::Horizontal).toString();
        table.columns.push_back({name.toStdString(), {}, shownDecimals(rows, column)});
    }
    for (const QModelIndex& row : rows) {
        std::vector<Cell>& cells = table.rows.emplace_back();
        for (int column = 0; column < model.columnCount(); ++column)
            cells.push_back(cellOf(row.siblingAtColumn(column), valueRole));
    }
    return table;
}

} // namespace mla::ui
