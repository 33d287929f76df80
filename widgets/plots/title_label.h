// SPDX-License-Identifier: GPL-3.0-or-later
// A figure's title above its plot.
#pragma once

#include <QLabel>

namespace mla::ui
{

/// Elides instead of forcing the plot's minimum width.
class TitleLabel : public QLabel
{
public:
    explicit TitleLabel(QWidget* parent) : QLabel(parent)
    {
        setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
        QFont bold = font();
        bold.setWeight(QFont::DemiBold);
        setFont(bold);
    }
    void setFullText(const QString& text)
    {
        m_text = text;
        elide();
    }

protected:
    void resizeEvent(QResizeEvent* event) override
    {
        QLabel::resizeEvent(event);
        elide();
    }

private:
    void elide() { setText(fontMetrics().elidedText(m_text, Qt::ElideMiddle, width())); }
    QString m_text;
};

} // namespace mla::ui
