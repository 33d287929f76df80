// SPDX-License-Identifier: GPL-3.0-or-later
// Figures as files at their printed size. What the screen looks like (theme, scale factor, fonts)
// has no influence.
#pragma once

#include <QString>

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

/// Writes `path` (.pdf, .svg or .png by suffix) whole or not at all. Needs a QApplication.
/// Errors: Usage for an unknown suffix or a size out of range, ComputeFailed when writing fails.
Status exportFigure(const Figure& figure, const QString& path, const ExportOptions& options);

} // namespace mla::ui
