// SPDX-License-Identifier: GPL-3.0-or-later
// A study's report as files, without a window.
#pragma once

#include <QString>
#include <QStringList>

#include "core/base/result.h"
#include "widgets/plots/report_writer.h"

namespace mla::ui
{

struct ReportRequest {
    QString study; ///< path of the .h5
    ReportOptions options;
    /// Sheets of several figures, by the figures' ids, beside the figures themselves.
    QList<QStringList> sheets;
    int sheetColumns = 2;
};

/// Writes every figure, its table twin, the study's tables and manifest.json; returns the paths
/// written. Needs a QApplication; a display is not required (QT_QPA_PLATFORM=offscreen).
/// Errors: those of reading a study and of ReportWriter; Usage for an unknown figure of a sheet.
Result<QStringList> renderReport(const ReportRequest& request);

/// Call before QApplication is made: picks the offscreen platform when there is no display.
void chooseHeadlessPlatform();

} // namespace mla::ui
