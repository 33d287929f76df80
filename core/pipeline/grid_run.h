// SPDX-License-Identifier: GPL-3.0-or-later
// Runs a grid: drafts once per checkpoint and converter, acceptance once per pair, draft and
// backend. A part that fails is written down and the others go on; what is finished is never done
// again, and a run that was killed at any moment is taken up where it was. No torch here.
#pragma once

#include "core/base/job.h"
#include "core/pipeline/grid_plan.h"
#include "core/pipeline/grid_state.h"

namespace mla
{

struct GridRequest {
    GridPlan plan;
    GridFolder folder;
    ComputeSettings compute;
    bool resume = false; ///< failed parts are tried again
};

/// Every unit, then the study of all. An error only when nothing can go on: a folder that cannot
/// be used, or Cancelled. Failed rows are in the result.
Result<GridProgress> runGrid(JobContext& job, const GridRequest& request);

/// Opens the folder for runGridUnit() by other processes.
Status openGrid(const GridRequest& request);
/// One unit alone (an index into plan.units), in a folder that openGrid() made; nothing is put into
/// the common study, so that units may run at the same time.
Status runGridUnit(JobContext& job, const GridRequest& request, std::size_t index);
/// Puts what the units finished into the study.
Result<GridProgress> collectGrid(const GridRequest& request);

} // namespace mla
