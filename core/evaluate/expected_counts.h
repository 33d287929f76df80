// SPDX-License-Identifier: GPL-3.0-or-later
// Replay of speculative sampling: exact expectations over a path that the target sampled, for every
// k, without a draft generating anything (design section 7). No torch here.
#pragma once

#include <span>
#include <vector>

namespace mla
{

/// What a run over one continuation is expected to count, in the terms of alignedCounts().
struct ExpectedCounts {
    double steps = 0;              ///< steps that draft something
    double plainSteps = 0;         ///< steps with nothing to draft
    double draftTokens = 0;        ///< over `steps`
    double acceptedTokens = 0;     ///< continuation length = accepted + steps + plain
    std::vector<double> histogram; ///< [k + 1] expected steps with a = i
    std::vector<double> reached;   ///< [k] expected steps that drafted position i and reached it
    std::vector<double> passed;    ///< [k] expected steps with a >= i + 1
    ExpectedCounts& operator+=(const ExpectedCounts& other); ///< of the same k
};

/// acceptProbability[i] = min(1, q_i(x_i) / p_i(x_i)): given the target's path x, the chance that
/// the token drafted at position i is x_i and is accepted. Rejection sampling accepts a token y of
/// the draft's q with min(1, p(y) / q(y)), so "x comes out, accepted" has probability min(p, q)(x)
/// of the p(x) with which x comes out at all; given x the positions are independent. A step that
/// starts at p drafts d = min(k, n - p - 1) tokens; the chances that a step starts at each position
/// follow one another from the first.
[[nodiscard]] ExpectedCounts expectedCounts(std::span<const double> acceptProbability, int k);

} // namespace mla
