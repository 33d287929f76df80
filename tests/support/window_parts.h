// SPDX-License-Identifier: GPL-3.0-or-later
// For tests that drive windows: settings of their own, and parts found by what a user reads on
// them.
#pragma once

#include <QCheckBox>
#include <QCoreApplication>
#include <QPushButton>
#include <QSettings>
#include <QWidget>

namespace mla::test
{

/// Empty settings in a file below `folder`: a test neither reads nor changes the user's.
inline void isolateSettings(const QString& folder)
{
    QSettings::setDefaultFormat(QSettings::IniFormat);
    QSettings::setPath(QSettings::IniFormat, QSettings::UserScope, folder);
    QCoreApplication::setOrganizationName(QStringLiteral("mla-draft-workbench-tests"));
    QSettings().clear();
}

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
