// SPDX-License-Identifier: GPL-3.0-or-later
// The layer of tests/golden/make_method_goldens.py as this program's structs.
#pragma once

#include "core/checkpoint/model_config.h"
#include "core/convert/converter.h"
#include "core/model/gqa_attention.h"
#include "tests/support/numeric.h"

namespace mla::test
{

struct MethodLayer {
    GqaBlock block;
    ModelConfig config;         ///< of a model made of such layers
    torch::Tensor x;            ///< [8, 12, d]
    torch::Tensor mask;         ///< [8, 12] bool; conversions use all tokens
    torch::Tensor keys, values; ///< [8, 12, G, h], keys before RoPE
    torch::Tensor attention;    ///< [8, 12, d]
    std::int64_t evalSequences = 3;

    [[nodiscard]] torch::Tensor evalInput() const { return x.narrow(0, 0, evalSequences); }
    [[nodiscard]] LayerSample sample() const { return {block, x, torch::ones_like(mask)}; }
};

inline MethodLayer methodLayer()
{
    const nlohmann::json sizes = goldenJson("method.json").at("layer");
    const Goldens file("method_layer.safetensors");
    MethodLayer layer;
    ModelConfig& config = layer.config;
    config.modelType = "llama";
    config.hiddenSize = sizes.at("hidden_size");
    config.numHiddenLayers = 1;
    config.numAttentionHeads = sizes.at("num_attention_heads");
    config.numKeyValueHeads = sizes.at("num_key_value_heads");
    config.headDim = sizes.at("head_dim");
    config.rope.theta = sizes.at("rope_theta");
    config.qkvBias = true;
    config.outputBias = true;
    layer.evalSequences = sizes.at("eval_sequences");

    GqaBlock& block = layer.block;
    block.heads = config.numAttentionHeads;
    block.kvHeads = config.numKeyValueHeads;
    block.headDim = config.headDim;
    block.scale = 1 / std::sqrt(static_cast<double>(config.headDim));
    block.frequencies =
        torch::tensor(inverseFrequencies(config.rope, config.headDim), torch::kFloat64)
            .unsqueeze(0);
    block.wq = file("q_proj.weight");
    block.wk = file("k_proj.weight");
    block.wv = file("v_proj.weight");
    block.wo = file("o_proj.weight");
    block.bq = file("q_proj.bias");
    block.bk = file("k_proj.bias");
    block.bv = file("v_proj.bias");
    block.bo = file("o_proj.bias");
    layer.x = file("x");
    layer.mask = file("mask", torch::kBool);
    layer.keys = file("keys");
    layer.values = file("values");
    layer.attention = file("attention");
    return layer;
}

} // namespace mla::test
