// SPDX-License-Identifier: GPL-3.0-or-later
// The plan of a whole study, and every setting as JSON. No torch here.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/base/result.h"
#include "core/base/settings.h"

namespace mla
{

/// One whole study: what `demo` runs and what the workbench's dialog starts.
struct StudyPlan {
    std::filesystem::path checkpoint; ///< draft source (GQA)
    std::filesystem::path target;     ///< verifier; empty = the checkpoint itself
    std::filesystem::path study;      ///< NAME.h5
    std::filesystem::path drafts;     ///< folder that receives the draft directories
    CalibrationSettings calibration;
    std::vector<ConvertSettings> conversions;
    std::vector<std::string> objectives = {"partial-rope", "functional"};
    RefineSettings refine;                ///< `objective` is replaced by each of `objectives`
    AcceptSettings accept;                ///< no tasks = no acceptance measurement
    std::filesystem::path perplexityText; ///< empty = held-out calibration sequences
    ComputeSettings compute;
    bool resume = false;
};

nlohmann::json toJson(const ComputeSettings&);
nlohmann::json toJson(const CalibrationSettings&);
nlohmann::json toJson(const ConvertSettings&);
nlohmann::json toJson(const RefineSettings&);
nlohmann::json toJson(const AcceptSettings&);
nlohmann::json toJson(const StudyPlan&);
/// Unknown keys and wrong types are errors that name the key; absent keys keep their defaults.
Result<StudyPlan> studyPlanFromJson(const nlohmann::json&);

/// Checks what can be checked without opening a checkpoint; Usage errors name the option.
Status validate(const ConvertSettings&);
Status validate(const RefineSettings&);
Status validate(const AcceptSettings&);
Status validate(const CalibrationSettings&);

} // namespace mla
