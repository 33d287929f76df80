// SPDX-License-Identifier: GPL-3.0-or-later
// Colours of plots and of judgements. Every role keeps its hue everywhere; dark and light screens
// have their own tones so that each stands out from the background by at least 3:1 and stays apart
// from the others under the common colour-vision deficiencies.
#pragma once

#include <QColor>
#include <QPalette>
#include <QString>
#include <QStringList>
#include <QVariant>

namespace mla::ui
{

/// The colours around the data.
struct PlotTheme {
    bool dark = false;
    QColor background, text, mutedText, axis, grid, subGrid, highlight;
};
[[nodiscard]] PlotTheme lightPlotTheme();
[[nodiscard]] PlotTheme darkPlotTheme();
/// Black on white, for files, whatever the screen shows.
[[nodiscard]] PlotTheme exportPlotTheme();
/// Dark or light according to the palette's window colour.
[[nodiscard]] PlotTheme plotThemeFor(const QPalette& palette);
[[nodiscard]] bool isDark(const QPalette& palette);

/// original, converted, partial-rope, functional, train, heldout.
[[nodiscard]] QStringList plotRoles();
/// Colour of a role; an unknown role gives an invalid colour.
[[nodiscard]] QColor roleColor(const QString& role, bool dark);
/// Colour of the index-th series that has no role.
[[nodiscard]] QColor seriesColor(int index, bool dark);

/// A change in acceptance (percentage points): better beyond +0.5, worse beyond -0.5, else neutral.
/// Always show the sign beside it: colour is never the only carrier.
[[nodiscard]] QColor deltaColor(double percentagePoints, bool dark);
/// The ground behind it: a light tone of the same colour, nothing where there is no change.
[[nodiscard]] QVariant deltaTint(double percentagePoints, bool dark);

/// WCAG 2 contrast ratio, 1 to 21.
[[nodiscard]] double contrastRatio(const QColor& a, const QColor& b);

} // namespace mla::ui
