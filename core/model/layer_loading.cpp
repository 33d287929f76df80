// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/layer_loading.h"

#include <cmath>

#include "core/model/decoder.h"
#include "core/model/tensor_reader.h"

namespace mla
{
namespace
{

std::string layerPrefix(LayerIndex layer)
{
    return "model.layers." + std::to_string(layer.value) + ".";
}

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
    TensorReader reader(checkpoint, attentionPrefix(layer), device);
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

Result<DecoderLayer> loadLayer(const Checkpoint& checkpoint, LayerIndex layer, torch::Device device)
{
    const ModelConfig& config = checkpoint.config();
    DecoderLayer out;
    out.eps = config.rmsNormEps;
    TensorReader reader(checkpoint, layerPrefix(layer), device);
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
    TensorReader reader(checkpoint, "", device);
    reader.read(ends.embedding, "model.embed_tokens.weight");
    reader.read(ends.finalNorm, "model.norm.weight");
    reader.readIf(!checkpoint.tiedHead(), ends.head, "lm_head.weight");
    MLA_CHECK(reader.status());
    if (checkpoint.tiedHead())
        ends.head = ends.embedding;
    return ends;
}

} // namespace mla
