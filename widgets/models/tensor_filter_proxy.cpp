// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/common/plain_text.h"
#include "widgets/models/tensor_tree_model.h"

namespace mla::ui
{

namespace
{

void appendTensors(const QAbstractItemModel& model, const QModelIndex& row,
                   std::vector<std::string>& names)
{
    const int children = model.rowCount(row);
    for (int child = 0; child < children; ++child)
        appendTensors(model, model.index(child, TensorTreeModel::Name, row), names);
    if (children == 0 && row.isValid())
        names.push_back(row.data(TensorTreeModel::valueRole).toString().toStdString());
}

/// Whether one of the row's ancestors is among `rows`.
bool isBelow(const QModelIndex& row, const QModelIndexList& rows)
{
    for (QModelIndex above = row.parent(); above.isValid(); above = above.parent())
        if (rows.contains(above))
            return true;
    return false;
}

} // namespace

TensorFilterProxy::TensorFilterProxy(QObject* parent) : QSortFilterProxyModel(parent)
{
    setRecursiveFilteringEnabled(true); // a group shows if one of its tensors does
}

void TensorFilterProxy::setWords(const QString& words)
{
    m_words = words.split(QLatin1Char(' '), Qt::SkipEmptyParts);
    invalidateFilter();
}

std::vector<std::string> TensorFilterProxy::tensorsBelow(const QModelIndexList& rows) const
{
    std::vector<std::string> names;
    if (rows.isEmpty())
        appendTensors(*this, {}, names);
    for (const QModelIndex& row : rows)
        if (!isBelow(row, rows))
            appendTensors(*this, row, names);
    return names;
}

bool TensorFilterProxy::filterAcceptsRow(int row, const QModelIndex& parent) const
{
    const auto* model = static_cast<const TensorTreeModel*>(sourceModel());
    const QModelIndex index = model->index(row, TensorTreeModel::Name, parent);
    const TensorSummary* tensor = model->tensor(index);
    if (!tensor)
        return false;
    const QString shape = index.siblingAtColumn(TensorTreeModel::Shape).data().toString();
    const QString all = QStringList({text(tensor->name), text(tensor->storage), shape,
                                     QString(shape).remove(QLatin1Char(' ')), text(tensor->file)})
                            .join(QLatin1Char('\n'));
    return std::all_of(m_words.begin(), m_words.end(), [&](const QString& word) {
        return all.contains(word, Qt::CaseInsensitive);
    });
}

bool TensorFilterProxy::lessThan(const QModelIndex& left, const QModelIndex& right) const
{
    if (left.column() == TensorTreeModel::Name)
        return left.row() < right.row();
    if (left.column() == TensorTreeModel::Shape) {
        const auto* model = static_cast<const TensorTreeModel*>(sourceModel());
        const TensorSummary *a = model->tensor(left), *b = model->tensor(right);
        return a && b ? a->elements() < b->elements() : left.row() < right.row();
    }
    const QVariant a = left.data(TensorTreeModel::valueRole);
    const QVariant b = right.data(TensorTreeModel::valueRole);
    if (a.isValid() != b.isValid()) // nothing comes last, whatever the order
        return a.isValid() == (sortOrder() == Qt::AscendingOrder);
    const bool numbers = a.typeId() != QMetaType::QString && b.typeId() != QMetaType::QString;
    if (!numbers || !a.isValid()) {
        const int order =
            QString::localeAwareCompare(left.data().toString(), right.data().toString());
        return order != 0 ? order < 0 : left.row() < right.row();
    }
    return a.toDouble() < b.toDouble();
}

} // namespace mla::ui
