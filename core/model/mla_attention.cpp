// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/mla_attention.h"

#include "core/model/causal_attention.h"
#include "core/model/linear.h"
#include "core/model/rms_norm.h"
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

/// 1 / rms over the last dimension, [.., 1].
torch::Tensor inverseRms(const torch::Tensor& x, double eps)
{
    return torch::rsqrt(x.pow(2).mean(-1, true) + eps);
}

/// c of x [B, T, d], normalised where the block has a latent norm: [B, T, r].
torch::Tensor latentOf(const MlaBlock& block, const torch::Tensor& x)
{
    const torch::Tensor c = linearMap(x, block.wdkv, block.bdkv);
    return block.latentNorm.defined() ? rmsNorm(c, block.latentNorm, block.latentNormEps) : c;
}

/// Keys before norm and rotation: rotary [B, n_r, T, d_r], nope [B, upHeads, T, d_n].
torch::Tensor rotaryKeys(const MlaBlock& block, const torch::Tensor& x)
{
    return splitHeads(linearMap(x, block.wkr, block.bkr), block.ropeKeyHeads);
}
torch::Tensor nopeKeys(const MlaBlock& block, const torch::Tensor& latent)
{
    return linearMap(latent, block.wuk, block.buk)
        .view({latent.size(0), latent.size(1), block.upHeads, block.nopeDim})
        .transpose(1, 2);
}

/// QK-norm weights of nope or rotary dims as [upHeads, 1, dims].
torch::Tensor nopeWeight(const MlaBlock& block, const torch::Tensor& norm)
{
    return norm.narrow(1, 0, block.nopeDim).unsqueeze(1);
}
torch::Tensor rotaryWeight(const MlaBlock& block, const torch::Tensor& norm)
{
    return norm.narrow(1, block.nopeDim, block.ropeDim).unsqueeze(1);
}

/// 1 / rms of each key [nope; rotary]: [B, n_r, T, 1].
torch::Tensor keyScale(const MlaBlock& block, const torch::Tensor& nope,
                       const torch::Tensor& rotary)
{
    return inverseRms(torch::cat({nope, rotary}, -1), block.normEps);
}

/// Nope [B, H, T, d_n] and rotated rotary [B, H, T, d_r] queries.
std::pair<torch::Tensor, torch::Tensor> queries(const MlaBlock& block, const torch::Tensor& x,
                                                std::int64_t offset)
{
    torch::Tensor q = splitHeads(linearMap(x, block.wq, block.bq), block.heads);
    if (block.hasQkNorm())
        q = q * inverseRms(q, block.normEps) *
            block.qNorm.repeat_interleave(block.heads / block.upHeads, 0).unsqueeze(1);
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
    return linearMap(joined, block.wo, block.bo);
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
    for (torch::Tensor* t : {&block.wq, &block.bq, &block.wdkv, &block.bdkv, &block.wkr, &block.bkr,
                             &block.wuk, &block.buk, &block.wuv, &block.buv, &block.wo, &block.bo,
                             &block.frequencies, &block.latentNorm, &block.qNorm, &block.kNorm})
        if (t->defined())
            *t = t->to(device);
    return block;
}

MlaKeysValues keysValues(const MlaBlock& block, const torch::Tensor& x)
{
    MlaKeysValues kv;
    kv.latent = latentOf(block, x);
    kv.rotary = rotaryKeys(block, x);
    kv.nope = nopeKeys(block, kv.latent);
    if (block.hasQkNorm()) {
        const torch::Tensor scale = keyScale(block, kv.nope, kv.rotary);
        kv.nope = kv.nope * scale * nopeWeight(block, block.kNorm);
        kv.rotary = kv.rotary * scale * rotaryWeight(block, block.kNorm);
    }
    kv.value = splitHeads(linearMap(kv.latent, block.wuv, block.buv), block.upHeads);
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
    return output(block, causalAttention(m.q, m.k, m.v, block.scale, block.window));
}

LayerCache makeCache(const MlaBlock& block, std::int64_t batch, std::int64_t capacity)
{
    const auto options = computeOptions(block.wdkv);
    const std::int64_t scalar = block.hasQkNorm() ? 1 : 0;
    return {torch::empty({batch, 1, capacity, block.rank}, options),
            torch::empty({batch, block.ropeKeyHeads, capacity, block.ropeDim + scalar}, options)};
}

namespace
{

/// Writes what is cached of x's tokens: the latent, the rotated rotary keys and, with QK-norm, the
/// keys' scalars, which multiply whole scores.
void writeCache(const MlaBlock& block, const torch::Tensor& x, LayerCache& cache,
                std::int64_t length)
{
    const std::int64_t tokens = x.size(1);
    const torch::Tensor latent = latentOf(block, x), rotary = rotaryKeys(block, x);
    const RopeAngles angles = ropeAngles(block.frequencies, length, tokens);
    cache.first.narrow(2, length, tokens).copy_(latent.unsqueeze(1));
    torch::Tensor second = cache.second.narrow(2, length, tokens);
    if (!block.hasQkNorm()) {
        second.copy_(applyRope(rotary, angles));
        return;
    }
    second.narrow(-1, 0, block.ropeDim)
        .copy_(applyRope(rotary * rotaryWeight(block, block.kNorm), angles));
    second.narrow(-1, block.ropeDim, 1).copy_(keyScale(block, nopeKeys(block, latent), rotary));
}

/// q^C . k^C of nope queries [B, H, T, d_n] (QK-norm weights of keys already in them) against the
/// latents [B, 1, S, r]: [B, H, T, S].
torch::Tensor absorbedScores(const MlaBlock& block, const torch::Tensor& qNope,
                             const torch::Tensor& latent)
{
    const std::int64_t batch = qNope.size(0), tokens = qNope.size(2), total = latent.size(2);
    const std::int64_t perUp = block.heads / block.upHeads;
    const torch::Tensor wuk = block.wuk.view({block.upHeads, 1, block.nopeDim, block.rank});
    const torch::Tensor perHead =
        qNope.reshape({batch, block.upHeads, perUp, tokens, block.nopeDim});
    const torch::Tensor folded =
        torch::matmul(perHead, wuk).view({batch, 1, block.heads * tokens, block.rank});
    const torch::Tensor scores =
        torch::matmul(folded, latent.transpose(-1, -2)).view({batch, block.heads, tokens, total});
    // A bias on nope keys adds the same q.b to every score of a row and cancels in the softmax,
    // unless each key then has a scale of its own.
    if (!block.hasQkNorm() || !block.buk.defined())
        return scores;
    const torch::Tensor buk = block.buk.view({1, block.upHeads, 1, 1, block.nopeDim});
    return scores + (perHead * buk).sum(-1).view({batch, block.heads, tokens, 1});
}

/// sum p c, then W_uv (and its bias): probabilities [B, H, T, S] -> [B, H, T, d_v].
torch::Tensor absorbedValues(const MlaBlock& block, const torch::Tensor& probabilities,
                             const torch::Tensor& latent)
{
    const std::int64_t batch = probabilities.size(0), tokens = probabilities.size(2);
    const std::int64_t perUp = block.heads / block.upHeads;
    const torch::Tensor average =
        torch::matmul(probabilities.view({batch, 1, block.heads * tokens, latent.size(2)}), latent)
            .view({batch, block.upHeads, perUp * tokens, block.rank});
    const torch::Tensor wuv = block.wuv.view({block.upHeads, block.vDim, block.rank});
    torch::Tensor mixed = torch::matmul(average, wuv.transpose(-1, -2));
    if (block.buv.defined()) // probabilities sum to one: the value bias is a constant
        mixed = mixed + block.buv.view({block.upHeads, 1, block.vDim});
    return mixed.view({batch, block.heads, tokens, block.vDim});
}

} // namespace

torch::Tensor attendCached(const MlaBlock& block, const torch::Tensor& x, LayerCache& cache,
                           std::int64_t length)
{
    const std::int64_t batch = x.size(0), tokens = x.size(1);
    const std::int64_t first = firstVisible(length, block.window);
    const std::int64_t seen = length + tokens - first;
    writeCache(block, x, cache, length);
    const torch::Tensor latent = cache.first.narrow(2, first, seen); // [B, 1, S, r]
    const torch::Tensor keys = cache.second.narrow(2, first, seen);  // [B, n_r, S, d_r (+ 1)]
    const torch::Tensor rotary = block.hasQkNorm() ? keys.narrow(-1, 0, block.ropeDim) : keys;

    auto [qNope, qRope] = queries(block, x, length);
    const std::int64_t perRope = block.heads / block.ropeKeyHeads;
    if (block.hasQkNorm())
        qNope = qNope * nopeWeight(block, block.kNorm).repeat_interleave(perRope, 0);
    torch::Tensor scores = absorbedScores(block, qNope, latent);
    scores =
        scores +
        torch::matmul(qRope.reshape({batch, block.ropeKeyHeads, perRope * tokens, block.ropeDim}),
                      rotary.transpose(-1, -2))
            .view({batch, block.heads, tokens, seen});
    scores.mul_(block.scale);
    if (block.hasQkNorm())
        scores.mul_(keys.select(-1, block.ropeDim).unsqueeze(2).repeat_interleave(perRope, 1));
    maskFuture(scores, block.window);
    return output(block, absorbedValues(block, scores.softmax(-1), latent));
}

} // namespace mla
