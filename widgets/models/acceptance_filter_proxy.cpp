// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/models/acceptance_filter_proxy.h"

#include "widgets/models/acceptance_table_model.h"

namespace mla::ui
{

using Model = AcceptanceTableModel;

AcceptanceFilterProxy::AcceptanceFilterProxy(QObject* parent) : QSortFilterProxyModel(parent)
{
    setSortRole(Model::valueRole);
    const auto forget = [this] { m_shaded.clear(); };
    connect(this, &QAbstractItemModel::layoutChanged, this, forget);
    connect(this, &QAbstractItemModel::modelReset, this, forget);
    connect(this, &QAbstractItemModel::rowsInserted, this, forget);
    connect(this, &QAbstractItemModel::rowsRemoved, this, forget);
}

void AcceptanceFilterProxy::setWords(const QString& words)
{
    m_words = words.split(QLatin1Char(' '), Qt::SkipEmptyParts);
    invalidateFilter();
}

void AcceptanceFilterProxy::setChoice(int column, const QString& value)
{
    m_choices[column] = value;
    invalidateFilter();
}

void AcceptanceFilterProxy::setGrouping(std::optional<int> column)
{
    m_grouping = column;
    m_shaded.clear();
    if (column && sortColumn() < 0)
        sort(*column); // rows in the order of the source cannot stand together
    else
        invalidate();
}

void AcceptanceFilterProxy::setBandColor(const QColor& color)
{
    m_band = color;
    if (rowCount() > 0)
        emit dataChanged(index(0, 0), index(rowCount() - 1, columnCount() - 1),
                         {Qt::BackgroundRole});
}

QVariant AcceptanceFilterProxy::data(const QModelIndex& index, int role) const
{
    const QVariant own = QSortFilterProxyModel::data(index, role);
    if (role != Qt::BackgroundRole || own.isValid() || !m_grouping || !m_band.isValid())
        return own;
    return isShaded(index.row()) ? QVariant(m_band) : QVariant();
}

bool AcceptanceFilterProxy::isShaded(int row) const
{
    if (m_shaded.empty()) {
        bool shaded = false;
        for (int i = 0; i < rowCount(); ++i) {
            const auto group = [&](int at) { return index(at, *m_grouping).data().toString(); };
            shaded = i > 0 && group(i) != group(i - 1) ? !shaded : shaded;
            m_shaded.push_back(shaded);
        }
    }
    return m_shaded.at(static_cast<std::size_t>(row));
}

bool AcceptanceFilterProxy::filterAcceptsRow(int row, const QModelIndex& parent) const
{
    for (const auto& [column, value] : m_choices)
        if (!value.isEmpty() &&
            sourceModel()->index(row, column, parent).data().toString() != value)
            return false;
    QString texts;
    for (const int column :
         {Model::Converter, Model::Variant, Model::Task, Model::Backend, Model::Method, Model::Run})
        texts += sourceModel()->index(row, column, parent).data().toString() + QLatin1Char('\n');
    for (const QString& word : m_words)
        if (!texts.contains(word, Qt::CaseInsensitive))
            return false;
    return true;
}

bool AcceptanceFilterProxy::lessThan(const QModelIndex& left, const QModelIndex& right) const
{
    const bool ascending = sortOrder() == Qt::AscendingOrder;
    if (m_grouping) {
        const QString a = left.siblingAtColumn(*m_grouping).data().toString();
        const QString b = right.siblingAtColumn(*m_grouping).data().toString();
        if (a != b)
            return (a.localeAwareCompare(b) < 0) == ascending; // groups never turn round
    }
    const QVariant a = left.data(sortRole()), b = right.data(sortRole());
    if (a.isValid() != b.isValid())
        return a.isValid() == ascending;
    return QSortFilterProxyModel::lessThan(left, right);
}

} // namespace mla::ui
