// SPDX-License-Identifier: GPL-3.0-or-later
// What `grid` prints: its plan, or its results.
#pragma once

#include <filesystem>
#include <vector>

#include "app/cli/command.h"
#include "core/pipeline/grid_plan.h"
#include "core/pipeline/grid_state.h"
#include "core/report/study_cells.h"

namespace mla::cli
{

/// Of --dry-run: every configuration, and what is missing.
Output describePlan(const GridPlan& plan, const std::vector<GridLack>& lacks);
/// Matched cells, counts beside the paper's, failed rows.
Output describeResults(const GridPlan& plan, const GridProgress& progress, const StudyCells& cells,
                       const std::filesystem::path& study);

} // namespace mla::cli
