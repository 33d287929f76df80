// SPDX-License-Identifier: GPL-3.0-or-later
// Finds the parts of a window by what a user reads on them.
#pragma once

#include <QCheckBox>
#include <QPushButton>
#include <QWidget>

namespace mla::test
{

/// By the text on it, without the mark of its shortcut; null if there is none.
template <typename Widget>
Widget* labelled(const QWidget& window, const QString& text)
{
    for (Widget* found : window.findChildren<Widget*>())
        if (QString(found->text()).remove(QLatin1Char('&')) == text)
            return found;
    return nullptr;
}

inline QPushButton* button(const QWidget& window, const QString& text)
{
    return labelled<QPushButton>(window, text);
}
inline QCheckBox* checkBox(const QWidget& window, const QString& text)
{
    return labelled<QCheckBox>(window, text);
}

/// By its accessible name.
template <typename Widget>
Widget* named(const QWidget& window, const QString& accessibleName)
{
    for (Widget* found : window.findChildren<Widget*>())
        if (found->accessibleName() == accessibleName)
            return found;
    return nullptr;
}

} // namespace mla::test
