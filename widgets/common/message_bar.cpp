// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/common/message_bar.h"

#include <algorithm>

#include <QClipboard>
#include <QFrame>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QLabel>
#include <QPlainTextEdit>
#include <QStyle>
#include <QToolButton>
#include <QVBoxLayout>

#include "widgets/common/fonts.h"
#include "widgets/common/plain_text.h"

namespace mla::ui
{

namespace
{

constexpr std::size_t visibleNotices = 3;

QStyle::StandardPixmap iconFor(Notice::Severity severity)
{
    switch (severity) {
    case Notice::Severity::Warning:
        return QStyle::SP_MessageBoxWarning;
    case Notice::Severity::Error:
        return QStyle::SP_MessageBoxCritical;
    default:
        return QStyle::SP_MessageBoxInformation;
    }
}

QString severityText(Notice::Severity severity)
{
    switch (severity) {
    case Notice::Severity::Warning:
        return MessageBar::tr("Warning");
    case Notice::Severity::Error:
        return MessageBar::tr("Error");
    default:
        return MessageBar::tr("Notice");
    }
}

QToolButton* textButton(const QString& label, QWidget* parent)
{
    auto* button = new QToolButton(parent);
    button->setText(label);
    button->setAccessibleName(label);
    button->setToolButtonStyle(Qt::ToolButtonTextOnly);
    button->setAutoRaise(true);
    return button;
}

/// The folding part: the full text, selectable, with a copy button.
QWidget* detailsPart(const QString& details, QWidget* parent)
{
    auto* part = new QWidget(parent);
    auto* layout = new QHBoxLayout(part);
    layout->setContentsMargins(0, 0, 0, 0);
    auto* view = new QPlainTextEdit(details, part);
    view->setReadOnly(true);
    view->setFont(monospaceFont());
    view->setAccessibleName(MessageBar::tr("Details"));
    view->setMaximumHeight(view->fontMetrics().height() * 7);
    layout->addWidget(view, 1);
    QToolButton* copy = textButton(MessageBar::tr("Copy"), part);
    QObject::connect(copy, &QToolButton::clicked, part,
                     [details] { QGuiApplication::clipboard()->setText(details); });
    layout->addWidget(copy, 0, Qt::AlignTop);
    part->hide();
    return part;
}

} // namespace

Notice errorNotice(const QString& title, const Error& error)
{
    Notice notice{
        Notice::Severity::Error, title + QStringLiteral(": ") + text(error.message), {}, {}, {}};
    if (!error.hint.empty())
        notice.text += QStringLiteral(". ") + text(error.hint);
    notice.details = text(error.text());
    return notice;
}

MessageBar::MessageBar(QWidget* parent) : QWidget(parent), m_layout(new QVBoxLayout(this))
{
    m_layout->setContentsMargins(0, 0, 0, 0);
    m_layout->setSpacing(2);
    setAccessibleName(tr("Messages"));
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Maximum);
    hide();
}

void MessageBar::post(const Notice& notice)
{
    if (texts().contains(notice.text))
        return;
    m_waiting.push_back(notice);
    showNext();
}

QStringList MessageBar::texts() const
{
    QStringList all;
    for (const auto& shown : m_shown)
        all << shown.text;
    for (const Notice& notice : m_waiting)
        all << notice.text;
    return all;
}

void MessageBar::dismissAll()
{
    m_waiting.clear();
    while (!m_shown.empty())
        dismiss(m_shown.front().item);
}

void MessageBar::withdraw(const QString& topic)
{
    std::erase_if(m_waiting, [&](const Notice& notice) { return notice.topic == topic; });
    const std::vector<Shown> shown = m_shown;
    for (const Shown& notice : shown)
        if (notice.topic == topic)
            dismiss(notice.item);
}

void MessageBar::showNext()
{
    while (m_shown.size() < visibleNotices && !m_waiting.empty()) {
        const Notice notice = std::move(m_waiting.front());
        m_waiting.pop_front();
        auto* item = new QFrame(this);
        item->setFrameShape(QFrame::StyledPanel);
        item->setAutoFillBackground(true);
        item->setBackgroundRole(QPalette::AlternateBase);
        item->setAccessibleName(severityText(notice.severity) + QStringLiteral(": ") + notice.text);
        auto* column = new QVBoxLayout(item);
        column->setContentsMargins(8, 4, 4, 4);
        auto* line = new QHBoxLayout;
        column->addLayout(line);

        auto* icon = new QLabel(item);
        const int size = style()->pixelMetric(QStyle::PM_SmallIconSize);
        icon->setPixmap(style()->standardIcon(iconFor(notice.severity)).pixmap(size));
        line->addWidget(icon);
        auto* label = new QLabel(notice.text, item);
        label->setWordWrap(true);
        label->setTextFormat(Qt::PlainText);
        label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
        line->addWidget(label, 1);
        if (!notice.details.isEmpty()) {
            QWidget* part = detailsPart(notice.details, item);
            column->addWidget(part);
            QToolButton* toggle = textButton(tr("Details"), item);
            toggle->setCheckable(true);
            connect(toggle, &QToolButton::toggled, part, &QWidget::setVisible);
            line->addWidget(toggle);
        }
        if (!notice.actionText.isEmpty()) {
            QToolButton* button = textButton(notice.actionText, item);
            button->setAutoRaise(false);
            connect(button, &QToolButton::clicked, this, [this, item, action = notice.action] {
                dismiss(item);
                action();
            });
            line->addWidget(button);
        }
        QToolButton* close = textButton(tr("Dismiss"), item);
        connect(close, &QToolButton::clicked, this, [this, item] { dismiss(item); });
        line->addWidget(close);
        m_layout->addWidget(item);
        m_shown.push_back({item, notice.text, notice.topic});
    }
    setVisible(!m_shown.empty());
}

void MessageBar::dismiss(QWidget* item)
{
    const auto found = std::find_if(m_shown.begin(), m_shown.end(),
                                    [item](const auto& shown) { return shown.item == item; });
    if (found == m_shown.end())
        return;
    m_shown.erase(found);
    item->hide();
    item->deleteLater();
    showNext();
}

} // namespace mla::ui
