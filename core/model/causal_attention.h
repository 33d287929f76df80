// SPDX-License-Identifier: GPL-3.0-or-later
// Softmax attention over whole sequences (prefill, refinement) and over a cache (decode).
#pragma once

#include "core/base/torch.h"

namespace mla
{

/// Causal softmax(scale * q k^T) v of whole sequences, differentiable.
/// q, k [B, H, T, d_k], v [B, H, T, d_v] -> [B, H, T, d_v].
/// `window`: keys a query sees, itself included; 0 = all before it.
/// Query rows go in blocks against the keys that some row of the block sees, so most of what the
/// mask hides is neither computed nor stored: half the work of the dense form, less with a window.
torch::Tensor causalAttention(const torch::Tensor& q, const torch::Tensor& k,
                              const torch::Tensor& v, double scale, std::int64_t window = 0);

/// Causal attention probabilities [B, H, T, T] of the same inputs (diagnostics; not differentiable
/// in a useful way, dense).
torch::Tensor causalProbabilities(const torch::Tensor& q, const torch::Tensor& k, double scale,
                                  std::int64_t window = 0);

/// `scores` [..., T, S]: the last T of S positions ask; what lies after each, and what lies before
/// its window (0 = none), is set to -inf.
void maskFuture(torch::Tensor& scores, std::int64_t window = 0);

/// The first key that any of the queries at positions `length` and later sees.
inline std::int64_t firstVisible(std::int64_t length, std::int64_t window)
{
    return window > 0 && length >= window ? length - window + 1 : 0;
}

} // namespace mla
