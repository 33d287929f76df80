// SPDX-License-Identifier: GPL-3.0-or-later
// Pens and colours of the painter's parts.
#pragma once

#include <QPen>

namespace mla::ui
{

[[nodiscard]] inline QPen penOf(const QColor& color, double width,
                                Qt::PenStyle dash = Qt::SolidLine)
{
    return {color, width, dash, Qt::FlatCap, Qt::RoundJoin};
}

[[nodiscard]] inline QColor withAlpha(QColor color, int alpha)
{
    color.setAlpha(alpha);
    return color;
}

} // namespace mla::ui
