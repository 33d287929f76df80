// SPDX-License-Identifier: GPL-3.0-or-later
// What the pointer is over: values for the tooltip, the layer for a click.
#pragma once

#include <optional>

#include "widgets/plots/figure_painter.h"

namespace mla::ui
{

/// Values at axis position (x, y), one line per series; empty if nothing is near.
[[nodiscard]] QString hoverText(const FigurePainter& painter, double x, double y);
/// The layer of what lies at the pixel `position`, if it belongs to one.
[[nodiscard]] std::optional<int> layerAt(const FigurePainter& painter, const QCustomPlot& plot,
                                         const QPointF& position);

/// Crosshair and tooltip items on a plot.
class Crosshair
{
public:
    explicit Crosshair(QCustomPlot* plot) : m_plot(plot) {}

    /// Makes the items anew after the plot was rebuilt.
    void create(const PaintStyle& style);
    void moveTo(double x);
    /// Shows `text` beside the pixel position, inside the drawing; empty hides it.
    void showText(const QString& text, const QPointF& position);
    void hide();

private:
    QCustomPlot* m_plot;
    QCPItemStraightLine* m_line = nullptr;
    QCPItemText* m_text = nullptr;
};

} // namespace mla::ui
