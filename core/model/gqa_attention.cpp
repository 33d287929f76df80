// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/gqa_attention.h"

#include "core/model/causal_attention.h"
#include "core/model/linear.h"
#include "core/model/rms_norm.h"
#include "core/model/rope.h"

namespace mla
{
namespace
{

/// [B, T, heads * dim] -> [B, heads, T, dim]
torch::Tensor splitHeads(const torch::Tensor& x, int heads)
{
    return x.view({x.size(0), x.size(1), heads, -1}).transpose(1, 2);
}

/// [B, heads, T, dim] -> W_O applied to [B, T, heads * dim]
torch::Tensor output(const GqaBlock& block, const torch::Tensor& perHead)
{
    const torch::Tensor joined =
        perHead.transpose(1, 2).reshape({perHead.size(0), perHead.size(2), -1});
    return linearMap(joined, block.wo, block.bo);
}

torch::Tensor repeatHeads(const torch::Tensor& x, int times)
{
    return times == 1 ? x : x.repeat_interleave(times, 1);
}

/// Angles of the `tokens` that follow `offset` others.
RopeAngles anglesOf(const GqaBlock& block, std::int64_t offset, std::int64_t tokens)
{
    if (!block.dynamicRope)
        return ropeAngles(block.frequencies, offset, tokens);
    const torch::Tensor frequencies =
        torch::tensor(inverseFrequencies(*block.dynamicRope, block.headDim, offset + tokens),
                      torch::kFloat64)
            .unsqueeze(0)
            .to(block.frequencies.device());
    return ropeAngles(frequencies, offset, tokens);
}

} // namespace

GqaProjections project(const GqaBlock& block, const torch::Tensor& x)
{
    GqaProjections p = {splitHeads(linearMap(x, block.wq, block.bq), block.heads),
                        splitHeads(linearMap(x, block.wk, block.bk), block.kvHeads),
                        splitHeads(linearMap(x, block.wv, block.bv), block.kvHeads)};
    if (block.qNorm.defined()) {
        p.q = rmsNorm(p.q, block.qNorm, block.normEps);
        p.k = rmsNorm(p.k, block.kNorm, block.normEps);
    }
    return p;
}

std::pair<torch::Tensor, torch::Tensor> rotatedQueriesKeys(const GqaBlock& block,
                                                           const torch::Tensor& x)
{
    const GqaProjections p = project(block, x);
    const RopeAngles angles = anglesOf(block, 0, x.size(1));
    return {applyRope(p.q, angles), repeatHeads(applyRope(p.k, angles), block.group())};
}

torch::Tensor attend(const GqaBlock& block, const torch::Tensor& x)
{
    const GqaProjections p = project(block, x);
    const RopeAngles angles = anglesOf(block, 0, x.size(1));
    const torch::Tensor k = repeatHeads(applyRope(p.k, angles), block.group());
    const torch::Tensor v = repeatHeads(p.v, block.group());
    return output(block, causalAttention(applyRope(p.q, angles), k, v, block.scale, block.window));
}

LayerCache makeCache(const GqaBlock& block, std::int64_t batch, std::int64_t capacity)
{
    const auto options = computeOptions(block.wk);
    return {torch::empty({batch, block.kvHeads, capacity, block.headDim}, options),
            torch::empty({batch, block.kvHeads, capacity, block.headDim}, options)};
}

torch::Tensor attendCached(const GqaBlock& block, const torch::Tensor& x, LayerCache& cache,
                           std::int64_t length)
{
    const std::int64_t batch = x.size(0), tokens = x.size(1);
    const std::int64_t first = firstVisible(length, block.window);
    const std::int64_t seen = length + tokens - first;
    const GqaProjections p = project(block, x);
    const RopeAngles angles = anglesOf(block, length, tokens);
    cache.first.narrow(2, length, tokens).copy_(applyRope(p.k, angles));
    cache.second.narrow(2, length, tokens).copy_(p.v);

    // Heads of a group share their keys: [B, G, g T, h] against [B, G, S, h] needs no repetition.
    const torch::Tensor q =
        applyRope(p.q, angles)
            .reshape({batch, block.kvHeads, block.group() * tokens, block.headDim});
    torch::Tensor scores =
        torch::matmul(q * block.scale, cache.first.narrow(2, first, seen).transpose(-1, -2))
            .view({batch, block.heads, tokens, seen});
    maskFuture(scores, block.window);
    const torch::Tensor probabilities =
        scores.softmax(-1).view({batch, block.kvHeads, block.group() * tokens, seen});
    const torch::Tensor mixed = torch::matmul(probabilities, cache.second.narrow(2, first, seen));
    return output(block, mixed.view({batch, block.heads, tokens, block.headDim}));
}

} // namespace mla
