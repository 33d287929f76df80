// SPDX-License-Identifier: GPL-3.0-or-later
// The one multi-head latent attention block that every converter produces (design section 3):
//   c_t = W_dkv x_t + b_dkv                     the latent, cached               [r]
//   k^R_t = RoPE_t(W_kr x_t + b_kr)             rotary key heads, cached         [n_r, d_r]
//   k^C = W_uk c + b_uk,  v = W_uv c + b_uv     per up head (query or KV heads)  [d_n], [d_v]
//   q_i = [q^C_i ; RoPE_t(q^R_i)] = W_q,i x_t + b_q,i                            [d_n + d_r]
//   score = scale (q^C . k^C + q^R . k^R), softmax, sum p v, then the frozen W_O (+ b_o)
// What a source or another tool's draft adds is data, frozen in refinement:
//   latent norm: c is RMS-normalised before it is cached and used
//   QK-norm: q and k = [k^C ; k^R] of every head are RMS-normalised and weighted before RoPE. The
//     scalar of a key, 1 / rms(k), does not commute with the up-projection: it is cached beside k^R
//   window: a query sees the last `window` keys
#pragma once

#include <vector>

#include "core/base/torch.h"
#include "core/model/kv_cache.h"

namespace mla
{

struct MlaBlock {
    int heads = 0;        ///< H
    int upHeads = 0;      ///< heads of W_uk and W_uv: H (TransMLA) or G (MHA2MLA)
    int ropeKeyHeads = 0; ///< n_r
    int nopeDim = 0;      ///< d_n, may be 0
    int ropeDim = 0;      ///< d_r
    int vDim = 0;         ///< d_v
    int rank = 0;         ///< r
    double scale = 0;     ///< of q.k
    torch::Tensor wq;     ///< [H (d_n + d_r), d], per head nope rows, then rotary rows (half-split)
    torch::Tensor wdkv;   ///< [r, d]
    torch::Tensor wkr;    ///< [n_r d_r, d], half-split within a head
    torch::Tensor wuk;    ///< [upHeads d_n, r]
    torch::Tensor wuv;    ///< [upHeads d_v, r]
    torch::Tensor wo;     ///< [d, H d_v]
    torch::Tensor bq, bdkv, bkr, buk, buv, bo; ///< undefined when absent
    torch::Tensor frequencies;                 ///< [n_r, d_r / 2] fp64
    torch::Tensor latentNorm;                  ///< [r] or undefined
    double latentNormEps = 0;
    /// QK-norm weights per KV head in the block's order of dims, [upHeads, d_n + d_r], or both
    /// undefined. Then upHeads = n_r.
    torch::Tensor qNorm, kNorm;
    double normEps = 0;      ///< of qNorm and kNorm
    std::int64_t window = 0; ///< keys a query sees, itself included; 0 = all

    [[nodiscard]] bool hasQkNorm() const { return kNorm.defined(); }
    /// Elements cached per token: r + n_r d_r, and n_r scalars with QK-norm.
    [[nodiscard]] std::int64_t cacheElements() const
    {
        return rank + std::int64_t{ropeKeyHeads} * (ropeDim + (hasQkNorm() ? 1 : 0));
    }
    /// The projections that the converter introduced: all that refinement may train.
    [[nodiscard]] std::vector<torch::Tensor*> trainable();
};

/// The block with every tensor on `device`.
MlaBlock movedTo(MlaBlock block, torch::Device device);

/// Keys and values before rotation of x [B, T, d]; with QK-norm the keys are normalised.
struct MlaKeysValues {
    torch::Tensor latent; ///< [B, T, r], after its norm
    torch::Tensor rotary; ///< [B, n_r, T, d_r], not rotated
    torch::Tensor nope;   ///< [B, upHeads, T, d_n]
    torch::Tensor value;  ///< [B, upHeads, T, d_v]
};
MlaKeysValues keysValues(const MlaBlock& block, const torch::Tensor& x);

/// Queries and keys with nope and rotary parts joined, heads repeated: [B, H, T, d_n + d_r] each.
std::pair<torch::Tensor, torch::Tensor> rotatedQueriesKeys(const MlaBlock& block,
                                                           const torch::Tensor& x);

/// Whole sequences, *materialised* form: x [B, T, d] -> output after W_O [B, T, d]. Differentiable.
torch::Tensor attend(const MlaBlock& block, const torch::Tensor& x);

/// The next T tokens after `length` cached ones, *absorbed* form: W_uk is folded into the query and
/// W_uv applied after the latent average, so only the latent cache is read.
torch::Tensor attendCached(const MlaBlock& block, const torch::Tensor& x, LayerCache& cache,
                           std::int64_t length);
LayerCache makeCache(const MlaBlock& block, std::int64_t batch, std::int64_t capacity);

} // namespace mla
