// SPDX-License-Identifier: GPL-3.0-or-later
// Results that several commands report, as JSON and as tables.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "core/pipeline/pipeline.h"

namespace mla::cli
{

template <typename T>
nlohmann::json orNull(const std::optional<T>& value)
{
    return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}
/// 64.0 as 64; cache sizes are means over layers and whole for every uniform draft.
nlohmann::json wholeIfPossible(double value);

/// What `convert` and `refine` report about the draft they wrote.
Output runOutput(const RunOutcome& outcome);

nlohmann::json summaryJson(const StudyOutcome& outcome);
std::string summaryText(const StudyOutcome& outcome);
/// The inverse of summaryJson.
Result<StudyOutcome> summaryFromJson(const nlohmann::json& summary, const std::string& origin);

} // namespace mla::cli
