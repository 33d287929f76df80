// SPDX-License-Identifier: GPL-3.0-or-later
// Every figure of a study as files, without a window.
#pragma once

#include <QString>
#include <QStringList>

#include "core/base/result.h"
#include "widgets/plots/figure_export.h"

namespace mla::ui
{

struct ReportRequest {
    QString study;       ///< path of the .h5
    QString directory;   ///< created if missing; files of the same name are replaced
    QStringList formats; ///< of "pdf", "svg", "png"
    ExportOptions options;
};

/// Writes one file per figure and format plus manifest.json (id, title, caption, files, size of
/// each figure); returns the paths written. Needs a QApplication; a display is not required
/// (QT_QPA_PLATFORM=offscreen).
Result<QStringList> renderReport(const ReportRequest& request);

/// Call before QApplication is made: picks the offscreen platform when there is no display.
void chooseHeadlessPlatform();

} // namespace mla::ui
