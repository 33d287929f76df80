// SPDX-License-Identifier: GPL-3.0-or-later
// What a report can hold: every figure of the study and the sheets composed of them, each with a
// check mark that says whether it is written.
#pragma once

#include <set>
#include <vector>

#include <QAbstractListModel>

#include "widgets/plots/figure_export.h"

namespace mla::ui
{

class ReportListModel : public QAbstractListModel
{
    Q_OBJECT
public:
    explicit ReportListModel(QObject* parent = nullptr) : QAbstractListModel(parent) {}

    /// Sheets follow the new figures; one whose figures are all gone goes too. Check marks stay
    /// with the ids.
    void setFigures(const std::vector<Figure>& figures);
    /// The row of a new sheet of these rows' figures, in the list's order; -1 for fewer than two.
    int compose(std::vector<int> rows, int columns);
    void removeSheet(int row); ///< figures stay
    void setAllChecked(bool checked);
    [[nodiscard]] bool isComposed(int row) const;
    [[nodiscard]] const Sheet* sheet(int row) const; ///< null if there is none
    /// What compose() would make, without adding it.
    [[nodiscard]] Sheet preview(std::vector<int> rows, int columns) const;
    [[nodiscard]] std::vector<Sheet> checkedSheets() const;

    [[nodiscard]] int rowCount(const QModelIndex& parent) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
    bool setData(const QModelIndex& index, const QVariant& value, int role) override;
    [[nodiscard]] Qt::ItemFlags flags(const QModelIndex& index) const override;

private:
    [[nodiscard]] bool valid(int row) const
    {
        return row >= 0 && row < static_cast<int>(m_sheets.size());
    }
    std::vector<Sheet> m_sheets; ///< the figures, then the composed sheets
    int m_figures = 0;
    int m_made = 0; ///< composed sheets so far, for their ids
    std::set<std::string> m_unchecked;
};

} // namespace mla::ui
