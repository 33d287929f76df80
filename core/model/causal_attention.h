// SPDX-License-Identifier: GPL-3.0-or-later
// Softmax attention over whole sequences (prefill, refinement) and over a cache (decode).
#pragma once

#include "core/base/torch.h"

namespace mla
{

/// Causal softmax(scale * q k^T) v of whole sequences, differentiable.
/// q, k [B, H, T, d_k], v [B, H, T, d_v] -> [B, H, T, d_v].
/// Query rows go in blocks against the keys at or before them, so the masked upper triangle is
/// neither computed nor stored: half the work of the dense form.
torch::Tensor causalAttention(const torch::Tensor& q, const torch::Tensor& k,
                              const torch::Tensor& v, double scale);

/// Causal attention probabilities [B, H, T, T] of the same inputs (diagnostics; not differentiable
/// in a useful way, dense).
torch::Tensor causalProbabilities(const torch::Tensor& q, const torch::Tensor& k, double scale);

/// `scores` [..., T, S]: the last T of S positions ask; what lies after each is set to -inf.
void maskFuture(torch::Tensor& scores);

} // namespace mla
