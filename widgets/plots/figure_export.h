// SPDX-License-Identifier: GPL-3.0-or-later
// Figures as files at their printed size. What the screen looks like (theme, scale factor, fonts)
// has no influence.
#pragma once

#include <string>
#include <vector>

#include <QImage>
#include <QSizeF>
#include <QString>
#include <QStringList>

#include "core/base/result.h"
#include "core/report/figure_data.h"

namespace mla::ui
{

struct ExportOptions {
    double widthMm = 85, heightMm = 60;
    double fontPt = 8;   ///< axis labels and legend; the title has the same size, in bold
    double linePt = 1.0; ///< width of curves
    int dpi = 300;       ///< PNG only
    bool showTitle = true;
};

/// pdf, svg, png: the endings that exportFigure() knows.
[[nodiscard]] const QStringList& figureFormats();

/// One picture of one or more figures; with more, each is a panel marked (a), (b), ...
struct Sheet {
    std::string id, title, caption;
    std::vector<Figure> panels;
    int columns = 1; ///< panels beside each other
};
[[nodiscard]] Sheet sheetOf(const Figure& figure);
/// "(a) its caption (b) its caption": the figures' own captions, marked like the panels.
[[nodiscard]] Sheet composedSheet(const std::string& id, std::vector<Figure> panels, int columns);

/// Printed size of a sheet: as wide as `options` say, each row of panels as high as they say.
[[nodiscard]] QSizeF sheetSizeMm(const Sheet& sheet, const ExportOptions& options);

/// Writes `path` (.pdf, .svg or .png by suffix) whole or not at all. Needs a QApplication.
/// Errors: Usage for an unknown suffix or a size out of range, ComputeFailed when writing fails.
Status exportSheet(const Sheet& sheet, const QString& path, const ExportOptions& options);
Status exportFigure(const Figure& figure, const QString& path, const ExportOptions& options);

/// The sheet as it will be printed, for the screen. Null if the options are out of range.
[[nodiscard]] QImage sheetImage(const Sheet& sheet, const ExportOptions& options,
                                double pixelsPerMm);

} // namespace mla::ui
