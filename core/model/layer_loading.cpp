// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/layer_loading.h"

#include <cmath>

#include "core/model/decoder.h"
#include "core/model/tensors.h"

namespace mla
{
namespace
{

std::string layerPrefix(LayerIndex layer)
{
    return "model.layers." + std::to_string(layer.value) + ".";
}

/// Reads tensors of one module prefix into members, keeping the first error.
class Reader
{
public:
    Reader(const Checkpoint& checkpoint, std::string prefix, torch::Device device)
        : m_checkpoint(checkpoint), m_prefix(std::move(prefix)), m_device(device)
    {
    }
    void read(torch::Tensor& into, const std::string& name)
    {
        if (!m_status)
            return;
        Result<torch::Tensor> tensor =
            loadTensor(m_checkpoint, m_prefix + name, torch::kFloat32, m_device);
        if (tensor)
            into = std::move(tensor).value();
        else
            m_status = std::move(tensor).error();
    }
    void readIf(bool wanted, torch::Tensor& into, const std::string& name)
    {
        if (wanted)
            read(into, name);
    }
    Status status() { return std::move(m_status); }

private:
    const Checkpoint& m_checkpoint;
    std::string m_prefix;
    torch::Device m_device;
    Status m_status;
};

torch::Tensor frequencyTensor(const std::vector<double>& values)
{
    return torch::tensor(values, torch::kFloat64);
}

} // namespace

std::string attentionPrefix(LayerIndex layer)
{
    return layerPrefix(layer) + "self_attn.";
}

torch::Tensor pairFrequencies(const ModelConfig& config, const std::vector<std::vector<int>>& pairs)
{
    const std::vector<double> all = inverseFrequencies(config.rope, config.headDim);
    std::vector<torch::Tensor> heads;
    for (const std::vector<int>& head : pairs) {
        std::vector<double> chosen;
        for (const int pair : head)
            chosen.push_back(all.at(static_cast<std::size_t>(pair)));
        heads.push_back(frequencyTensor(chosen));
    }
    return torch::stack(heads);
}

Result<GqaBlock> loadGqaBlock(const Checkpoint& checkpoint, LayerIndex layer, torch::Device device)
{
    const ModelConfig& config = checkpoint.config();
    GqaBlock block;
    block.heads = config.numAttentionHeads;
    block.kvHeads = config.numKeyValueHeads;
    block.headDim = config.headDim;
    // YaRN multiplies cos and sin, of queries and of keys, by its amplitude.
    const double amplitude = config.rope.attentionFactor;
    block.scale = amplitude * amplitude / std::sqrt(static_cast<double>(config.headDim));
    block.normEps = config.rmsNormEps;
    block.window = config.window(layer.value);
    if (config.rope.type == RopeType::Dynamic)
        block.dynamicRope = config.rope;
    block.frequencies =
        frequencyTensor(inverseFrequencies(config.rope, config.headDim)).unsqueeze(0).to(device);
    Reader reader(checkpoint, attentionPrefix(layer), device);
    reader.read(block.wq, "q_proj.weight");
    reader.read(block.wk, "k_proj.weight");
    reader.read(block.wv, "v_proj.weight");
    reader.read(block.wo, "o_proj.weight");
    reader.readIf(config.qkvBias, block.bq, "q_proj.bias");
    reader.readIf(config.qkvBias, block.bk, "k_proj.bias");
    reader.readIf(config.qkvBias, block.bv, "v_proj.bias");
    reader.readIf(config.outputBias, block.bo, "o_proj.bias");
    reader.readIf(config.qkNorm, block.qNorm, "q_norm.weight");
    reader.readIf(config.qkNorm, block.kNorm, "k_norm.weight");
    MLA_CHECK(reader.status());
    return block;
}

Result<MlaBlock> loadMlaBlock(const Checkpoint& checkpoint, LayerIndex layer, torch::Device device)
{
    const ModelConfig& config = checkpoint.config();
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
    block.frequencies = pairFrequencies(config, mla.ropePairs.at(index)).to(device);

    torch::Tensor down, downBias, up, upBias;
    Reader reader(checkpoint, attentionPrefix(layer), device);
    reader.read(block.wq, "q_proj.weight");
    reader.read(down, "kv_a_proj_with_mqa.weight");
    reader.read(up, "kv_b_proj.weight");
    reader.read(block.wo, "o_proj.weight");
    reader.readIf(mla.queryBias, block.bq, "q_proj.bias");
    reader.readIf(mla.kvDownBias, downBias, "kv_a_proj_with_mqa.bias");
    reader.readIf(mla.kvUpBias, upBias, "kv_b_proj.bias");
    reader.readIf(config.outputBias, block.bo, "o_proj.bias");
    MLA_CHECK(reader.status());

    block.wdkv = down.narrow(0, 0, block.rank).contiguous();
    block.wkr = down.narrow(0, block.rank, down.size(0) - block.rank).contiguous();
    const torch::Tensor perHead = up.view({block.upHeads, block.nopeDim + block.vDim, block.rank});
    block.wuk = perHead.narrow(1, 0, block.nopeDim).reshape({-1, block.rank}).contiguous();
    block.wuv = perHead.narrow(1, block.nopeDim, block.vDim).reshape({-1, block.rank}).contiguous();
    if (mla.kvDownBias) {
        block.bdkv = downBias.narrow(0, 0, block.rank).contiguous();
        block.bkr = downBias.narrow(0, block.rank, downBias.size(0) - block.rank).contiguous();
    }
    if (mla.kvUpBias) {
        const torch::Tensor biases = upBias.view({block.upHeads, block.nopeDim + block.vDim});
        block.buk = biases.narrow(1, 0, block.nopeDim).reshape({-1}).contiguous();
        block.buv = biases.narrow(1, block.nopeDim, block.vDim).reshape({-1}).contiguous();
    }
    return block;
}

std::vector<std::pair<std::string, torch::Tensor>> draftTensors(const MlaBlock& block)
{
    const auto stored = [](const torch::Tensor& t) {
        return t.detach().to(torch::kCPU, torch::kFloat32).contiguous();
    };
    const auto perHead = [&](const torch::Tensor& k, const torch::Tensor& v) {
        // [upHeads, d_n + d_v, r], or without r for biases
        std::vector<std::int64_t> tail = k.sizes().vec();
        tail[0] = -1;
        const auto view = [&](const torch::Tensor& t, int dim) {
            std::vector<std::int64_t> shape = {block.upHeads, dim};
            shape.insert(shape.end(), tail.begin() + 1, tail.end());
            return t.reshape(shape);
        };
        return torch::cat({view(k, block.nopeDim), view(v, block.vDim)}, 1).flatten(0, 1);
    };
    std::vector<std::pair<std::string, torch::Tensor>> all = {
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
    return all;
}

Result<DecoderLayer> loadLayer(const Checkpoint& checkpoint, LayerIndex layer, torch::Device device)
{
    const ModelConfig& config = checkpoint.config();
    DecoderLayer out;
    out.eps = config.rmsNormEps;
    Reader reader(checkpoint, layerPrefix(layer), device);
    reader.read(out.inputNorm, "input_layernorm.weight");
    reader.read(out.postNorm, "post_attention_layernorm.weight");
    reader.read(out.gate, "mlp.gate_proj.weight");
    reader.read(out.up, "mlp.up_proj.weight");
    reader.read(out.down, "mlp.down_proj.weight");
    reader.readIf(config.mlpBias, out.gateBias, "mlp.gate_proj.bias");
    reader.readIf(config.mlpBias, out.upBias, "mlp.up_proj.bias");
    reader.readIf(config.mlpBias, out.downBias, "mlp.down_proj.bias");
    MLA_CHECK(reader.status());
    if (config.isMla()) {
        MLA_TRY(block, loadMlaBlock(checkpoint, layer, device));
        out.attention = std::move(block);
    } else {
        MLA_TRY(block, loadGqaBlock(checkpoint, layer, device));
        out.attention = std::move(block);
    }
    return out;
}

Result<DecoderEnds> loadEnds(const Checkpoint& checkpoint, torch::Device device)
{
    DecoderEnds ends;
    ends.eps = checkpoint.config().rmsNormEps;
    Reader reader(checkpoint, "", device);
    reader.read(ends.embedding, "model.embed_tokens.weight");
    reader.read(ends.finalNorm, "model.norm.weight");
    reader.readIf(!checkpoint.tiedHead(), ends.head, "lm_head.weight");
    MLA_CHECK(reader.status());
    if (checkpoint.tiedHead())
        ends.head = ends.embedding;
    return ends;
}

} // namespace mla
