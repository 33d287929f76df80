// SPDX-License-Identifier: GPL-3.0-or-later
// A text as running tokens with a line of marks per draft below each: a full bar for accepted, a
// crossed box for rejected, a box with a plus for the token that came free.
#pragma once

#include <vector>

#include <QAbstractScrollArea>

#include "core/report/token_view.h"

namespace mla::ui
{

class TokenStrip : public QAbstractScrollArea
{
    Q_OBJECT
public:
    explicit TokenStrip(QWidget* parent = nullptr);

    void setTokens(TokenText text); ///< the first token becomes the current one
    [[nodiscard]] const TokenText& tokens() const { return m_text; }
    [[nodiscard]] int current() const { return m_current; } ///< -1 without tokens
    void setCurrent(int token);
    /// Where a token's word stands, in the viewport; empty for none.
    [[nodiscard]] QRect tokenRect(int token) const;
    /// Of a token: position, both models' likeliest choices, each draft's mark. Rich text.
    [[nodiscard]] QString describe(int token) const;

signals:
    void currentChanged(int token);

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    bool viewportEvent(QEvent* event) override;
    void changeEvent(QEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;

private:
    void layOut();
    void paintNames(QPainter& painter, int top);
    void paintToken(QPainter& painter, int token);
    void paintMark(QPainter& painter, const QRect& box, const DraftLine& line, TokenMark mark);
    [[nodiscard]] int tokenAt(QPoint point) const; ///< -1 for none
    [[nodiscard]] int lineOf(int token) const;
    [[nodiscard]] int firstOfLine(int line) const;

    TokenText m_text;
    std::vector<QRect> m_words;  ///< of each token, in the content
    std::vector<int> m_lineTops; ///< of each line, in the content
    int m_namesWidth = 0, m_current = -1;
};

} // namespace mla::ui
