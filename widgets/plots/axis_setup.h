// SPDX-License-Identifier: GPL-3.0-or-later
// Axes of a figure: label with unit, ticks that suit the quantity, full range of the data.
#pragma once

#include <optional>

#include <qcustomplot.h>

#include "core/report/figure_data.h"

namespace mla::ui
{

/// "Label (unit)", or "Label" for a dimensionless quantity.
[[nodiscard]] QString axisTitle(const Axis& axis);
/// True for layers, steps, ranks: every x of every series is a whole number.
[[nodiscard]] bool hasIntegerX(const Figure& figure);
/// True if x counts layers, so that a position names a layer.
[[nodiscard]] bool isLayerAxis(const Axis& axis);
/// A number as people write it: up to `digits` significant ones, no exponent where avoidable.
[[nodiscard]] QString valueText(double value, int digits = 4);

/// Scale type and ticker. `integer`: ticks at whole numbers only.
void setUpAxis(QCPAxis* axis, const Axis& description, bool integer);

/// Extent of what is drawn, with gaps and undrawable values left out.
struct DataExtent {
    std::optional<double> xLow, xHigh, yLow, yHigh;
};
[[nodiscard]] DataExtent dataExtent(const Figure& figure);
/// Ranges with a margin; bars stand on 0 and small non-negative quantities start at 0.
[[nodiscard]] QCPRange fullRangeX(const Figure& figure, const DataExtent& extent);
[[nodiscard]] QCPRange fullRangeY(const Figure& figure, const DataExtent& extent);

} // namespace mla::ui
