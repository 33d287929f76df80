// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/convert/low_rank_keys.h"

namespace mla
{
namespace
{

using torch::Tensor;

Tensor f64(const Tensor& t)
{
    return t.to(torch::kCPU, torch::kFloat64);
}

/// A linear map with its bias as one more column: [rows, d + 1].
Tensor withBias(const Tensor& weight, const Tensor& bias)
{
    const Tensor column = bias.defined() ? f64(bias).unsqueeze(1)
                                         : torch::zeros({weight.size(0), 1}, torch::kFloat64);
    return torch::cat({f64(weight), column}, 1);
}

/// What `up` makes of the latent: up (W_dkv x + b_dkv) + b_up, [rows, d + 1].
Tensor throughLatent(const Tensor& up, const Tensor& upBias, const Tensor& latent)
{
    Tensor map = f64(up).matmul(latent);
    if (upBias.defined())
        map.select(1, map.size(1) - 1).add_(f64(upBias));
    return map;
}

/// The maps of one head of every group: [H rows, d + 1] of H heads -> [G rows, d + 1].
Tensor onePerGroup(const Tensor& map, int heads, int group)
{
    return map.view({heads, -1, map.size(1)}).slice(0, 0, heads, group).flatten(0, 1);
}

/// Keys of TransMLA in the source's basis: W_uk,i c + ropeMap_i k^R, one head of every group.
Tensor transMlaKeys(const MlaBlock& b, const Tensor& nope, const Tensor& rotary,
                    const Tensor& ropeMap, int group)
{
    Tensor keys = f64(ropeMap).matmul(rotary).flatten(0, 1); // [H h, d + 1]
    if (b.nopeDim > 0)
        keys = keys + nope;
    return onePerGroup(keys, b.heads, group);
}

/// Keys of MHA2MLA: rows of [rotary; nope] back at the places of the source's dims.
Tensor mha2MlaKeys(const MlaBlock& b, const Tensor& nope, const Tensor& rotary,
                   const Tensor& permutation)
{
    const std::int64_t columns = rotary.size(1);
    const Tensor stacked = torch::cat({rotary.view({b.ropeKeyHeads, b.ropeDim, columns}),
                                       nope.view({b.upHeads, b.nopeDim, columns})},
                                      1);                                        // [G, h, d + 1]
    const Tensor inverse = permutation.to(torch::kCPU).argsort(std::int64_t{1}); // [G, h]
    return stacked.gather(1, inverse.unsqueeze(-1).expand_as(stacked)).flatten(0, 1);
}

} // namespace

GqaBlock withLowRankKeysValues(const GqaBlock& original, const MlaBlock& converted,
                               const KeyBasis& basis)
{
    const Tensor latent = withBias(converted.wdkv, converted.bdkv); // [r, d + 1]
    const Tensor rotary = withBias(converted.wkr, converted.bkr);   // [n_r d_r, d + 1]
    const Tensor nope = throughLatent(converted.wuk, converted.buk, latent);
    const Tensor keys = basis.ropeMap.defined()
                            ? transMlaKeys(converted, nope, rotary, basis.ropeMap, original.group())
                            : mha2MlaKeys(converted, nope, rotary, basis.permutation);
    Tensor values = throughLatent(converted.wuv, converted.buv, latent);
    if (converted.upHeads == original.heads && original.group() > 1)
        values = onePerGroup(values, converted.heads, original.group());

    GqaBlock block = original;
    const std::int64_t d = original.hidden();
    const auto part = [&](const Tensor& map, std::int64_t first, std::int64_t count) {
        return map.narrow(1, first, count).to(original.wk.device(), torch::kFloat32).contiguous();
    };
    block.wk = part(keys, 0, d);
    block.wv = part(values, 0, d);
    if (original.bk.defined()) {
        block.bk = part(keys, d, 1).squeeze(1);
        block.bv = part(values, d, 1).squeeze(1);
    }
    return block;
}

} // namespace mla
