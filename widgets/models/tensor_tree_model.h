// SPDX-License-Identifier: GPL-3.0-or-later
// A checkpoint's tensors as a tree, layer > module > tensor, or as a plain list, with the
// statistics that were measured so far; and the proxy that sorts and filters it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <QAbstractItemModel>
#include <QSortFilterProxyModel>

#include "core/pipeline/pipeline.h"

namespace mla::ui
{

class TensorTreeModel : public QAbstractItemModel
{
    Q_OBJECT
public:
    enum ColumnIndex {
        Name,
        Stored,
        Shape,
        Size,
        Minimum,
        Maximum,
        Mean,
        Deviation,
        LargestSize, ///< of |value|
        Zeros,
        NonFinite,
        RowNormMinimum,
        RowNormMaximum,
        File,
        Columns
    };
    /// Numbers for sorting and export, a tensor's full name; invalid where there is no value.
    static constexpr int valueRole = Qt::UserRole;

    explicit TensorTreeModel(QObject* parent = nullptr);
    ~TensorTreeModel() override;

    void setTensors(std::vector<TensorSummary> tensors); ///< forgets all statistics
    void setGrouped(bool grouped);                       ///< else every tensor is a row of the root
    void addStatistics(const std::vector<TensorStatistics>& measured);
    void setDark(bool dark); ///< tone of the NaN/Inf column

    [[nodiscard]] const std::vector<TensorSummary>& tensors() const { return m_tensors; }
    /// The tensor of a row; null for a group.
    [[nodiscard]] const TensorSummary* tensor(const QModelIndex& index) const;
    [[nodiscard]] const TensorStatistics* statistics(const QModelIndex& index) const;

    [[nodiscard]] QModelIndex index(int row, int column, const QModelIndex& parent) const override;
    [[nodiscard]] QModelIndex parent(const QModelIndex& child) const override;
    [[nodiscard]] int rowCount(const QModelIndex& parent) const override;
    [[nodiscard]] int columnCount(const QModelIndex& parent) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
    [[nodiscard]] QVariant headerData(int section, Qt::Orientation, int role) const override;

    struct Node; ///< one row; defined in the source file

private:
    struct Summary; ///< what one row shows: of a tensor, or of all tensors of a group
    [[nodiscard]] const Node* node(const QModelIndex& index) const;
    [[nodiscard]] Summary summary(const Node& row) const;
    [[nodiscard]] QVariant value(const Summary& shown, int column) const;
    [[nodiscard]] QString display(const Node& row, const Summary& shown, int column) const;
    [[nodiscard]] QString toolTip(const Node& row) const;
    void addToSummary(const Node& row, Summary& sum) const;
    void rebuild();

    std::vector<TensorSummary> m_tensors; ///< in reading order: layer 2 before layer 10
    std::vector<std::optional<TensorStatistics>> m_statistics; ///< of each, once measured
    std::unique_ptr<Node> m_root;
    std::vector<const Node*> m_rows; ///< of each tensor
    bool m_grouped = true, m_dark = false;
};

/// Sorts siblings by value (rows without one last) and keeps tensors that contain every word of the
/// filter in name, type, shape or file.
class TensorFilterProxy : public QSortFilterProxyModel
{
    Q_OBJECT
public:
    explicit TensorFilterProxy(QObject* parent = nullptr);
    void setWords(const QString& words);
    /// Names of the shown tensors at or below the given rows, each once, in the shown order; of all
    /// rows if there are none.
    [[nodiscard]] std::vector<std::string> tensorsBelow(const QModelIndexList& rows) const;

protected:
    [[nodiscard]] bool filterAcceptsRow(int row, const QModelIndex& parent) const override;
    [[nodiscard]] bool lessThan(const QModelIndex& left, const QModelIndex& right) const override;

private:
    QStringList m_words;
};

} // namespace mla::ui
