// SPDX-License-Identifier: GPL-3.0-or-later
// Grouped-query attention of the source model. d hidden, H query heads, G KV heads, h head_dim.
#pragma once

#include <optional>

#include "core/base/torch.h"
#include "core/checkpoint/model_config.h"
#include "core/model/kv_cache.h"

namespace mla
{

struct GqaBlock {
    int heads = 0, kvHeads = 0, headDim = 0; ///< H, G, h
    double scale = 0;             ///< h^-1/2, times the square of RopeConfig::attentionFactor
    torch::Tensor wq, wk, wv, wo; ///< [H h, d], [G h, d], [G h, d], [d, H h]
    torch::Tensor bq, bk, bv, bo; ///< undefined when absent
    torch::Tensor frequencies;    ///< [1, h / 2] fp64, radians per position
    /// `dynamic` rope: frequencies follow the number of tokens once it exceeds the original length;
    /// `frequencies` holds until then. Keys stay in the cache as they were rotated when they were
    /// new, as in Transformers, so cached decoding and whole sequences differ beyond that length.
    std::optional<RopeConfig> dynamicRope;
    torch::Tensor qNorm, kNorm; ///< [h], RMSNorm of each head before RoPE, or undefined
    double normEps = 0;
    std::int64_t window = 0; ///< keys a query sees, itself included; 0 = all

    [[nodiscard]] int group() const { return heads / kvHeads; } ///< query heads per KV head
    [[nodiscard]] int hidden() const { return static_cast<int>(wq.size(1)); }
};

/// What RoPE and the sums see of x [B, T, d], with biases and QK-norm applied: q [B, H, T, h],
/// k and v [B, G, T, h].
struct GqaProjections {
    torch::Tensor q, k, v;
};
GqaProjections project(const GqaBlock& block, const torch::Tensor& x);

/// Queries and keys after RoPE, keys repeated to the query heads: [B, H, T, h] each.
std::pair<torch::Tensor, torch::Tensor> rotatedQueriesKeys(const GqaBlock& block,
                                                           const torch::Tensor& x);

/// Whole sequences: x [B, T, d] -> output after W_O [B, T, d].
torch::Tensor attend(const GqaBlock& block, const torch::Tensor& x);

/// The next T tokens after `length` cached ones; writes the cache.
torch::Tensor attendCached(const GqaBlock& block, const torch::Tensor& x, LayerCache& cache,
                           std::int64_t length);
LayerCache makeCache(const GqaBlock& block, std::int64_t batch, std::int64_t capacity);

} // namespace mla
