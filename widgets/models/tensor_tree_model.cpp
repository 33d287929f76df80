// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/models/tensor_tree_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "widgets/common/format.h"
#include "widgets/common/palette.h"
#include "widgets/common/plain_text.h"

namespace mla::ui
{

struct TensorTreeModel::Node {
    Node* parent = nullptr;
    int row = 0;
    QString name;
    std::optional<std::size_t> tensor; ///< index into the model's tensors; none for a group
    std::vector<std::unique_ptr<Node>> children;

    Node* add(const QString& childName, std::optional<std::size_t> childTensor = {})
    {
        auto child = std::make_unique<Node>();
        child->parent = this;
        child->row = static_cast<int>(children.size());
        child->name = childName;
        child->tensor = childTensor;
        return children.emplace_back(std::move(child)).get();
    }
    Node* group(const QString& groupName)
    {
        for (const auto& child : children)
            if (!child->tensor && child->name == groupName)
                return child.get();
        return add(groupName);
    }
};

struct TensorTreeModel::Summary {
    int tensors = 0, measured = 0;
    bool group = false;
    QString name, stored, shape, file;
    qint64 bytes = 0, elements = 0;
    double minimum = NAN, maximum = NAN, mean = NAN, deviation = NAN;
    double rowNormMinimum = NAN, rowNormMaximum = NAN;
    qint64 zeros = 0, nonFinite = 0;
};

namespace
{

QString shapeText(const std::vector<std::int64_t>& shape)
{
    QStringList sizes;
    for (const std::int64_t size : shape)
        sizes << QString::number(size);
    return sizes.isEmpty() ? TensorTreeModel::tr("scalar") : sizes.join(QStringLiteral(" × "));
}

/// Where a tensor hangs in the tree, and what it is called there.
struct Place {
    QStringList groups;
    QString leaf;
};

/// "model.layers.3.self_attn.q_proj.weight" hangs under "Layer 3" > "self_attn" as
/// "q_proj.weight"; what belongs to no layer stands at the top under its full name.
Place placeOf(const QString& name)
{
    const QStringList parts = name.split(QLatin1Char('.'));
    const auto layers = parts.indexOf(QStringLiteral("layers"));
    bool numbered = false;
    const int layer = layers >= 0 ? parts.value(layers + 1).toInt(&numbered) : 0;
    if (!numbered || layers + 2 >= parts.size())
        return {{}, name};
    QStringList rest = parts.mid(layers + 2);
    Place place{{TensorTreeModel::tr("Layer %1").arg(layer)}, {}};
    if (rest.size() > 2)
        place.groups << rest.takeFirst();
    place.leaf = rest.join(QLatin1Char('.'));
    return place;
}

/// Part by part, numbers by size: layer 2 before layer 10.
bool comesBefore(const QString& left, const QString& right)
{
    const QStringList a = left.split(QLatin1Char('.')), b = right.split(QLatin1Char('.'));
    for (qsizetype i = 0; i < std::min(a.size(), b.size()); ++i) {
        if (a[i] == b[i])
            continue;
        bool first = false, second = false;
        const int x = a[i].toInt(&first), y = b[i].toInt(&second);
        return first && second && x != y ? x < y : a[i] < b[i];
    }
    return a.size() < b.size();
}

void widen(double& least, double& most, const std::optional<double>& low,
           const std::optional<double>& high)
{
    if (low)
        least = std::fmin(least, *low); // fmin and fmax pass over NaN
    if (high)
        most = std::fmax(most, *high);
}

QVariant numberOrNothing(double value)
{
    return std::isfinite(value) ? QVariant(value) : QVariant();
}

} // namespace

TensorTreeModel::TensorTreeModel(QObject* parent)
    : QAbstractItemModel(parent), m_root(std::make_unique<Node>())
{
}

TensorTreeModel::~TensorTreeModel() = default;

void TensorTreeModel::setTensors(std::vector<TensorSummary> tensors)
{
    std::stable_sort(tensors.begin(), tensors.end(),
                     [](const TensorSummary& left, const TensorSummary& right) {
                         return comesBefore(text(left.name), text(right.name));
                     });
    beginResetModel();
    m_tensors = std::move(tensors);
    m_statistics.assign(m_tensors.size(), std::nullopt);
    rebuild();
    endResetModel();
}

void TensorTreeModel::setGrouped(bool grouped)
{
    if (grouped == m_grouped)
        return;
    beginResetModel();
    m_grouped = grouped;
    rebuild();
    endResetModel();
}

void TensorTreeModel::rebuild()
{
    m_root = std::make_unique<Node>();
    m_rows.clear();
    for (std::size_t i = 0; i < m_tensors.size(); ++i) {
        const QString name = text(m_tensors[i].name);
        const Place place = m_grouped ? placeOf(name) : Place{{}, name};
        Node* parent = m_root.get();
        for (const QString& group : place.groups)
            parent = parent->group(group);
        m_rows.push_back(parent->add(place.leaf, i));
    }
}

void TensorTreeModel::addStatistics(const std::vector<TensorStatistics>& measured)
{
    std::map<std::string, const TensorStatistics*> byName;
    for (const TensorStatistics& one : measured)
        byName[one.name] = &one;
    for (std::size_t i = 0; i < m_tensors.size(); ++i) {
        const auto found = byName.find(m_tensors[i].name);
        if (found == byName.end())
            continue;
        m_statistics[i] = *found->second;
        for (const Node* row = m_rows[i]; row != m_root.get(); row = row->parent)
            emit dataChanged(createIndex(row->row, Minimum, row),
                             createIndex(row->row, RowNormMaximum, row));
    }
}

void TensorTreeModel::setDark(bool dark)
{
    m_dark = dark;
}

const TensorTreeModel::Node* TensorTreeModel::node(const QModelIndex& index) const
{
    return index.isValid() ? static_cast<const Node*>(index.internalPointer()) : m_root.get();
}

const TensorSummary* TensorTreeModel::tensor(const QModelIndex& index) const
{
    const Node* row = node(index);
    return row->tensor ? &m_tensors[*row->tensor] : nullptr;
}

const TensorStatistics* TensorTreeModel::statistics(const QModelIndex& index) const
{
    const Node* row = node(index);
    return row->tensor && m_statistics[*row->tensor] ? &*m_statistics[*row->tensor] : nullptr;
}

QModelIndex TensorTreeModel::index(int row, int column, const QModelIndex& parent) const
{
    const Node* above = node(parent);
    const bool inside = row >= 0 && row < static_cast<int>(above->children.size()) && column >= 0 &&
                        column < Columns && parent.column() <= 0;
    return inside ? createIndex(row, column, above->children[static_cast<std::size_t>(row)].get())
                  : QModelIndex();
}

QModelIndex TensorTreeModel::parent(const QModelIndex& child) const
{
    const Node* above = child.isValid() ? node(child)->parent : nullptr;
    return above && above != m_root.get() ? createIndex(above->row, Name, above) : QModelIndex();
}

int TensorTreeModel::rowCount(const QModelIndex& parent) const
{
    return parent.column() > 0 ? 0 : static_cast<int>(node(parent)->children.size());
}

int TensorTreeModel::columnCount(const QModelIndex&) const
{
    return Columns;
}

void TensorTreeModel::addToSummary(const Node& row, Summary& sum) const
{
    for (const auto& child : row.children)
        addToSummary(*child, sum);
    if (!row.tensor)
        return;
    const TensorSummary& tensor = m_tensors[*row.tensor];
    const auto join = [&sum](QString& all, const QString& one, const QString& several) {
        all = sum.tensors == 0 || all == one ? one : several;
    };
    join(sum.stored, text(tensor.storage), tr("mixed"));
    join(sum.file, text(tensor.file), tr("several"));
    sum.shape = shapeText(tensor.shape);
    sum.bytes += tensor.bytes;
    sum.elements += tensor.elements();
    ++sum.tensors;
    if (!m_statistics[*row.tensor])
        return;
    const TensorStatistics& one = *m_statistics[*row.tensor];
    ++sum.measured;
    widen(sum.minimum, sum.maximum, one.minimum, one.maximum);
    widen(sum.rowNormMinimum, sum.rowNormMaximum, one.rowNormMinimum, one.rowNormMaximum);
    sum.mean = one.mean.value_or(NAN);
    sum.deviation = one.deviation.value_or(NAN);
    sum.zeros += one.zeros;
    sum.nonFinite += one.nonFinite();
}

TensorTreeModel::Summary TensorTreeModel::summary(const Node& row) const
{
    Summary sum;
    addToSummary(row, sum);
    sum.group = !row.tensor;
    sum.name = row.tensor ? text(m_tensors[*row.tensor].name) : row.name;
    if (sum.group) { // ranges and counts add up; these do not
        sum.mean = sum.deviation = NAN;
        sum.shape = sum.tensors == 1 ? tr("1 tensor") : tr("%1 tensors").arg(sum.tensors);
    }
    return sum;
}

QVariant TensorTreeModel::value(const Summary& shown, int column) const
{
    switch (column) {
    case Name:
        return shown.name;
    case Stored:
        return shown.stored;
    case Shape:
        return shown.shape;
    case Size:
        return shown.bytes;
    case Minimum:
        return numberOrNothing(shown.minimum);
    case Maximum:
        return numberOrNothing(shown.maximum);
    case Mean:
        return numberOrNothing(shown.mean);
    case Deviation:
        return numberOrNothing(shown.deviation);
    case LargestSize:
        return numberOrNothing(std::fmax(std::abs(shown.minimum), std::abs(shown.maximum)));
    case Zeros:
        return shown.measured > 0 ? QVariant(shown.zeros) : QVariant();
    case NonFinite:
        return shown.measured > 0 ? QVariant(shown.nonFinite) : QVariant();
    case RowNormMinimum:
        return numberOrNothing(shown.rowNormMinimum);
    case RowNormMaximum:
        return numberOrNothing(shown.rowNormMaximum);
    case File:
        return shown.file;
    default:
        return {};
    }
}

QString TensorTreeModel::display(const Node& row, const Summary& shown, int column) const
{
    switch (column) {
    case Name:
        return row.name;
    case Shape:
        return shown.shape;
    case Size:
        return bytesText(shown.bytes);
    case Zeros:
    case NonFinite:
        return shown.measured == 0 ? QString() : countText(value(shown, column).toLongLong());
    default:
        break;
    }
    const QVariant number = value(shown, column);
    if (number.typeId() != QMetaType::Double)
        return number.toString();
    return significantText(number.toDouble());
}

QString TensorTreeModel::toolTip(const Node& row) const
{
    const Summary shown = summary(row);
    QStringList lines = {shown.name,
                         tr("%1 · %2 elements · %3")
                             .arg(shown.stored, countText(shown.elements), bytesText(shown.bytes))};
    if (shown.group)
        lines << tr("%1 of %2 tensors measured").arg(shown.measured).arg(shown.tensors);
    if (row.tensor && m_statistics[*row.tensor] && m_statistics[*row.tensor]->nonFinite() > 0) {
        const TensorStatistics& one = *m_statistics[*row.tensor];
        QStringList index;
        for (const std::int64_t position : one.firstNonFinite)
            index << QString::number(position);
        lines << tr("%1 NaN, %2 infinite; the first at [%3]")
                     .arg(one.nans)
                     .arg(one.infinities)
                     .arg(index.join(QStringLiteral(", ")));
    }
    return lines.join(QLatin1Char('\n'));
}

QVariant TensorTreeModel::data(const QModelIndex& index, int role) const
{
    if (!index.isValid())
        return {};
    const Node& row = *node(index);
    switch (role) {
    case Qt::DisplayRole:
        return display(row, summary(row), index.column());
    case valueRole:
        return value(summary(row), index.column());
    case Qt::ToolTipRole:
        return toolTip(row);
    case Qt::TextAlignmentRole:
        return index.column() >= Size && index.column() < File
                   ? QVariant(Qt::AlignRight | Qt::AlignVCenter)
                   : QVariant();
    case Qt::ForegroundRole:
        return index.column() == NonFinite && summary(row).nonFinite > 0
                   ? QVariant(deltaColor(-100, m_dark))
                   : QVariant();
    default:
        return {};
    }
}

QVariant TensorTreeModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    static const QStringList names = {
        tr("Tensor"),  tr("Stored as"),    tr("Shape"),        tr("Size"),  tr("Min"),
        tr("Max"),     tr("Mean"),         tr("Std"),          tr("|max|"), tr("Zeros"),
        tr("NaN/Inf"), tr("Row norm min"), tr("Row norm max"), tr("File")};
    static const QStringList explanations = {
        {},
        tr("Data type in the file"),
        {},
        tr("Bytes in the file"),
        tr("Smallest value"),
        tr("Largest value"),
        {},
        tr("Standard deviation of all values"),
        tr("Largest absolute value"),
        tr("Values that are exactly zero"),
        tr("Values that are not finite; left out of all other figures"),
        tr("Smallest Euclidean norm of a matrix's rows"),
        tr("Largest Euclidean norm of a matrix's rows"),
        {}};
    if (orientation != Qt::Horizontal)
        return {};
    if (role == Qt::DisplayRole)
        return names.value(section);
    if (role == Qt::ToolTipRole && !explanations.value(section).isEmpty())
        return explanations.value(section);
    return {};
}

} // namespace mla::ui
