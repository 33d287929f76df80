// SPDX-License-Identifier: GPL-3.0-or-later
// The questions of the user guide that hold all words of a search, those with the words in the
// question itself first.
#pragma once

#include <QAbstractListModel>

#include "widgets/help/help_pages.h"

namespace mla::ui
{

class HelpPageModel : public QAbstractListModel
{
    Q_OBJECT
public:
    static constexpr int idRole = Qt::UserRole; ///< QString

    explicit HelpPageModel(QObject* parent = nullptr) : QAbstractListModel(parent) {}

    void setPages(std::vector<HelpPage> pages);
    void setWords(const QString& words); ///< "" = every page, in the order of the guide
    [[nodiscard]] bool hasPage(const QString& id) const; ///< whether it is shown now or not
    [[nodiscard]] int pageCount() const { return static_cast<int>(m_pages.size()); }
    [[nodiscard]] QModelIndex indexOf(const QString& id) const; ///< invalid if it is not shown

    [[nodiscard]] int rowCount(const QModelIndex& parent) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;

private:
    void search();

    std::vector<HelpPage> m_pages;
    std::vector<std::size_t> m_shown; ///< into m_pages
    QStringList m_words;
};

} // namespace mla::ui
