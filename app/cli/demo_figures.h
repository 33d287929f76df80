// SPDX-License-Identifier: GPL-3.0-or-later
// Figures of the demo, drawn by the workbench program when there is one.
#pragma once

#include <filesystem>
#include <optional>

#include "core/base/job.h"
#include "core/base/result.h"

namespace mla::cli
{

/// mla-workbench beside this program, else in PATH.
std::optional<std::filesystem::path> findWorkbench();

/// Runs `workbench --report study -o figures --format pdf,svg,png`, offscreen when there is no
/// display. Its messages go to standard error, or nowhere when `quiet`. A folder that a failed or
/// stopped run left behind is removed.
Status renderFigures(const JobContext& job, const std::filesystem::path& workbench,
                     const std::filesystem::path& study, const std::filesystem::path& figures,
                     bool quiet);

} // namespace mla::cli
