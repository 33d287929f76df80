// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/common/theme.h"

#include <QFile>
#include <QPainter>
#include <QPixmap>
#include <QProxyStyle>
#include <QStyleOption>
#include <QSvgRenderer>

#include "widgets/common/fonts.h"
#include "widgets/common/palette.h"

namespace mla::ui
{
namespace
{

struct Tones {
    const char *window, *base, *alternate, *text, *muted, *button, *highlight, *link, *tooltip;
};

QPalette paletteOf(const Tones& tones)
{
    QPalette palette;
    const QColor text(tones.text), muted(tones.muted), window(tones.window);
    palette.setColor(QPalette::Window, window);
    palette.setColor(QPalette::WindowText, text);
    palette.setColor(QPalette::Base, QColor(tones.base));
    palette.setColor(QPalette::AlternateBase, QColor(tones.alternate));
    palette.setColor(QPalette::Text, text);
    palette.setColor(QPalette::PlaceholderText, muted);
    palette.setColor(QPalette::Button, QColor(tones.button));
    palette.setColor(QPalette::ButtonText, text);
    palette.setColor(QPalette::BrightText, Qt::white);
    palette.setColor(QPalette::Highlight, QColor(tones.highlight));
    palette.setColor(QPalette::HighlightedText, Qt::white);
    palette.setColor(QPalette::Link, QColor(tones.link));
    palette.setColor(QPalette::LinkVisited, QColor(tones.link));
    palette.setColor(QPalette::ToolTipBase, QColor(tones.tooltip));
    palette.setColor(QPalette::ToolTipText, text);
    for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
        palette.setColor(QPalette::Disabled, role, muted);
    palette.setColor(QPalette::Disabled, QPalette::Highlight, QColor(tones.button));
    const QColor button(tones.button);
    palette.setColor(QPalette::Light, button.lighter(125));
    palette.setColor(QPalette::Midlight, button.lighter(110));
    palette.setColor(QPalette::Mid, button.darker(125));
    palette.setColor(QPalette::Dark, button.darker(150));
    palette.setColor(QPalette::Shadow, button.darker(220));
    return palette;
}

/// Fusion takes a check box's outline from a darker shade of the window: on a dark one an empty box
/// cannot be seen.
class OutlinedChecks : public QProxyStyle
{
public:
    OutlinedChecks() : QProxyStyle(QStringLiteral("Fusion")) {}
    void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                       const QWidget* widget) const override
    {
        QProxyStyle::drawPrimitive(element, option, painter, widget);
        const bool box =
            element == PE_IndicatorCheckBox || element == PE_IndicatorItemViewItemCheck;
        if (!box || !isDark(option->palette))
            return;
        const bool enabled = option->state.testFlag(State_Enabled);
        painter->save();
        painter->setRenderHint(QPainter::Antialiasing);
        painter->setPen(option->palette.color(enabled ? QPalette::Active : QPalette::Disabled,
                                              QPalette::PlaceholderText));
        painter->setBrush(Qt::NoBrush);
        painter->drawRoundedRect(QRectF(option->rect).adjusted(0.5, 0.5, -0.5, -0.5), 2, 2);
        painter->restore();
    }
};

QPixmap renderIcon(QByteArray svg, const QColor& color, int size)
{
    svg.replace("currentColor", color.name(QColor::HexRgb).toLatin1());
    QSvgRenderer renderer(svg);
    QPixmap pixmap(size, size);
    pixmap.fill(Qt::transparent);
    QPainter painter(&pixmap);
    renderer.render(&painter);
    return pixmap;
}

} // namespace

QPalette lightPalette()
{
    return paletteOf({"#F4F5F7", "#FFFFFF", "#F4F6F9", "#1F2328", "#737B85", "#ECEEF1", "#1F66D0",
                      "#1559C7", "#FFFFFF"});
}

QPalette darkPalette()
{
    return paletteOf({"#26292F", "#1E2126", "#24282E", "#E6E9ED", "#868E98", "#32363D", "#2F6FD6",
                      "#7FB0FF", "#32363D"});
}

void applyTheme(QApplication& application, Theme theme)
{
    // The palette before the first change is the platform's.
    static const QPalette system = application.palette();
    loadBundledFonts();
    application.setStyle(new OutlinedChecks);
    QFont font(sansFamily());
    font.setPointSizeF(10);
    application.setFont(font);
    application.setPalette(theme == Theme::System
                               ? (isDark(system) ? darkPalette() : lightPalette())
                           : theme == Theme::Dark ? darkPalette()
                                                  : lightPalette());
    application.setWindowIcon(applicationIcon());
}

QIcon themedIcon(const QString& name, const QPalette& palette)
{
    QFile file(QStringLiteral(":/icons/%1.svg").arg(name));
    if (!file.open(QIODevice::ReadOnly))
        return {};
    const QByteArray svg = file.readAll();
    QIcon icon;
    for (const int size : {16, 20, 24, 32, 40, 48, 64}) {
        icon.addPixmap(renderIcon(svg, palette.color(QPalette::Active, QPalette::Text), size));
        icon.addPixmap(renderIcon(svg, palette.color(QPalette::Disabled, QPalette::Text), size),
                       QIcon::Disabled);
    }
    return icon;
}

QIcon applicationIcon()
{
    return QIcon(QStringLiteral(":/icons/mla-draft-workbench.svg"));
}

} // namespace mla::ui
