// SPDX-License-Identifier: GPL-3.0-or-later
// Which k is best: acceptance for every draft length from one replay, and the speed-up that the
// measured cost of both models predicts. No torch here.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace mla
{

struct DraftLength {
    int k = 0;
    double acceptanceRate = 0, meanAcceptanceLength = 0;
    /// Seconds of plain decoding over seconds of speculative decoding, per the costs below.
    std::optional<double> speedup;
};

/// k = 1 .. maxK over one or more continuations. acceptProbability: of each continuation, per
/// position (0 or 1 for greedy texts; expectedCounts()). A step that drafts d tokens costs
/// d * draftCost + verifyCosts[d], a plain step verifyCosts[0]; verifyCosts[m] is what the target
/// needs for m + 1 tokens in one pass. Without costs (draftCost 0, or too few of the others) a
/// length has no speed-up.
[[nodiscard]] std::vector<DraftLength>
sweepDraftLengths(std::span<const std::vector<double>> acceptProbability, int maxK,
                  double draftCost, std::span<const double> verifyCosts);

/// The k of the largest speed-up, the smallest k of equals; nothing where none has one.
[[nodiscard]] std::optional<int> bestDraftLength(std::span<const DraftLength> lengths);

} // namespace mla
