// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/models/study_tree_model.h"

#include <map>

#include "widgets/common/format.h"
#include "widgets/common/plain_text.h"
#include "widgets/models/acceptance_rows.h"

namespace mla::ui
{

struct StudyTreeModel::Node {
    Node* parent = nullptr;
    int row = 0;
    StudyItem item;
    QString name, summary;
    std::vector<std::unique_ptr<Node>> children;

    Node* add(StudyItem childItem, const QString& childName, const QString& childSummary = {})
    {
        auto child = std::make_unique<Node>();
        child->parent = this;
        child->row = static_cast<int>(children.size());
        child->item = std::move(childItem);
        child->name = childName;
        child->summary = childSummary;
        return children.emplace_back(std::move(child)).get();
    }
    [[nodiscard]] const Node* find(StudyItem::Kind kind, const QString& id) const
    {
        if (item.kind == kind && item.id == id)
            return this;
        for (const auto& child : children)
            if (const Node* found = child->find(kind, id))
                return found;
        return nullptr;
    }
};

namespace
{

using Node = StudyTreeModel::Node;
using Kind = StudyItem::Kind;

/// The run's id without the checkpoint, where there is only one.
QString shortName(const StudyData& study, const std::string& run)
{
    const std::string prefix =
        study.checkpoints.size() == 1 ? study.checkpoints.front().id + "/" : std::string();
    return text(run.starts_with(prefix) ? run.substr(prefix.size()) : run);
}

QString runSummary(const RunRecord& run)
{
    QStringList parts;
    if (const auto error = run.meanRelativeError())
        parts << StudyTreeModel::tr("error %1").arg(numberText(*error, 3));
    if (run.originalCacheElements > 0)
        parts << StudyTreeModel::tr("%1/%2").arg(run.cacheElements).arg(run.originalCacheElements);
    return parts.join(QStringLiteral(" · "));
}

void addCheckpoints(Node& root, const StudyData& study)
{
    Node* group = root.add({}, StudyTreeModel::tr("Checkpoints"));
    for (const CheckpointRecord& checkpoint : study.checkpoints)
        group->add({Kind::Checkpoint, text(checkpoint.id)}, text(checkpoint.id),
                   text(checkpoint.path));
}

void addRuns(Node& root, const StudyData& study)
{
    Node* group = root.add({}, StudyTreeModel::tr("Runs"));
    std::map<std::string, Node*> placed;
    const auto add = [&](Node* parent, const RunRecord& run) {
        const QString name = parent == group ? shortName(study, run.id) : text(run.variant);
        placed[run.id] = parent->add({Kind::Run, text(run.id)}, name, runSummary(run));
    };
    for (const RunRecord& run : study.runs)
        if (run.parent.empty() || !study.findRun(run.parent))
            add(group, run);
    // Refinements may be refined again; every pass hangs up the runs whose parent is already there.
    for (bool progress = true; progress;) {
        progress = false;
        for (const RunRecord& run : study.runs) {
            const auto parent = placed.find(run.parent);
            if (placed.count(run.id) || parent == placed.end())
                continue;
            add(parent->second, run);
            progress = true;
        }
    }
}

void addCalibrations(Node& root, const StudyData& study)
{
    Node* group = root.add({}, StudyTreeModel::tr("Calibrations"));
    for (const CalibrationRecord& calibration : study.calibrations)
        group->add({Kind::Calibration, text(calibration.id)}, text(calibration.id),
                   StudyTreeModel::tr("%1 sequences of %2 tokens")
                       .arg(calibration.sequences)
                       .arg(calibration.length));
}

void addAcceptance(Node& root, const StudyData& study)
{
    Node* group = root.add({}, StudyTreeModel::tr("Acceptance"));
    std::map<std::string, Node*> byRun;
    for (const AcceptanceRecord& record : study.acceptance) {
        Node*& parent = byRun[record.run];
        if (!parent)
            parent =
                group->add({Kind::AcceptanceRun, text(record.run)}, shortName(study, record.run));
        const AcceptanceMetrics metrics = metricsOf(record);
        parent->add({Kind::Acceptance, text(record.id)},
                    StudyTreeModel::tr("%1, k = %2").arg(text(record.task)).arg(record.k),
                    StudyTreeModel::tr("rate %1 %, length %2")
                        .arg(numberText(100 * metrics.acceptanceRate, 1),
                             numberText(metrics.meanAcceptanceLength, 2)));
    }
}

QString exportSummary(const ExportRecord& record)
{
    if (record.checks.empty())
        return StudyTreeModel::tr("not verified");
    QStringList stacks;
    for (const ExportCheckRecord& check : record.checks)
        if (check.tried())
            stacks << (check.passed ? text(check.stack)
                                    : StudyTreeModel::tr("%1 differs").arg(text(check.stack)));
    return StudyTreeModel::tr("checked in %1").arg(stacks.join(QStringLiteral(", ")));
}

void addExports(Node& root, const StudyData& study)
{
    Node* group = root.add({}, StudyTreeModel::tr("Exports"));
    for (const ExportRecord& record : study.exports)
        group->add({Kind::Export, text(record.id)}, shortName(study, record.id),
                   exportSummary(record));
}

} // namespace

StudyTreeModel::StudyTreeModel(QObject* parent)
    : QAbstractItemModel(parent), m_root(std::make_unique<Node>())
{
}

StudyTreeModel::~StudyTreeModel() = default;

void StudyTreeModel::setStudy(const StudyData& study)
{
    beginResetModel();
    m_root = std::make_unique<Node>();
    addCheckpoints(*m_root, study);
    addRuns(*m_root, study);
    addCalibrations(*m_root, study);
    addAcceptance(*m_root, study);
    addExports(*m_root, study);
    endResetModel();
}

const StudyTreeModel::Node* StudyTreeModel::node(const QModelIndex& index) const
{
    return index.isValid() ? static_cast<const Node*>(index.internalPointer()) : m_root.get();
}

StudyItem StudyTreeModel::item(const QModelIndex& index) const
{
    return node(index)->item;
}

QModelIndex StudyTreeModel::indexOf(const StudyItem& item) const
{
    const Node* found = item.id.isEmpty() ? nullptr : m_root->find(item.kind, item.id);
    return found ? createIndex(found->row, Name, found) : QModelIndex();
}

QModelIndex StudyTreeModel::index(int row, int column, const QModelIndex& parent) const
{
    const Node* above = node(parent);
    const bool inside = row >= 0 && row < static_cast<int>(above->children.size()) && column >= 0 &&
                        column < Columns && parent.column() <= 0;
    return inside ? createIndex(row, column, above->children[static_cast<std::size_t>(row)].get())
                  : QModelIndex();
}

QModelIndex StudyTreeModel::parent(const QModelIndex& child) const
{
    const Node* above = child.isValid() ? node(child)->parent : nullptr;
    return above && above != m_root.get() ? createIndex(above->row, Name, above) : QModelIndex();
}

int StudyTreeModel::rowCount(const QModelIndex& parent) const
{
    return parent.column() > 0 ? 0 : static_cast<int>(node(parent)->children.size());
}

int StudyTreeModel::columnCount(const QModelIndex&) const
{
    return Columns;
}

QVariant StudyTreeModel::data(const QModelIndex& index, int role) const
{
    if (!index.isValid())
        return {};
    const Node* row = node(index);
    const QString shown = index.column() == Name ? row->name : row->summary;
    if (role == Qt::DisplayRole) {
        const bool group = row->item.kind == Kind::Group && index.column() == Summary;
        return group ? QString::number(row->children.size()) : shown;
    }
    if (role == Qt::ToolTipRole)
        return row->item.id.isEmpty() ? QVariant()
                                      : QVariant(row->item.id + QLatin1Char('\n') + row->summary);
    return {};
}

QVariant StudyTreeModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation == Qt::Horizontal && role == Qt::ToolTipRole && section == Summary)
        return tr("Drafts: mean relative functional error, cache elements of the original's");
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole)
        return {};
    return section == Name ? tr("Item") : tr("Summary");
}

} // namespace mla::ui
