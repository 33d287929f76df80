// SPDX-License-Identifier: GPL-3.0-or-later
// The MLA half of layer_loading.h: three layouts in, one (ours) out.
#include "core/model/layer_loading.h"

#include "core/model/tensor_reader.h"

namespace mla
{
namespace
{

using torch::Tensor;

/// Rows of [heads * pairs * 2, ..] from interleaved pairs (a0 b0 a1 b1 ..) to halves (a0 a1 .. b0
/// b1 ..) within each head.
Tensor halfSplitRows(const Tensor& rows, int heads)
{
    std::vector<std::int64_t> tail = rows.sizes().vec();
    tail[0] = 2;
    tail.insert(tail.begin(), {heads, rows.size(0) / heads / 2});
    return rows.view(tail).transpose(1, 2).reshape(rows.sizes());
}

/// The rotary part of query rows [H (d_n + d_r), ..] changed by `change`.
template <typename Change>
Tensor withRotaryQueries(const MlaBlock& block, const Tensor& rows, const Change& change)
{
    std::vector<std::int64_t> shape = rows.sizes().vec();
    shape[0] = block.nopeDim + block.ropeDim;
    shape.insert(shape.begin(), block.heads);
    const Tensor perHead = rows.view(shape);
    std::vector<std::int64_t> flat = rows.sizes().vec();
    flat[0] = static_cast<std::int64_t>(block.heads) * block.ropeDim;
    const Tensor rotary = change(perHead.narrow(1, block.nopeDim, block.ropeDim).reshape(flat));
    shape[1] = block.ropeDim;
    return torch::cat({perHead.narrow(1, 0, block.nopeDim), rotary.view(shape)}, 1).flatten(0, 1);
}

/// Rows (or bias) of kv_b_proj, [upHeads (d_n + d_v), ..], as those of keys and of values.
std::pair<Tensor, Tensor> splitUp(const MlaBlock& block, const Tensor& up)
{
    std::vector<std::int64_t> shape = up.sizes().vec();
    shape[0] = block.nopeDim + block.vDim;
    shape.insert(shape.begin(), block.upHeads);
    const Tensor perHead = up.view(shape);
    const auto part = [&](std::int64_t from, std::int64_t dims) {
        std::vector<std::int64_t> flat = up.sizes().vec();
        flat[0] = block.upHeads * dims;
        return perHead.narrow(1, from, dims).reshape(flat).contiguous();
    };
    return {part(0, block.nopeDim), part(block.nopeDim, block.vDim)};
}

MlaBlock sizesOf(const ModelConfig& config, LayerIndex layer)
{
    const MlaConfig& mla = *config.mla;
    const auto index = static_cast<std::size_t>(layer.value);
    MlaBlock block;
    block.heads = config.numAttentionHeads;
    block.upHeads = mla.kvUpHeads;
    block.ropeKeyHeads = mla.ropeKeyHeads;
    block.nopeDim = mla.qkNopeHeadDim;
    block.ropeDim = mla.qkRopeHeadDim;
    block.vDim = mla.vHeadDim;
    block.rank = mla.latentRank.at(index);
    block.scale = mla.attentionScale;
    block.latentNormEps = mla.latentNormEps;
    block.normEps = config.rmsNormEps;
    block.window = config.window(layer.value);
    return block;
}

/// Ours and TransMLA's: DeepSeek's names.
Status readDeepseek(const ModelConfig& config, TensorReader& reader, MlaBlock& block)
{
    const MlaConfig& mla = *config.mla;
    Tensor down, downBias, up, upBias, queryDown;
    const bool factored = mla.queryRank > 0;
    reader.readIf(factored, queryDown, "q_a_proj.weight");
    reader.read(block.wq, factored ? "q_b_proj.weight" : "q_proj.weight");
    reader.readIf(mla.queryBias, block.bq, factored ? "q_b_proj.bias" : "q_proj.bias");
    reader.read(down, "kv_a_proj_with_mqa.weight");
    reader.readIf(mla.kvDownBias, downBias, "kv_a_proj_with_mqa.bias");
    reader.read(up, "kv_b_proj.weight");
    reader.readIf(mla.kvUpBias, upBias, "kv_b_proj.bias");
    reader.readIf(mla.latentNorm, block.latentNorm, "kv_a_layernorm.weight");
    reader.readIf(config.qkNorm, block.qNorm, "q_norm.weight");
    reader.readIf(config.qkNorm, block.kNorm, "k_norm.weight");
    MLA_CHECK(reader.status());
    if (factored) // no norm between them: one projection, multiplied in fp64
        block.wq = torch::matmul(block.wq.to(torch::kFloat64), queryDown.to(torch::kFloat64))
                       .to(torch::kFloat32);
    const auto split = [&](const Tensor& rows, Tensor& latent, Tensor& rotary) {
        latent = rows.narrow(0, 0, block.rank).contiguous();
        rotary = rows.narrow(0, block.rank, rows.size(0) - block.rank).contiguous();
    };
    split(down, block.wdkv, block.wkr);
    std::tie(block.wuk, block.wuv) = splitUp(block, up);
    if (mla.kvDownBias)
        split(downBias, block.bdkv, block.bkr);
    if (mla.kvUpBias)
        std::tie(block.buk, block.buv) = splitUp(block, upBias);
    if (mla.layout != DraftLayout::TransMla)
        return {};
    const auto halves = [&](const Tensor& rows) { return halfSplitRows(rows, block.heads); };
    block.wq = withRotaryQueries(block, block.wq, halves);
    block.wkr = halfSplitRows(block.wkr, block.ropeKeyHeads).contiguous();
    if (block.bq.defined())
        block.bq = withRotaryQueries(block, block.bq, halves);
    if (block.bkr.defined())
        block.bkr = halfSplitRows(block.bkr, block.ropeKeyHeads).contiguous();
    return {};
}

/// MHA2MLA's q_proj: the rotary rows of all heads, then the nope rows of all heads.
Tensor queriesPerHead(const MlaBlock& block, const Tensor& rows)
{
    std::vector<std::int64_t> shape = rows.sizes().vec();
    shape.insert(shape.begin(), block.heads);
    const std::int64_t rotary = std::int64_t{block.heads} * block.ropeDim;
    shape[1] = block.ropeDim;
    const Tensor first = rows.narrow(0, 0, rotary).view(shape);
    shape[1] = block.nopeDim;
    const Tensor rest = rows.narrow(0, rotary, rows.size(0) - rotary).view(shape);
    return torch::cat({rest, first}, 1).flatten(0, 1);
}

Status readMha2Mla(const ModelConfig& config, TensorReader& reader, MlaBlock& block)
{
    const MlaConfig& mla = *config.mla;
    Tensor query, queryBias, downK, downV;
    reader.read(query, "q_proj.weight");
    reader.readIf(mla.queryBias, queryBias, "q_proj.bias");
    reader.read(block.wkr, "k_r_proj.weight");
    reader.readIf(mla.kvUpBias, block.bkr, "k_r_proj.bias");
    reader.readIf(!mla.splitLatent, block.wdkv, "kv_proj.down_kv.weight");
    reader.readIf(mla.splitLatent, downK, "kv_proj.down_k.weight");
    reader.readIf(mla.splitLatent, downV, "kv_proj.down_v.weight");
    reader.read(block.wuk, "kv_proj.up_k.weight");
    reader.read(block.wuv, "kv_proj.up_v.weight");
    reader.readIf(mla.kvUpBias, block.buk, "kv_proj.up_k.bias");
    reader.readIf(mla.kvUpBias, block.buv, "kv_proj.up_v.bias");
    MLA_CHECK(reader.status());
    block.wq = queriesPerHead(block, query);
    if (mla.queryBias)
        block.bq = queriesPerHead(block, queryBias);
    if (mla.splitLatent) { // one latent [c_k; c_v]
        block.wdkv = torch::cat({downK, downV}, 0);
        block.wuk = torch::cat({block.wuk, torch::zeros_like(block.wuk)}, 1);
        block.wuv = torch::cat({torch::zeros_like(block.wuv), block.wuv}, 1);
    }
    if (block.bkr.defined()) // our layout has one bias for latent and rotary rows
        block.bdkv = torch::zeros({block.rank}, block.bkr.options());
    return {};
}

} // namespace

Result<MlaBlock> loadMlaBlock(const Checkpoint& checkpoint, LayerIndex layer, torch::Device device)
{
    const ModelConfig& config = checkpoint.config();
    const MlaConfig& mla = *config.mla;
    MlaBlock block = sizesOf(config, layer);
    block.frequencies =
        pairFrequencies(config, mla.ropePairs.at(static_cast<std::size_t>(layer.value))).to(device);
    TensorReader reader(checkpoint, attentionPrefix(layer), device);
    reader.read(block.wo, "o_proj.weight");
    reader.readIf(config.outputBias, block.bo, "o_proj.bias");
    MLA_CHECK(mla.layout == DraftLayout::Mha2Mla ? readMha2Mla(config, reader, block)
                                                 : readDeepseek(config, reader, block));
    const double amplitude = config.rope.attentionFactor * config.rope.attentionFactor;
    if (mla.layout != DraftLayout::Own && amplitude != 1) {
        // Theirs scales cos and sin, hence the rotary scores alone.
        const auto scaled = [&](const Tensor& rows) { return rows * amplitude; };
        block.wq = withRotaryQueries(block, block.wq, scaled);
        if (block.bq.defined())
            block.bq = withRotaryQueries(block, block.bq, scaled);
    }
    return block;
}

std::vector<std::pair<std::string, Tensor>> draftTensors(const MlaBlock& block)
{
    const auto stored = [](const Tensor& t) {
        return t.detach().to(torch::kCPU, torch::kFloat32).contiguous();
    };
    const auto perHead = [&](const Tensor& k, const Tensor& v) {
        // [upHeads, d_n + d_v, r], or without r for biases
        std::vector<std::int64_t> tail = k.sizes().vec();
        tail[0] = -1;
        const auto view = [&](const Tensor& t, int dim) {
            std::vector<std::int64_t> shape = {block.upHeads, dim};
            shape.insert(shape.end(), tail.begin() + 1, tail.end());
            return t.reshape(shape);
        };
        return torch::cat({view(k, block.nopeDim), view(v, block.vDim)}, 1).flatten(0, 1);
    };
    std::vector<std::pair<std::string, Tensor>> all = {
        {"kv_a_proj_with_mqa.weight", stored(torch::cat({block.wdkv, block.wkr}, 0))},
        {"kv_b_proj.weight", stored(perHead(block.wuk, block.wuv))},
        {"q_proj.weight", stored(block.wq)},
    };
    if (block.bdkv.defined())
        all.emplace_back("kv_a_proj_with_mqa.bias", stored(torch::cat({block.bdkv, block.bkr}, 0)));
    if (block.buv.defined())
        all.emplace_back("kv_b_proj.bias", stored(perHead(block.buk, block.buv)));
    if (block.bq.defined())
        all.emplace_back("q_proj.bias", stored(block.bq));
    if (block.latentNorm.defined())
        all.emplace_back("kv_a_layernorm.weight", stored(block.latentNorm));
    if (block.hasQkNorm()) {
        all.emplace_back("q_norm.weight", stored(block.qNorm));
        all.emplace_back("k_norm.weight", stored(block.kNorm));
    }
    return all;
}

} // namespace mla
