// SPDX-License-Identifier: GPL-3.0-or-later
// The matched cells of a study: which of its measurements may be compared, and the comparison.
// Design section 7; core/evaluate/matched_cells.h computes, this file chooses. No torch here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/evaluate/matched_cells.h"
#include "core/store/records.h"

namespace mla
{

/// A cell's comparison and what a table says beside it. Rows of several seeds are one cell: their
/// steps are pooled prompt by prompt, so that the bootstrap still draws prompts.
struct StudyCell {
    MatchedCell cell;          ///< functional against partial-rope
    std::string draft;         ///< "TransMLA 76+32"
    std::string functionalRun; ///< run id of the functional draft, of the first seed
    std::string protocol;      ///< "native, k = 4, replay, greedy, 64 new tokens"
    int prompts = 0;           ///< of each variant
    int seeds = 1;             ///< measured in both halves
    std::optional<double> sd;  ///< of the seeds' deltas, pp; null with one seed
    /// Functional - converted, pp, with its 95 % bootstrap interval. Null without `converted`.
    std::optional<double> overConverted, overConvertedLow, overConvertedHigh;
};

struct StudyCells {
    std::vector<StudyCell> cells; ///< in key order
    /// Both halves were measured, but on different prompts or with no seed in common.
    std::vector<CellKey> unmatched;
    [[nodiscard]] MatchedSummary summary() const;
};

/// `original`, measured once, is compared under each converter; `converted` under each refinement
/// of it. Two refinements are matched if they start from equal conversions and have equal settings
/// but for objective and learning rate, calibration data and seed being equal in each pair.
[[nodiscard]] StudyCells studyCells(const StudyData& study, std::uint64_t seed = 0);

/// "llama", "qwen": the model type without its generation, of the checkpoint's config; the
/// checkpoint's id if the study does not hold it.
[[nodiscard]] std::string familyOf(const StudyData& study, const std::string& checkpoint);

} // namespace mla
