// SPDX-License-Identifier: GPL-3.0-or-later
// Low-rank factorisation of the stacked [K_nope; V] projections (design section 4, MHA2MLA step 2).
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/torch.h"

namespace mla
{

std::vector<std::string> svdModes(); ///< joint, split, activation-aware

/// `split`: channels that serve keys, ceil(r / 2) unless keys or values have fewer directions
/// (limits: min(rows, d)) than their half.
int splitKeyRank(int keyLimit, int valueLimit, int rank);

/// up . down approximates [K_nope; V]; fp64.
struct KvFactors {
    torch::Tensor up;                   ///< [rows_k + rows_v, r]
    torch::Tensor down;                 ///< [r, d]
    int keyRank = 0;                    ///< split: leading channels that serve keys only; else 0
    std::vector<double> singularValues; ///< of what was decomposed, descending
};

/// k [rows_k, d], v [rows_v, d], x [n, d] calibration inputs (activation-aware only), all fp64.
/// - joint: SVD of [k; v], up = U S, down = V^T
/// - split: k and v apart with ranks ceil(r/2) and the rest, latent = [c_k; c_v]
/// - activation-aware: SVD of [s k; v] L, L L^T = X^T X / n + 1e-4 mean(diag) I,
///   s = |v L| / |k L|, undone; row and column norms balanced
Result<KvFactors> factorizeKv(const std::string& mode, const torch::Tensor& k,
                              const torch::Tensor& v, int rank, const torch::Tensor& x);

} // namespace mla
