// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/help/help_page_model.h"

#include <algorithm>

namespace mla::ui
{

namespace
{

bool holdsAll(const QString& text, const QStringList& words)
{
    return std::ranges::all_of(
        words, [&](const QString& word) { return text.contains(word, Qt::CaseInsensitive); });
}

} // namespace

void HelpPageModel::setPages(std::vector<HelpPage> pages)
{
    beginResetModel();
    m_pages = std::move(pages);
    search();
    endResetModel();
}

void HelpPageModel::setWords(const QString& words)
{
    QStringList wanted = words.split(QLatin1Char(' '), Qt::SkipEmptyParts);
    if (wanted == m_words)
        return;
    beginResetModel();
    m_words = std::move(wanted);
    search();
    endResetModel();
}

void HelpPageModel::search()
{
    m_shown.clear();
    for (std::size_t i = 0; i < m_pages.size(); ++i)
        if (holdsAll(m_pages[i].title + QLatin1Char('\n') + m_pages[i].text, m_words))
            m_shown.push_back(i);
    std::ranges::stable_partition(
        m_shown, [this](std::size_t i) { return holdsAll(m_pages[i].title, m_words); });
}

bool HelpPageModel::hasPage(const QString& id) const
{
    return std::ranges::find(m_pages, id, &HelpPage::id) != m_pages.end();
}

QModelIndex HelpPageModel::indexOf(const QString& id) const
{
    for (std::size_t row = 0; row < m_shown.size(); ++row)
        if (m_pages[m_shown[row]].id == id)
            return index(static_cast<int>(row));
    return {};
}

int HelpPageModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_shown.size());
}

QVariant HelpPageModel::data(const QModelIndex& index, int role) const
{
    if (!checkIndex(index, CheckIndexOption::IndexIsValid))
        return {};
    const HelpPage& page = m_pages[m_shown[static_cast<std::size_t>(index.row())]];
    switch (role) {
    case Qt::DisplayRole:
    case Qt::ToolTipRole: // questions may be longer than the list is wide
        return page.title;
    case idRole:
        return page.id;
    default:
        return {};
    }
}

} // namespace mla::ui
