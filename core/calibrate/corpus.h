// SPDX-License-Identifier: GPL-3.0-or-later
// Calibration sequences: from text files, JSON-lines prompts, or sampled from the model itself.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/job.h"
#include "core/base/result.h"
#include "core/base/settings.h"
#include "core/base/torch.h"
#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/tokenizer.h"

namespace mla
{

struct CalibrationSet {
    torch::Tensor ids;  ///< [N, T] int64, CPU; padding holds id 0
    torch::Tensor mask; ///< [N, T] bool: valid tokens, a prefix of each row
    std::string source; ///< what it was made from
    [[nodiscard]] int sequences() const { return static_cast<int>(ids.size(0)); }
    [[nodiscard]] int length() const { return static_cast<int>(ids.size(1)); }
    /// The last ceil(N / 8) sequences are never trained on.
    [[nodiscard]] int heldout() const { return (sequences() + 7) / 8; }
};

struct CalibrationResult {
    CalibrationSet set;
    std::vector<std::string> warnings;
};

/// Builds the set that `settings` describe.
/// - text files: encoded whole, N windows of T tokens spread evenly over the text, disjoint
/// - .jsonl / .json lines: one sequence a record ("text", "prompt", or the first of "turns"), cut
/// to T,
///   shorter ones padded and masked
/// - self[:FILE]: sampled at temperature 1, a quarter from BOS, the rest from 8- to 48-token
/// prefixes
///   of FILE's lines (default: `bundledPrompts`). A sampled end-of-sequence token does not end a
///   sequence: in training data another document follows it.
/// Fewer sequences than asked for is a warning; fewer than 8 an error.
Result<CalibrationResult> buildCalibration(JobContext& job, const Checkpoint& checkpoint,
                                           const Tokenizer& tokenizer,
                                           const CalibrationSettings& settings,
                                           const std::filesystem::path& bundledPrompts,
                                           const ComputeSettings& compute);

/// The text of one JSON-lines record: "text", "prompt", or the first of "turns".
Result<std::string> recordText(const std::string& line, const std::string& origin);
/// Every non-empty line of a JSON-lines file.
Result<std::vector<std::string>> readJsonLines(const std::filesystem::path& path);

/// calibration.safetensors: `input_ids` I32 [N, T], `mask` U8 [N, T], metadata `source`.
Status saveCalibration(const std::filesystem::path& path, const CalibrationSet& set);
Result<CalibrationSet> loadCalibration(const std::filesystem::path& path);

} // namespace mla
