// SPDX-License-Identifier: GPL-3.0-or-later
// Acceptance metrics from raw per-step counts, as vLLM defines them. No torch here.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mla
{

/// One verification step: `drafted` tokens were proposed, the first `accepted` of them stand.
/// The bonus token is never counted. Plain steps (nothing to draft) are not steps.
struct StepCount {
    int prompt = 0;
    int drafted = 0;
    int accepted = 0;
    double weight = 1; ///< how many such steps: a probability where steps are expected ones
};

struct AcceptanceMetrics {
    double steps = 0, draftTokens = 0, acceptedTokens = 0; ///< whole numbers unless expected
    double acceptanceRate = 0;       ///< accepted / drafted, <= 1; 0 without steps
    double meanAcceptanceLength = 0; ///< 1 + accepted / steps; 0 without steps
    std::vector<double> perPosition; ///< [k] steps with a >= i + 1, over all steps (cumulative)
    std::vector<double>
        conditional; ///< [k] given that position i was reached and drafted; NaN if never
    std::vector<double> histogram; ///< [k + 1] steps with a = i
    double perPromptMeanRate = 0, perPromptMeanLength = 0;
    double rateLow = 0, rateHigh = 0; ///< 95 % bootstrap interval over prompts (pooled rate)
};

/// `k`: the longest draft of a step. `seed` drives the bootstrap only.
[[nodiscard]] AcceptanceMetrics acceptanceMetrics(std::span<const StepCount> steps, int k,
                                                  std::uint64_t seed = 0);

/// Accepted lengths of a greedy speculative run over an n-token continuation whose drafted token at
/// position i would match iff matches[i] (the first token of the continuation is position 0; a step
/// starts at p, drafts d = min(k, n - p - 1), accepts the leading run of matches, then the target
/// adds one token). d = 0 is a plain step. n = accepted + steps + plain.
struct AlignedCounts {
    std::vector<StepCount> steps;
    double plainSteps = 0;
};
[[nodiscard]] AlignedCounts alignedCounts(const std::vector<bool>& matches, int k, int prompt);

/// A step that some engine really took: it began at `position` of the continuation and `accepted`
/// of its drafted tokens stood.
struct StepStart {
    int position = 0, accepted = 0;
};
/// The same counts from an engine's own steps over an n-token continuation: what was proposed or
/// accepted past the text's end is not counted, whatever the engine drafted there. A token that no
/// step accounts for (a backend's prefill gives one) is a plain step.
[[nodiscard]] AlignedCounts alignedSteps(std::span<const StepStart> begun, int length, int k,
                                         int prompt);

} // namespace mla
