// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/pages/token_strip.h"

#include <algorithm>

#include <QEvent>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QPainter>
#include <QScrollBar>
#include <QToolTip>

#include "widgets/common/fonts.h"
#include "widgets/common/palette.h"
#include "widgets/common/plain_text.h"

namespace mla::ui
{

namespace
{

constexpr int margin = 8, wordPadding = 4, markHeight = 12, markGap = 4, lineGap = 14;
constexpr double percent = 100;

QString choicesText(const std::vector<TokenChoice>& choices)
{
    QStringList parts;
    for (const TokenChoice& choice : choices)
        parts << QStringLiteral("<code>%1</code>&nbsp;%2&nbsp;%")
                     .arg(text(choice.text).toHtmlEscaped(),
                          QString::number(percent * choice.probability, 'f', 1));
    return parts.isEmpty() ? TokenStrip::tr("not stored") : parts.join(QStringLiteral(", "));
}

QString markText(TokenMark mark)
{
    switch (mark) {
    case TokenMark::Accepted:
        return TokenStrip::tr("accepted");
    case TokenMark::Corrected:
        return TokenStrip::tr("rejected");
    case TokenMark::Bonus:
        return TokenStrip::tr("bonus of a whole accepted draft");
    case TokenMark::Plain:
        break;
    }
    return TokenStrip::tr("not drafted");
}

} // namespace

TokenStrip::TokenStrip(QWidget* parent) : QAbstractScrollArea(parent)
{
    setFocusPolicy(Qt::StrongFocus);
    setAccessibleName(tr("Tokens of the continuation"));
    setVerticalScrollBarPolicy(Qt::ScrollBarAsNeeded);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    viewport()->setBackgroundRole(QPalette::Base);
    viewport()->setAutoFillBackground(true);
}

void TokenStrip::setTokens(TokenText tokens)
{
    m_text = std::move(tokens);
    m_current = m_text.tokens.empty() ? -1 : 0;
    layOut();
    verticalScrollBar()->setValue(0);
    viewport()->update();
    emit currentChanged(m_current);
}

void TokenStrip::setCurrent(int token)
{
    if (token < 0 || token >= static_cast<int>(m_words.size()) || token == m_current)
        return;
    m_current = token;
    const QRect word = m_words[static_cast<std::size_t>(token)];
    const int drafts = static_cast<int>(m_text.drafts.size());
    const int bottom = word.bottom() + drafts * (markHeight + markGap) + margin;
    QScrollBar* bar = verticalScrollBar();
    if (word.top() < bar->value() + margin)
        bar->setValue(word.top() - margin);
    else if (bottom > bar->value() + viewport()->height())
        bar->setValue(bottom - viewport()->height());
    viewport()->update();
    emit currentChanged(token);
}

void TokenStrip::layOut()
{
    const QFontMetrics names(font()), words(monospaceFont());
    m_namesWidth = 0;
    for (const DraftLine& draft : m_text.drafts)
        m_namesWidth = std::max(m_namesWidth, names.horizontalAdvance(text(draft.name)));
    const int left = 2 * margin + m_namesWidth;
    const int right = std::max(viewport()->width() - margin, left + 1);
    const int wordHeight = words.height() + 2;
    const int lineHeight =
        wordHeight + static_cast<int>(m_text.drafts.size()) * (markHeight + markGap) + lineGap;
    m_words.clear();
    m_lineTops.clear();
    int x = left, y = margin;
    for (const TextToken& token : m_text.tokens) {
        const int width = words.horizontalAdvance(text(token.text)) + 2 * wordPadding;
        if (x > left && x + width > right) {
            x = left;
            y += lineHeight;
        }
        if (m_lineTops.empty() || m_lineTops.back() != y)
            m_lineTops.push_back(y);
        m_words.emplace_back(x, y, std::min(width, right - left), wordHeight);
        x += width;
    }
    const int height = m_words.empty() ? 0 : y + lineHeight;
    verticalScrollBar()->setPageStep(viewport()->height());
    verticalScrollBar()->setSingleStep(lineHeight / 2);
    verticalScrollBar()->setRange(0, std::max(0, height - viewport()->height()));
}

QRect TokenStrip::tokenRect(int token) const
{
    if (token < 0 || token >= static_cast<int>(m_words.size()))
        return {};
    return m_words[static_cast<std::size_t>(token)].translated(0, -verticalScrollBar()->value());
}

QString TokenStrip::describe(int token) const
{
    if (token < 0 || token >= static_cast<int>(m_text.tokens.size()))
        return {};
    const auto index = static_cast<std::size_t>(token);
    const TextToken& here = m_text.tokens[index];
    // All at once: a token such as "%2" is no place for what follows.
    QString lines = tr("<b>Token %1: <code>%2</code></b> (id %3)<br>Target: %4")
                        .arg(QString::number(token + 1), text(here.text).toHtmlEscaped(),
                             QString::number(here.id), choicesText(here.choices));
    for (const DraftLine& draft : m_text.drafts)
        lines += QStringLiteral("<br>%1: <b>%2</b>; %3")
                     .arg(text(draft.name).toHtmlEscaped(), markText(draft.tokens[index].mark),
                          choicesText(draft.tokens[index].choices));
    return lines;
}

void TokenStrip::paintEvent(QPaintEvent* event)
{
    QPainter painter(viewport());
    painter.setRenderHint(QPainter::Antialiasing);
    for (const int top : m_lineTops)
        paintNames(painter, top - verticalScrollBar()->value());
    for (int token = 0; token < static_cast<int>(m_words.size()); ++token) {
        const QRect word = tokenRect(token);
        const int drafts = static_cast<int>(m_text.drafts.size());
        if (word.adjusted(0, 0, 0, drafts * (markHeight + markGap)).intersects(event->rect()))
            paintToken(painter, token);
    }
}

void TokenStrip::paintNames(QPainter& painter, int top)
{
    painter.setFont(font());
    painter.setPen(palette().color(QPalette::PlaceholderText));
    int y = top + QFontMetrics(monospaceFont()).height() + 2;
    for (const DraftLine& draft : m_text.drafts) {
        const QRect box(margin, y - markGap, m_namesWidth, markHeight + 2 * markGap);
        painter.drawText(box, Qt::AlignRight | Qt::AlignVCenter, text(draft.name));
        y += markHeight + markGap;
    }
}

void TokenStrip::paintToken(QPainter& painter, int token)
{
    const auto index = static_cast<std::size_t>(token);
    const QRect word = tokenRect(token);
    if (token == m_current) {
        painter.setPen(hasFocus() ? palette().color(QPalette::Highlight)
                                  : palette().color(QPalette::PlaceholderText));
        painter.setBrush(Qt::NoBrush);
        const int drafts = static_cast<int>(m_text.drafts.size());
        painter.drawRoundedRect(word.adjusted(0, -1, -1, drafts * (markHeight + markGap) + 2), 3,
                                3);
    }
    painter.setFont(monospaceFont());
    painter.setPen(palette().color(QPalette::Text));
    painter.drawText(word, Qt::AlignCenter, text(m_text.tokens[index].text));
    int y = word.bottom() + 1;
    for (const DraftLine& draft : m_text.drafts) {
        paintMark(painter, QRect(word.left() + 1, y, word.width() - 3, markHeight), draft,
                  draft.tokens[index].mark);
        y += markHeight + markGap;
    }
}

void TokenStrip::paintMark(QPainter& painter, const QRect& box, const DraftLine& line,
                           TokenMark mark)
{
    const bool dark = isDark(palette());
    const QColor role = roleColor(text(line.variant), dark);
    const QColor ink = role.isValid() ? role : palette().color(QPalette::Text);
    const QPoint middle = box.center();
    const int arm = box.height() / 2 - 2;
    painter.setPen(QPen(ink, 1.2));
    painter.setBrush(mark == TokenMark::Accepted ? QBrush(ink) : QBrush(Qt::NoBrush));
    if (mark != TokenMark::Plain)
        painter.drawRoundedRect(QRectF(box).adjusted(.5, .5, -.5, -.5), 2, 2);
    switch (mark) {
    case TokenMark::Corrected:
        painter.drawLine(middle + QPoint(-arm, -arm), middle + QPoint(arm, arm));
        painter.drawLine(middle + QPoint(-arm, arm), middle + QPoint(arm, -arm));
        break;
    case TokenMark::Bonus:
        painter.drawLine(middle + QPoint(-arm, 0), middle + QPoint(arm, 0));
        painter.drawLine(middle + QPoint(0, -arm), middle + QPoint(0, arm));
        break;
    case TokenMark::Plain:
        painter.drawLine(box.left() + 2, middle.y(), box.right() - 2, middle.y());
        break;
    case TokenMark::Accepted:
        break;
    }
}

int TokenStrip::tokenAt(QPoint point) const
{
    const int drafts = static_cast<int>(m_text.drafts.size());
    for (int token = 0; token < static_cast<int>(m_words.size()); ++token)
        if (tokenRect(token).adjusted(0, 0, 0, drafts * (markHeight + markGap)).contains(point))
            return token;
    return -1;
}

int TokenStrip::lineOf(int token) const
{
    const auto top = m_words[static_cast<std::size_t>(token)].top();
    return static_cast<int>(std::ranges::find(m_lineTops, top) - m_lineTops.begin());
}

int TokenStrip::firstOfLine(int line) const
{
    const int top = m_lineTops[static_cast<std::size_t>(line)];
    const auto first =
        std::ranges::find(m_words, top, [](const QRect& word) { return word.top(); });
    return static_cast<int>(first - m_words.begin());
}

void TokenStrip::keyPressEvent(QKeyEvent* event)
{
    const int last = static_cast<int>(m_words.size()) - 1;
    if (m_current < 0)
        return QAbstractScrollArea::keyPressEvent(event);
    const QPoint below = m_words[static_cast<std::size_t>(m_current)].center();
    const auto inLine = [&](int line) {
        if (line < 0 || line >= static_cast<int>(m_lineTops.size()))
            return m_current;
        int token = firstOfLine(line);
        while (token < last && lineOf(token + 1) == line &&
               m_words[static_cast<std::size_t>(token)].right() < below.x())
            ++token;
        return token;
    };
    switch (event->key()) {
    case Qt::Key_Left:
        return setCurrent(std::max(m_current - 1, 0));
    case Qt::Key_Right:
        return setCurrent(std::min(m_current + 1, last));
    case Qt::Key_Up:
        return setCurrent(inLine(lineOf(m_current) - 1));
    case Qt::Key_Down:
        return setCurrent(inLine(lineOf(m_current) + 1));
    case Qt::Key_Home:
        return setCurrent(0);
    case Qt::Key_End:
        return setCurrent(last);
    default:
        QAbstractScrollArea::keyPressEvent(event);
    }
}

void TokenStrip::mousePressEvent(QMouseEvent* event)
{
    setCurrent(tokenAt(event->pos()));
}

bool TokenStrip::viewportEvent(QEvent* event)
{
    if (event->type() != QEvent::ToolTip)
        return QAbstractScrollArea::viewportEvent(event);
    auto* help = static_cast<QHelpEvent*>(event); // NOLINT(*-static-cast-downcast): by its type
    const int token = tokenAt(help->pos());
    if (token < 0)
        QToolTip::hideText();
    else
        QToolTip::showText(help->globalPos(), describe(token), viewport());
    return true;
}

void TokenStrip::resizeEvent(QResizeEvent* event)
{
    QAbstractScrollArea::resizeEvent(event);
    layOut();
}

void TokenStrip::changeEvent(QEvent* event)
{
    QAbstractScrollArea::changeEvent(event);
    if (event->type() == QEvent::FontChange)
        layOut();
}

void TokenStrip::focusInEvent(QFocusEvent* event)
{
    QAbstractScrollArea::focusInEvent(event);
    viewport()->update();
}

void TokenStrip::focusOutEvent(QFocusEvent* event)
{
    QAbstractScrollArea::focusOutEvent(event);
    viewport()->update();
}

} // namespace mla::ui
