// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/models/report_list_model.h"

#include <algorithm>

#include "widgets/common/plain_text.h"

namespace mla::ui
{

void ReportListModel::setFigures(const std::vector<Figure>& figures)
{
    beginResetModel();
    std::vector<Sheet> sheets;
    for (const Figure& figure : figures)
        sheets.push_back(sheetOf(figure));
    for (std::size_t i = static_cast<std::size_t>(m_figures); i < m_sheets.size(); ++i) {
        const Sheet& old = m_sheets[i];
        std::vector<Figure> panels;
        for (const Figure& panel : old.panels)
            if (const auto now = std::ranges::find(figures, panel.id, &Figure::id);
                now != figures.end())
                panels.push_back(*now);
        if (!panels.empty())
            sheets.push_back(composedSheet(old.id, std::move(panels), old.columns));
    }
    m_sheets = std::move(sheets);
    m_figures = static_cast<int>(figures.size());
    endResetModel();
}

Sheet ReportListModel::preview(std::vector<int> rows, int columns) const
{
    std::ranges::sort(rows);
    std::vector<Figure> panels;
    for (const int row : rows)
        if (valid(row) && !isComposed(row))
            panels.push_back(m_sheets[static_cast<std::size_t>(row)].panels.front());
    return composedSheet("sheet-" + std::to_string(m_made + 1), std::move(panels), columns);
}

int ReportListModel::compose(std::vector<int> rows, int columns)
{
    Sheet sheet = preview(std::move(rows), columns);
    if (sheet.panels.size() < 2)
        return -1;
    const int row = static_cast<int>(m_sheets.size());
    beginInsertRows({}, row, row);
    ++m_made;
    m_sheets.push_back(std::move(sheet));
    endInsertRows();
    return row;
}

void ReportListModel::removeSheet(int row)
{
    if (!isComposed(row))
        return;
    beginRemoveRows({}, row, row);
    m_sheets.erase(m_sheets.begin() + row);
    endRemoveRows();
}

void ReportListModel::setAllChecked(bool checked)
{
    m_unchecked.clear();
    if (!checked)
        for (const Sheet& sheet : m_sheets)
            m_unchecked.insert(sheet.id);
    if (!m_sheets.empty())
        emit dataChanged(index(0), index(static_cast<int>(m_sheets.size()) - 1),
                         {Qt::CheckStateRole});
}

bool ReportListModel::isComposed(int row) const
{
    return valid(row) && row >= m_figures;
}

const Sheet* ReportListModel::sheet(int row) const
{
    return valid(row) ? &m_sheets[static_cast<std::size_t>(row)] : nullptr;
}

std::vector<Sheet> ReportListModel::checkedSheets() const
{
    std::vector<Sheet> checked;
    std::ranges::copy_if(m_sheets, std::back_inserter(checked),
                         [this](const Sheet& sheet) { return !m_unchecked.contains(sheet.id); });
    return checked;
}

int ReportListModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_sheets.size());
}

QVariant ReportListModel::data(const QModelIndex& index, int role) const
{
    const Sheet* shown = index.isValid() ? sheet(index.row()) : nullptr;
    if (!shown)
        return {};
    if (role == Qt::DisplayRole)
        return isComposed(index.row())
                   ? tr("Sheet of %1 figures: %2").arg(shown->panels.size()).arg(text(shown->title))
                   : text(shown->title);
    if (role == Qt::ToolTipRole)
        return text(shown->title + "\n" + shown->id);
    if (role == Qt::CheckStateRole)
        return m_unchecked.contains(shown->id) ? Qt::Unchecked : Qt::Checked;
    return {};
}

bool ReportListModel::setData(const QModelIndex& index, const QVariant& value, int role)
{
    const Sheet* shown = index.isValid() ? sheet(index.row()) : nullptr;
    if (!shown || role != Qt::CheckStateRole)
        return false;
    if (value.toInt() == Qt::Checked)
        m_unchecked.erase(shown->id);
    else
        m_unchecked.insert(shown->id);
    emit dataChanged(index, index, {Qt::CheckStateRole});
    return true;
}

Qt::ItemFlags ReportListModel::flags(const QModelIndex& index) const
{
    return index.isValid() ? QAbstractListModel::flags(index) | Qt::ItemIsUserCheckable
                           : Qt::ItemFlags();
}

} // namespace mla::ui
