// SPDX-License-Identifier: GPL-3.0-or-later
// Draws a table cell as a progress bar with the cell's text on it.
#pragma once

#include <QStyledItemDelegate>

namespace mla::ui
{

class ProgressDelegate : public QStyledItemDelegate
{
    Q_OBJECT
public:
    /// `role`: progress from 0 to 1; a cell without one is drawn as text.
    explicit ProgressDelegate(int role, QObject* parent = nullptr)
        : QStyledItemDelegate(parent), m_role(role)
    {
    }
    void paint(QPainter* painter, const QStyleOptionViewItem& option,
               const QModelIndex& index) const override;

private:
    int m_role;
};

} // namespace mla::ui
