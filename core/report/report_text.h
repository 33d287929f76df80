// SPDX-License-Identifier: GPL-3.0-or-later
// Words and numbers of figures and tables, independent of the process's locale.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/store/records.h"

namespace mla
{

/// "0.077" for (0.0775, 3): fixed decimals; "–" if `value` is not finite.
[[nodiscard]] std::string fixedText(double value, int decimals);
/// "+0.6", "−0.6", "0.0": the same with a sign, for differences.
[[nodiscard]] std::string signedText(double value, int decimals);
/// Three significant digits, "0.0432", "66.6", "2.7e+03"; "–" if `value` is not finite.
[[nodiscard]] std::string shortText(double value);
/// The shortest text that reads back as the same number; "NaN", "inf", "-inf".
[[nodiscard]] std::string exactText(double value);

/// "TransMLA", "MHA2MLA"; an unknown name as it is.
[[nodiscard]] std::string converterLabel(const std::string& converter);
/// "TransMLA 76+32" or "MHA2MLA 84+3×8": latent + rotary cache elements per token and layer.
[[nodiscard]] std::string draftLabel(const RunRecord& run);
/// "TransMLA 76+32, functional".
[[nodiscard]] std::string runLabel(const RunRecord& run);
/// `id` as the stem of a file name.
[[nodiscard]] std::string fileStem(const std::string& id);
/// The same, with a number behind it if `used` has it already; `used` then has the answer.
[[nodiscard]] std::string uniqueStem(const std::string& id, std::set<std::string>& used);

/// Settings as names and values, nested keys joined by dots: {"refine.steps", "60"}. Null if
/// `settingsJson` is no JSON object.
[[nodiscard]] std::optional<std::vector<std::pair<std::string, std::string>>>
flatSettings(const std::string& settingsJson);

/// Every stage, in the order in which quality is lost and regained.
[[nodiscard]] const std::vector<std::string>& allStages();
/// Those that were measured of a run, in that order.
[[nodiscard]] std::vector<std::string> stagesOf(const RunRecord& run);
/// "original", "rotation removed", "low rank", "refined".
[[nodiscard]] std::string stageLabel(const std::string& stage);
/// Perplexity of the run's own last stage (design: converted = low rank, otherwise refined).
[[nodiscard]] std::optional<double> finalPerplexity(const RunRecord& run);

} // namespace mla
