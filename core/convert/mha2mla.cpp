// SPDX-License-Identifier: GPL-3.0-or-later
// MHA2MLA (arXiv 2502.14837): each KV head keeps its most useful frequency pairs rotary, and the
// stacked remaining keys and values are factorised. Design section 4.
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
    explicit Mha2Mla(const ConvertSettings& settings) : m_settings(settings) {}

    [[nodiscard]] Status check(const ModelConfig& config) const override;
    [[nodiscard]] int fullRank(const ModelConfig& config) const override
    {
        return std::min(config.hiddenSize,
                        config.numKeyValueHeads * (2 * config.headDim - m_settings.qkRopeHeadDim));
    }
    [[nodiscard]] Result<ConvertedLayer> convert(const LayerSample& sample,
                                                 int rank) const override;

private:
    ConvertSettings m_settings;
};

Status Mha2Mla::check(const ModelConfig& config) const
{
    const int ropeDim = m_settings.qkRopeHeadDim;
    if (ropeDim < 2 || ropeDim % 2 != 0 || ropeDim > config.headDim)
        return usageError("--qk-rope-head-dim " + std::to_string(ropeDim) +
                          ": expected an even number up to head_dim " +
                          std::to_string(config.headDim));
    if (m_settings.ropeSelect == "uniform" && config.headDim % ropeDim != 0)
        return usageError("--rope-select uniform: qk_rope_head_dim " + std::to_string(ropeDim) +
                          " must divide head_dim " + std::to_string(config.headDim));
    if (m_settings.freqfold != 0)
        return usageError("--freqfold is for transmla");
    if (m_settings.kvLoraRank < 1)
        return usageError("--kv-lora-rank must be at least 1");
    if (m_settings.kvLoraRank > fullRank(config))
        return badInput("--kv-lora-rank " + std::to_string(m_settings.kvLoraRank) +
                        ": this model's stacked keys and values have rank " +
                        std::to_string(fullRank(config)) +
                        " at most: min(hidden_size, KV heads * (2 head_dim - qk_rope_head_dim))");
    return {};
}

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

Result<ConvertedLayer> Mha2Mla::convert(const LayerSample& sample, int rank) const
{
    const GqaBlock& gqa = sample.block;
    const int h = gqa.headDim, ropeDim = m_settings.qkRopeHeadDim, nope = h - ropeDim;
    const int half = h / 2;
    const auto f64 = [](const Tensor& t) { return t.to(torch::kCPU, torch::kFloat64); };
    const Tensor x = sample.rows();
    const Tensor scores = pairScores(gqa, x);
    MLA_TRY(pairs, selectPairs(m_settings.ropeSelect, ropeDim / 2, scores, gqa.frequencies));

    Tensor permutation = torch::empty({gqa.kvHeads, h}, torch::kInt64);
    for (int head = 0; head < gqa.kvHeads; ++head)
        permutation[head] =
            torch::tensor(headOrder(pairs[static_cast<std::size_t>(head)], half), torch::kInt64);
    const Tensor keys = permuteHeads(f64(gqa.wk), permutation, 1);              // [G, h, d]
    const Tensor queries = permuteHeads(f64(gqa.wq), permutation, gqa.group()); // [H, h, d]
    const auto nopeRows = [&](const Tensor& t) { return t.narrow(1, ropeDim, nope).flatten(0, 1); };
    const auto ropeRows = [&](const Tensor& t) { return t.narrow(1, 0, ropeDim).flatten(0, 1); };
    const auto queryRows = [&](const Tensor& t) { // [nope, rope] per head
        return torch::cat({t.narrow(1, ropeDim, nope), t.narrow(1, 0, ropeDim)}, 1).flatten(0, 1);
    };
    MLA_TRY(factors, factorizeKv(m_settings.svd, nopeRows(keys), f64(gqa.wv), rank, x));

    const auto f32 = [](const Tensor& t) { return t.to(torch::kFloat32).contiguous(); };
    ConvertedLayer out;
    MlaBlock& block = out.block;
    block.heads = gqa.heads;
    block.upHeads = block.ropeKeyHeads = gqa.kvHeads;
    block.nopeDim = nope;
    block.ropeDim = ropeDim;
    block.vDim = h;
    block.rank = static_cast<int>(factors.down.size(0));
    block.scale = gqa.scale;
    const std::int64_t keyRows = static_cast<std::int64_t>(gqa.kvHeads) * nope;
    block.wq = f32(queryRows(queries));
    block.wdkv = f32(factors.down);
    block.wkr = f32(ropeRows(keys));
    block.wuk = f32(factors.up.narrow(0, 0, keyRows));
    block.wuv = f32(factors.up.narrow(0, keyRows, factors.up.size(0) - keyRows));
    if (gqa.bq.defined()) {
        const auto vector = [&](const Tensor& t) { return f32(t.flatten()); };
        const Tensor kb = permuteHeads(f64(gqa.bk), permutation, 1);
        block.bq = vector(queryRows(permuteHeads(f64(gqa.bq), permutation, gqa.group())));
        block.bkr = vector(ropeRows(kb));
        block.buk = vector(nopeRows(kb));
        block.buv = vector(f64(gqa.bv));
        block.bdkv = torch::zeros({block.rank}); // the up side carries the biases
    }
    block.wo = gqa.wo;
    block.bo = gqa.bo;
    std::vector<Tensor> frequencies;
    for (const std::vector<int>& head : pairs)
        frequencies.push_back(
            gqa.frequencies.to(torch::kCPU)[0].index_select(0, torch::tensor(head, torch::kInt64)));
    block.frequencies = torch::stack(frequencies);

    out.ropePairs = pairs;
    out.basis.permutation = permutation;
    out.basis.keyRank = factors.keyRank;
    out.spectrum = spectrumAtRank(weightSpectrum(gqa), factors.singularValues, block.rank);
    const Tensor bk = gqa.bk.defined() ? f64(gqa.bk) : Tensor();
    out.rope = energies(gqa, torch::linear(x, f64(gqa.wk), bk), scores, pairs);
    return out;
}

} // namespace

std::unique_ptr<Converter> makeMha2Mla(const ConvertSettings& settings)
{
    return std::make_unique<Mha2Mla>(settings);
}

} // namespace mla
