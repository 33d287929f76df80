// SPDX-License-Identifier: GPL-3.0-or-later
// The studies of a grid: each unit's own, and the common one that brings them together. No torch
// here.
#pragma once

#include <vector>

#include "core/pipeline/grid_plan.h"
#include "core/pipeline/grid_state.h"

namespace mla
{

/// Begins a unit's study with what another unit computed already and this one would compute again:
/// calibration data of the same checkpoint, continuations of the same target. Does nothing when the
/// unit has a study.
Status seedUnit(const GridPlan& plan, const GridFolder& folder, const GridUnit& unit);

/// Puts everything that the units' own studies hold into the common one. Where a grid has several
/// drafts, each gets a run of variant `original` that its own measurements belong to.
Status mergeUnits(const GridPlan& plan, const GridFolder& folder,
                  const std::vector<const GridUnit*>& units);

} // namespace mla
