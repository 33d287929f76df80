// SPDX-License-Identifier: GPL-3.0-or-later
// Replay of speculative sampling: exact expectations over a path that the target sampled, for every
// k, without a draft generating anything (design section 7). No torch here.
#pragma once

#include <span>
#include <vector>

#include "core/evaluate/acceptance.h"

namespace mla
{

/// Every step that a run over one continuation may take, weighted with its probability: sums over
/// them are expectations, and continuation length = accepted + steps + plain holds for those.
/// Probabilities of acceptance of 0 and 1 give exactly the steps of alignedCounts().
///
/// acceptProbability[i] = min(1, q_i(x_i) / p_i(x_i)): given the target's path x, the chance that
/// the token drafted at position i is x_i and is accepted. Rejection sampling accepts a token y of
/// the draft's q with min(1, p(y) / q(y)), so "x comes out, accepted" has probability min(p, q)(x)
/// of the p(x) with which x comes out at all; given x the positions are independent. A step that
/// starts at p drafts d = min(k, n - p - 1) tokens; the chances that a step starts at each position
/// follow one another from the first.
[[nodiscard]] AlignedCounts expectedCounts(std::span<const double> acceptProbability, int k,
                                           int prompt);

} // namespace mla
