// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/common/empty_state.h"

#include <QAction>
#include <QLabel>
#include <QPushButton>
#include <QStackedLayout>
#include <QVBoxLayout>

namespace mla::ui
{

EmptyState::EmptyState(QWidget* content, QWidget* parent)
    : QWidget(parent), m_stack(new QStackedLayout(this)), m_buttons(new QVBoxLayout),
      m_title(new QLabel(this)), m_hint(new QLabel(this))
{
    QFont font = m_title->font();
    font.setPointSizeF(font.pointSizeF() * 1.25);
    font.setBold(true);
    m_title->setFont(font);
    for (QLabel* label : {m_title, m_hint}) {
        label->setAlignment(Qt::AlignCenter);
        label->setWordWrap(true);
    }
    auto* message = new QWidget(this);
    auto* layout = new QVBoxLayout(message);
    layout->addStretch(2);
    layout->addWidget(m_title);
    layout->addWidget(m_hint);
    layout->addSpacing(8);
    layout->addLayout(m_buttons);
    layout->addStretch(3);
    m_stack->addWidget(content);
    m_stack->addWidget(message);
}

void EmptyState::setText(const QString& title, const QString& hint)
{
    m_title->setText(title);
    m_hint->setText(hint);
}

void EmptyState::addAction(QAction* action)
{
    auto* button = new QPushButton(action->text(), this);
    button->setIcon(action->icon());
    connect(button, &QPushButton::clicked, action, &QAction::trigger);
    m_buttons->addWidget(button, 0, Qt::AlignHCenter);
}

void EmptyState::setEmpty(bool empty)
{
    m_stack->setCurrentIndex(empty ? 1 : 0);
}

bool EmptyState::isEmpty() const
{
    return m_stack->currentIndex() == 1;
}

} // namespace mla::ui
