// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/mla_attention.h"

#include "core/model/causal_attention.h"
#include "core/model/rope.h"

namespace mla
{
namespace
{

torch::Tensor splitHeads(const torch::Tensor& x, int heads)
{
    return x.view({x.size(0), x.size(1), heads, -1}).transpose(1, 2);
}

torch::Tensor repeatHeads(const torch::Tensor& x, int heads)
{
    const auto have = static_cast<int>(x.size(1));
    return have == heads ? x : x.repeat_interleave(heads / have, 1);
}

/// Nope [B, H, T, d_n] and rotated rotary [B, H, T, d_r] queries.
std::pair<torch::Tensor, torch::Tensor> queries(const MlaBlock& block, const torch::Tensor& x,
                                                std::int64_t offset)
{
    const torch::Tensor q = splitHeads(torch::linear(x, block.wq, block.bq), block.heads);
    const RopeAngles perKeyHead = ropeAngles(block.frequencies, offset, x.size(1));
    const int times = block.heads / block.ropeKeyHeads;
    const RopeAngles angles = block.ropeKeyHeads == 1
                                  ? perKeyHead
                                  : RopeAngles{perKeyHead.cos.repeat_interleave(times, 0),
                                               perKeyHead.sin.repeat_interleave(times, 0)};
    return {q.narrow(-1, 0, block.nopeDim),
            applyRope(q.narrow(-1, block.nopeDim, block.ropeDim), angles)};
}

torch::Tensor output(const MlaBlock& block, const torch::Tensor& perHead)
{
    const torch::Tensor joined =
        perHead.transpose(1, 2).reshape({perHead.size(0), perHead.size(2), -1});
    return torch::linear(joined, block.wo, block.bo);
}

struct Materialised {
    torch::Tensor q, k, v; ///< [B, H, T, d_n + d_r] twice, [B, H, T, d_v]
};

Materialised materialise(const MlaBlock& block, const torch::Tensor& x)
{
    const MlaKeysValues kv = keysValues(block, x);
    const auto [qNope, qRope] = queries(block, x, 0);
    const torch::Tensor rotated = applyRope(kv.rotary, ropeAngles(block.frequencies, 0, x.size(1)));
    const torch::Tensor kRope = repeatHeads(rotated, block.heads);
    return {torch::cat({qNope, qRope}, -1),
            torch::cat({repeatHeads(kv.nope, block.heads), kRope}, -1),
            repeatHeads(kv.value, block.heads)};
}

} // namespace

std::vector<torch::Tensor*> MlaBlock::trainable()
{
    std::vector<torch::Tensor*> all;
    for (torch::Tensor* t : {&wq, &bq, &wdkv, &bdkv, &wkr, &bkr, &wuk, &buk, &wuv, &buv}) {
        const bool redundant =
            t == &bdkv && buv.defined(); // the up side carries the biases already
        if (t->defined() && t->numel() > 0 && !redundant)
            all.push_back(t);
    }
    return all;
}

MlaBlock movedTo(MlaBlock block, torch::Device device)
{
    for (torch::Tensor* t :
         {&block.wq, &block.bq, &block.wdkv, &block.bdkv, &block.wkr, &block.bkr, &block.wuk,
          &block.buk, &block.wuv, &block.buv, &block.wo, &block.bo, &block.frequencies})
        if (t->defined())
            *t = t->to(device);
    return block;
}

MlaKeysValues keysValues(const MlaBlock& block, const torch::Tensor& x)
{
    MlaKeysValues kv;
    kv.latent = torch::linear(x, block.wdkv, block.bdkv);
    kv.rotary = splitHeads(torch::linear(x, block.wkr, block.bkr), block.ropeKeyHeads);
    kv.nope = torch::linear(kv.latent, block.wuk, block.buk)
                  .view({x.size(0), x.size(1), block.upHeads, block.nopeDim})
                  .transpose(1, 2);
    kv.value = splitHeads(torch::linear(kv.latent, block.wuv, block.buv), block.upHeads);
    return kv;
}

std::pair<torch::Tensor, torch::Tensor> rotatedQueriesKeys(const MlaBlock& block,
                                                           const torch::Tensor& x)
{
    Materialised m = materialise(block, x);
    return {std::move(m.q), std::move(m.k)};
}

torch::Tensor attend(const MlaBlock& block, const torch::Tensor& x)
{
    const Materialised m = materialise(block, x);
    return output(block, causalAttention(m.q, m.k, m.v, block.scale));
}

LayerCache makeCache(const MlaBlock& block, std::int64_t batch, std::int64_t capacity)
{
    const auto options = block.wdkv.options();
    return {torch::empty({batch, 1, capacity, block.rank}, options),
            torch::empty({batch, block.ropeKeyHeads, capacity, block.ropeDim}, options)};
}

torch::Tensor attendCached(const MlaBlock& block, const torch::Tensor& x, LayerCache& cache,
                           std::int64_t length)
{
    const std::int64_t batch = x.size(0), tokens = x.size(1), total = length + tokens;
    const std::int64_t perUp = block.heads / block.upHeads;
    cache.first.narrow(2, length, tokens)
        .copy_(torch::linear(x, block.wdkv, block.bdkv).unsqueeze(1));
    const torch::Tensor kRope =
        splitHeads(torch::linear(x, block.wkr, block.bkr), block.ropeKeyHeads);
    cache.second.narrow(2, length, tokens)
        .copy_(applyRope(kRope, ropeAngles(block.frequencies, length, tokens)));
    const torch::Tensor latent = cache.first.narrow(2, 0, total);  // [B, 1, S, r]
    const torch::Tensor rotary = cache.second.narrow(2, 0, total); // [B, n_r, S, d_r]

    const auto [qNope, qRope] = queries(block, x, length);
    // A bias on nope keys adds the same q.b to every score of a row and cancels in the softmax.
    const torch::Tensor wuk = block.wuk.view({block.upHeads, 1, block.nopeDim, block.rank});
    const torch::Tensor folded =
        torch::matmul(qNope.reshape({batch, block.upHeads, perUp, tokens, block.nopeDim}), wuk)
            .view({batch, 1, block.heads * tokens, block.rank});
    torch::Tensor scores =
        torch::matmul(folded, latent.transpose(-1, -2)).view({batch, block.heads, tokens, total});
    const std::int64_t perRope = block.heads / block.ropeKeyHeads;
    scores =
        scores +
        torch::matmul(qRope.reshape({batch, block.ropeKeyHeads, perRope * tokens, block.ropeDim}),
                      rotary.transpose(-1, -2))
            .view({batch, block.heads, tokens, total});
    scores.mul_(block.scale);
    maskFuture(scores);
    const torch::Tensor average =
        torch::matmul(scores.softmax(-1).view({batch, 1, block.heads * tokens, total}), latent)
            .view({batch, block.upHeads, perUp * tokens, block.rank});
    const torch::Tensor wuv = block.wuv.view({block.upHeads, block.vDim, block.rank});
    torch::Tensor mixed = torch::matmul(average, wuv.transpose(-1, -2));
    if (block.buv.defined()) // probabilities sum to one: the value bias is a constant
        mixed = mixed + block.buv.view({block.upHeads, 1, block.vDim});
    return output(block, mixed.view({batch, block.heads, tokens, block.vDim}));
}

} // namespace mla
