// SPDX-License-Identifier: GPL-3.0-or-later
// A study as a tree: checkpoints; conversions with the refinements made of them; calibrations;
// acceptance measurements by run; exported drafts.
#pragma once

#include <memory>
#include <vector>

#include <QAbstractItemModel>

#include "core/store/records.h"

namespace mla::ui
{

/// What a row of the tree stands for.
struct StudyItem {
    enum class Kind { Group, Checkpoint, Run, Calibration, AcceptanceRun, Acceptance, Export };
    Kind kind = Kind::Group;
    QString id; ///< of the record; of the run for AcceptanceRun
};

class StudyTreeModel : public QAbstractItemModel
{
    Q_OBJECT
public:
    enum ColumnIndex { Name, Summary, Columns };

    explicit StudyTreeModel(QObject* parent = nullptr);
    ~StudyTreeModel() override;

    void setStudy(const StudyData& study);
    [[nodiscard]] StudyItem item(const QModelIndex& index) const;
    [[nodiscard]] QModelIndex indexOf(const StudyItem& item) const; ///< invalid if there is none

    [[nodiscard]] QModelIndex index(int row, int column, const QModelIndex& parent) const override;
    [[nodiscard]] QModelIndex parent(const QModelIndex& child) const override;
    [[nodiscard]] int rowCount(const QModelIndex& parent) const override;
    [[nodiscard]] int columnCount(const QModelIndex& parent) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
    [[nodiscard]] QVariant headerData(int section, Qt::Orientation, int role) const override;

    struct Node; ///< one row; defined in the source file

private:
    [[nodiscard]] const Node* node(const QModelIndex& index) const;
    std::unique_ptr<Node> m_root;
};

} // namespace mla::ui
