// SPDX-License-Identifier: GPL-3.0-or-later
// Two or more drafts of a study beside each other: curves, differences, settings. The first run is
// the one that the others are compared with. Runs are called by what tells them apart.
#pragma once

#include <vector>

#include "core/report/figure_data.h"
#include "core/report/tables.h"

namespace mla
{

using Runs = std::vector<const RunRecord*>;

/// Held-out loss over steps as a share of its start, one curve a run: of one layer, or the mean of
/// all. Losses of different objectives have different units, shares have none.
Figure lossComparison(const Runs& runs, std::optional<LayerIndex> layer);
/// Retained energy (%) per layer, one series a run that measured it.
Figure retainedEnergyComparison(const Runs& runs);

/// What the drafts are good for, a row a measure, with the difference from the first run: error,
/// perplexity, cache, and the acceptance rate (%) of every task measured in the same way.
Table measureComparison(const StudyData& study, const Runs& runs);
/// Relative error of each layer with the difference from the first run.
Table layerComparison(const Runs& runs);
/// Settings and provenance, a row each; only those that differ unless `all`.
Table settingsComparison(const StudyData& study, const Runs& runs, bool all);

} // namespace mla
