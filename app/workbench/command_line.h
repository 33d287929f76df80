// SPDX-License-Identifier: GPL-3.0-or-later
// What mla-workbench was asked to do.
#pragma once

#include <QString>
#include <QStringList>

#include "core/base/result.h"
#include "widgets/plots/report_renderer.h"

namespace mla::ui
{

struct CommandLine {
    enum class Task { Window, Report, Help, Version } task = Task::Window;
    QString study;        ///< to open; empty = none
    ReportRequest report; ///< for Report
};

/// `arguments` without the program's name. Unknown or contradictory ones are Usage errors.
Result<CommandLine> parseCommandLine(const QStringList& arguments);
[[nodiscard]] QString helpText();
/// Process exit code of an error: 2 usage, 3 bad input, 4 compute failed, 130 cancelled.
[[nodiscard]] int exitCode(const Error& error);

} // namespace mla::ui
