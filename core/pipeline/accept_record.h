// SPDX-License-Identifier: GPL-3.0-or-later
// What was measured of one task, as a result and as a study keeps it.
#pragma once

#include <string>
#include <vector>

#include "core/evaluate/acceptance.h"
#include "core/pipeline/accept_pair.h"
#include "core/pipeline/pipeline.h"
#include "core/store/records.h"

namespace mla
{

struct MeasuredTask {
    std::string name;
    std::vector<StepCount> steps; ///< prompt = index within the task
    double plainSteps = 0;
    std::int64_t tokens = 0;
    int nearTies = 0;
    std::vector<AcceptRow::Divergence> divergences; ///< of greedy texts that an engine made
    double wallTime = 0;                            ///< seconds, all of it

    // An engine's:
    std::vector<double> seconds, baselineSeconds;      ///< of each timed run over all prompts
    double promptSeconds = 0;                          ///< of the first run, sum over prompts
    std::int64_t baselineTokens = 0;                   ///< of one such run
    std::optional<double> draftSeconds, verifySeconds; ///< of the first run

    // A replay's:
    std::string continuation; ///< ContinuationRecord::id
    TokenChoices choices;
    std::vector<std::vector<double>> chances; ///< [prompts][n] probability of acceptance
};

/// One task, or several pooled: their steps are brought together, prompts stay apart.
AcceptRow acceptRow(const std::vector<const MeasuredTask*>& tasks, const std::string& name,
                    const AcceptRequest& request, const StepCosts& costs);
AcceptanceRecord acceptRecord(const MeasuredTask& task, const AcceptRow& row,
                              const AcceptRequest& request, const AcceptPair& pair,
                              const StepCosts& costs, const std::string& backendSoftware);

} // namespace mla
