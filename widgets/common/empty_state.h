// SPDX-License-Identifier: GPL-3.0-or-later
// What a page shows while it has nothing: why, and what to do next.
#pragma once

#include <QWidget>

class QAction;
class QLabel;
class QStackedLayout;
class QVBoxLayout;

namespace mla::ui
{

/// Shows `content`, or a title, a hint and buttons for `actions` in its place.
class EmptyState : public QWidget
{
    Q_OBJECT
public:
    explicit EmptyState(QWidget* content, QWidget* parent = nullptr);

    void setText(const QString& title, const QString& hint);
    void addAction(QAction* action); ///< as a button
    void setEmpty(bool empty);
    [[nodiscard]] bool isEmpty() const;

private:
    QStackedLayout* m_stack;
    QVBoxLayout* m_buttons;
    QLabel* m_title;
    QLabel* m_hint;
};

} // namespace mla::ui
