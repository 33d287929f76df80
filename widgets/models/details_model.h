// SPDX-License-Identifier: GPL-3.0-or-later
// Where a record of a study comes from and how it was made, as rows of name and value.
#pragma once

#include <vector>

#include <QAbstractTableModel>

#include "core/store/records.h"
#include "widgets/models/study_tree_model.h"

namespace mla::ui
{

struct Detail {
    QString name, value;
    bool operator==(const Detail&) const = default;
};
/// Provenance of the record that `item` stands for: settings, seed, device, versions, paths.
[[nodiscard]] std::vector<Detail> detailsOf(const StudyData& study, const StudyItem& item);

class DetailsModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    explicit DetailsModel(QObject* parent = nullptr) : QAbstractTableModel(parent) {}
    void setDetails(std::vector<Detail> details);
    [[nodiscard]] QString asText() const; ///< "name: value" lines

    [[nodiscard]] int rowCount(const QModelIndex& parent) const override;
    [[nodiscard]] int columnCount(const QModelIndex& parent) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
    [[nodiscard]] QVariant headerData(int section, Qt::Orientation, int role) const override;

private:
    std::vector<Detail> m_details;
};

} // namespace mla::ui
