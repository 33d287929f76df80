// SPDX-License-Identifier: GPL-3.0-or-later
// MHA2MLA (arXiv 2502.14837): each KV head keeps its most useful frequency pairs rotary, and the
// stacked remaining keys and values are factorised. QK-norm (Qwen3) stays exact: the draft
// normalises its own keys, whose 1 / rms is cached. Design section 4.
#include "core/convert/converter.h"

#include <algorithm>

#include "core/convert/kv_factorization.h"
#include "core/convert/rank_spectrum.h"
#include "core/convert/rope_selection.h"

namespace mla
{
namespace
{

using torch::Tensor;

class Mha2Mla final : public Converter
{
public:
    using Converter::Converter;
    [[nodiscard]] Result<ConvertedLayer> convert(const LayerSample& sample,
                                                 int rank) const override;
};

/// Source dims of a head in the order [kept first halves, kept second halves, rest likewise].
std::vector<std::int64_t> headOrder(const std::vector<int>& kept, int half)
{
    std::vector<std::int64_t> rest, order;
    for (int pair = 0; pair < half; ++pair)
        if (!std::binary_search(kept.begin(), kept.end(), pair))
            rest.push_back(pair);
    order.insert(order.end(), kept.begin(), kept.end());
    for (const int pair : kept)
        order.push_back(pair + half);
    order.insert(order.end(), rest.begin(), rest.end());
    for (const std::int64_t pair : rest)
        order.push_back(pair + half);
    return order;
}

/// Rows of each head of [heads h, ..] reordered; head i uses permutation row i / perHead.
Tensor permuteHeads(const Tensor& t, const Tensor& permutation, int perHead)
{
    const std::int64_t dim = permutation.size(1);
    const Tensor heads = t.view({-1, dim, t.dim() == 2 ? t.size(1) : 1});
    std::vector<Tensor> out;
    for (std::int64_t head = 0; head < heads.size(0); ++head)
        out.push_back(heads[head].index_select(0, permutation[head / perHead]));
    return torch::stack(out); // [heads, h, columns]
}

RopeRecord energies(const GqaBlock& gqa, const Tensor& keys, const Tensor& scores,
                    const std::vector<std::vector<int>>& pairs)
{
    const int half = gqa.headDim / 2;
    Tensor energy = keys.view({-1, gqa.kvHeads, 2, half}).pow(2).sum({0, 2}); // [G, h/2]
    energy = energy / energy.sum();
    Tensor kept = torch::zeros_like(energy);
    for (std::size_t head = 0; head < pairs.size(); ++head)
        for (const int pair : pairs[head])
            kept[static_cast<std::int64_t>(head)][pair] =
                energy[static_cast<std::int64_t>(head)][pair];
    RopeRecord record;
    record.heads = gqa.kvHeads;
    record.pairs = half;
    record.keyEnergy = toVector(energy);
    record.keptEnergy = toVector(kept);
    record.scoreEnergy = toVector(scores / scores.sum());
    return record;
}

/// QK-norm weights [h] in the block's order of dims, nope before rotary, per KV head: [G, h] fp64.
Tensor orderedNorm(const Tensor& norm, const Tensor& permutation, int ropeDim)
{
    const Tensor perHead = norm.to(torch::kCPU, torch::kFloat64).index({permutation});
    const std::int64_t nope = perHead.size(1) - ropeDim;
    return torch::cat({perHead.narrow(1, ropeDim, nope), perHead.narrow(1, 0, ropeDim)}, 1);
}

/// What each nope key row [G d_n, 1] counts for in the factorisation. A norm's weights decide how
/// much a dim matters to scores; `joint` and `split` are the published ones and ignore them.
Tensor keyRowWeights(const Tensor& kNorm, std::int64_t nope, const std::string& svd)
{
    constexpr double kSmallest = 1e-3; // of the largest: a dim of weight zero still enters the rms
    const Tensor weights = kNorm.narrow(1, 0, nope).abs().reshape({-1, 1});
    if (svd != "activation-aware" || weights.numel() == 0)
        return torch::ones_like(weights);
    return weights.clamp_min(kSmallest * weights.max().item<double>());
}

Tensor f64(const Tensor& t)
{
    return t.to(torch::kCPU, torch::kFloat64);
}
Tensor f32(const Tensor& t)
{
    return t.to(torch::kFloat32).contiguous();
}

/// Rows of a source's keys or queries [heads h, ..] by the part they become, in fp64.
struct HeadLayout {
    Tensor permutation; ///< [G, h] source dim at each place of [rotary; nope]
    int ropeDim = 0;

    [[nodiscard]] std::int64_t nopeDim() const { return permutation.size(1) - ropeDim; }
    [[nodiscard]] Tensor nopeKeys(const Tensor& t) const
    {
        return permuteHeads(f64(t), permutation, 1).narrow(1, ropeDim, nopeDim()).flatten(0, 1);
    }
    [[nodiscard]] Tensor rotaryKeys(const Tensor& t) const
    {
        return permuteHeads(f64(t), permutation, 1).narrow(1, 0, ropeDim).flatten(0, 1);
    }
    /// [nope, rotary] per head
    [[nodiscard]] Tensor queries(const Tensor& t, int group) const
    {
        const Tensor q = permuteHeads(f64(t), permutation, group);
        return torch::cat({q.narrow(1, ropeDim, nopeDim()), q.narrow(1, 0, ropeDim)}, 1)
            .flatten(0, 1);
    }
};

HeadLayout layoutOf(const std::vector<std::vector<int>>& pairs, int headDim, int ropeDim)
{
    std::vector<Tensor> rows;
    for (const std::vector<int>& kept : pairs)
        rows.push_back(torch::tensor(headOrder(kept, headDim / 2), torch::kInt64));
    return {torch::stack(rows), ropeDim};
}

void setSizes(MlaBlock& block, const GqaBlock& gqa, const HeadLayout& layout, std::int64_t rank)
{
    block.heads = gqa.heads;
    block.upHeads = block.ropeKeyHeads = gqa.kvHeads;
    block.nopeDim = static_cast<int>(layout.nopeDim());
    block.ropeDim = layout.ropeDim;
    block.vDim = gqa.headDim;
    block.rank = static_cast<int>(rank);
    block.scale = gqa.scale;
    block.window = gqa.window;
}

/// `rowWeights` as they were put on the nope keys before `factors` were taken.
void setWeights(MlaBlock& block, const GqaBlock& gqa, const HeadLayout& layout,
                const KvFactors& factors, const Tensor& rowWeights)
{
    const std::int64_t keyRows = rowWeights.size(0);
    block.wq = f32(layout.queries(gqa.wq, gqa.group()));
    block.wdkv = f32(factors.down);
    block.wkr = f32(layout.rotaryKeys(gqa.wk));
    block.wuk = f32(factors.up.narrow(0, 0, keyRows) / rowWeights);
    block.wuv = f32(factors.up.narrow(0, keyRows, factors.up.size(0) - keyRows));
    block.wo = gqa.wo;
    block.bo = gqa.bo;
    if (!gqa.bq.defined())
        return;
    block.bq = f32(layout.queries(gqa.bq, gqa.group()).flatten());
    block.bkr = f32(layout.rotaryKeys(gqa.bk).flatten());
    block.buk = f32(layout.nopeKeys(gqa.bk).flatten());
    block.buv = f32(f64(gqa.bv));
    block.bdkv = torch::zeros({block.rank}); // the up side carries the biases
}

Result<ConvertedLayer> Mha2Mla::convert(const LayerSample& sample, int rank) const
{
    const GqaBlock& gqa = sample.block;
    const int h = gqa.headDim, ropeDim = m_settings.qkRopeHeadDim;
    const Tensor x = sample.rows();
    const Tensor scores = pairScores(gqa, x);
    MLA_TRY(pairs, selectPairs(m_settings.ropeSelect, ropeDim / 2, scores, gqa.frequencies));
    const HeadLayout layout = layoutOf(pairs, h, ropeDim);
    const bool qkNorm = gqa.kNorm.defined();
    const Tensor kNorm = qkNorm ? orderedNorm(gqa.kNorm, layout.permutation, ropeDim)
                                : torch::ones({gqa.kvHeads, h}, torch::kFloat64);
    const Tensor rowWeights = keyRowWeights(kNorm, layout.nopeDim(), m_settings.svd);
    MLA_TRY(factors, factorizeKv(m_settings.svd, layout.nopeKeys(gqa.wk) * rowWeights, f64(gqa.wv),
                                 rank, x));

    ConvertedLayer out;
    MlaBlock& block = out.block;
    setSizes(block, gqa, layout, factors.down.size(0));
    setWeights(block, gqa, layout, factors, rowWeights);
    if (qkNorm) {
        block.qNorm = f32(orderedNorm(gqa.qNorm, layout.permutation, ropeDim));
        block.kNorm = f32(kNorm);
        block.normEps = gqa.normEps;
    }
    std::vector<Tensor> frequencies;
    for (const std::vector<int>& head : pairs)
        frequencies.push_back(
            gqa.frequencies.to(torch::kCPU)[0].index_select(0, torch::tensor(head, torch::kInt64)));
    block.frequencies = torch::stack(frequencies);

    out.ropePairs = pairs;
    out.basis.permutation = layout.permutation;
    out.basis.keyRank = factors.keyRank;
    out.spectrum = spectrumAtRank(weightSpectrum(gqa), factors.singularValues, block.rank);
    out.rope = energies(gqa, keyHeads(gqa, x), scores, pairs);
    return out;
}

} // namespace

std::unique_ptr<Converter> makeMha2Mla(const ConvertSettings& settings)
{
    return std::make_unique<Mha2Mla>(settings);
}

} // namespace mla
