// SPDX-License-Identifier: GPL-3.0-or-later
// For tests that use a window as somebody without a mouse does.
#pragma once

#include <QApplication>
#include <QTest>
#include <QWidget>

namespace mla::test
{

inline constexpr int mostTabs = 120; ///< a part that is further away cannot be called reachable

inline void press(Qt::Key key, Qt::KeyboardModifiers modifiers = {})
{
    QWidget* at = QApplication::activePopupWidget();
    if (!at)
        at = QApplication::focusWidget();
    if (!at)
        at = QApplication::activeWindow();
    QVERIFY(at);
    QTest::keyClick(at, key, modifiers);
}

/// Goes to the part as a user without a mouse does.
inline void reach(const QWidget* part)
{
    QVERIFY(part);
    const auto arrived = [part] {
        const QWidget* focus = QApplication::focusWidget();
        return focus && (focus == part || part->isAncestorOf(focus));
    };
    for (int i = 0; i < mostTabs && !arrived(); ++i)
        press(Qt::Key_Tab);
    QVERIFY2(arrived(), qPrintable(part->accessibleName() + " is not reached by Tab"));
}

/// Replaces the text of the part that has the focus.
inline void type(const QString& text)
{
    press(Qt::Key_A, Qt::ControlModifier);
    QTest::keyClicks(QApplication::focusWidget(), text);
    if (QApplication::activePopupWidget())
        press(Qt::Key_Escape); // what a completer offers
}

} // namespace mla::test
