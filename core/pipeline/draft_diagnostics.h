// SPDX-License-Identifier: GPL-3.0-or-later
// Where a draft differs from its original and why (design section 5), measured on demand. With a
// study the results also go into the draft's run there. No torch in this header.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/job.h"
#include "core/base/result.h"
#include "core/pipeline/settings.h"
#include "core/store/records.h"

namespace mla
{

struct DiagnosticsRequest {
    std::filesystem::path draft, original;
    /// What is measured on; null: the held-out sequences of the calibration recorded in the draft.
    std::optional<CalibrationSettings> calibration;
    ComputeSettings compute;
    /// Must hold the draft's run (Usage otherwise, before anything is computed).
    std::optional<std::filesystem::path> study;
};

struct ErrorSourcesReport {
    ErrorSourcesNote note;
    std::vector<LayerRecord> layers; ///< `sources` is set
};
/// The functional error of every layer (blockFidelity) split into its sources, all on the same
/// states. To know the parts of a conversion, it is repeated from what the draft keeps: its
/// settings and the calibration sequences that it was made with.
/// - ropeOnly: the converter at full rank, so that only the draft's rotary handling is lossy
/// - rankOnly: keys and values as the draft's latent gives them, all pairs rotary as in the
/// original
/// - both: the converted block; refined: the draft at hand, if it was refined
/// Parts that cannot be formed are absent and the note says why: drafts of another tool do not tell
/// how they were converted; a refinement on other sequences has replaced those of its conversion.
/// An export for other programs (`export --layout deepseek`) is refused: BadInput.
Result<ErrorSourcesReport> measureErrorSources(JobContext& job, const DiagnosticsRequest& request);

struct PositionRequest : DiagnosticsRequest {
    /// Encoded once and cut into windows as long as positions are scored and the model takes; null:
    /// the sequences that DiagnosticsRequest names.
    std::optional<std::filesystem::path> text;
};
/// Perplexity of both models and mean KL(original || draft) by position, up to 2,048
/// (core/evaluate/position_scores.h).
Result<PositionScores> measurePositions(JobContext& job, const PositionRequest& request);
/// All buckets as one.
[[nodiscard]] PositionBucket allPositions(const PositionScores& scores);

/// Longer prompts have no map: it would neither be read nor stored well.
inline constexpr int kLongestMapPrompt = 128; // tokens

struct AttentionMapRequest : DiagnosticsRequest {
    LayerIndex layer;
    HeadIndex head; ///< query head
    std::string prompt;
};
/// What one head attends to on a prompt (special tokens added as the tokenizer does), in the
/// original's block and in the draft's on the same states: the original's at that layer. A prompt
/// that is empty or longer than kLongestMapPrompt, and a layer or head that the model lacks, are
/// Usage errors.
Result<AttentionMapRecord> measureAttentionMap(JobContext& job, const AttentionMapRequest& request);

} // namespace mla
