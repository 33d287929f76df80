// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>

#include "core/checkpoint/config_parts.h"

namespace mla
{

namespace
{

void divides(JsonReader& reader, const char* key, int divisor, int number, const char* ofWhat)
{
    if (number % divisor != 0)
        reader.fail(key, "is " + std::to_string(divisor) + ", which does not divide the " +
                             std::to_string(number) + " " + ofWhat);
}

std::vector<int> readLatentRank(JsonReader& reader, const nlohmann::json& config, int layers)
{
    reader.require("latent_rank");
    std::vector<int> ranks = reader.integers("latent_rank", {}, 1);
    if (!reader.status())
        return {};
    if (!config.at("latent_rank").is_array())
        return std::vector<int>(static_cast<std::size_t>(layers), ranks.front());
    if (ranks.size() != static_cast<std::size_t>(layers))
        reader.fail("latent_rank", "lists " + std::to_string(ranks.size()) + " ranks for " +
                                       std::to_string(layers) + " layers");
    return ranks;
}

/// rope_pairs: [layer][rotary key head][pair], each an index into the source's frequencies.
void readRopePairs(JsonReader& reader, const nlohmann::json& config, const ModelConfig& model,
                   MlaConfig& mla)
{
    reader.require("rope_pairs");
    if (!reader.status())
        return;
    const nlohmann::json& layers = config.at("rope_pairs");
    const auto isList = [](const nlohmann::json& value, int size) {
        return value.is_array() && value.size() == static_cast<std::size_t>(size);
    };
    const std::string shape = "[" + std::to_string(model.numHiddenLayers) + "][" +
                              std::to_string(mla.ropeKeyHeads) + "][" +
                              std::to_string(mla.qkRopeHeadDim / 2) + "]";
    const auto wrongShape = [&] { reader.fail("rope_pairs", "must have the shape " + shape); };
    if (!isList(layers, model.numHiddenLayers))
        return wrongShape();
    const int pairs = model.headDim / 2;
    for (const nlohmann::json& layer : layers) {
        if (!isList(layer, mla.ropeKeyHeads))
            return wrongShape();
        std::vector<std::vector<int>> heads;
        for (const nlohmann::json& head : layer) {
            if (!isList(head, mla.qkRopeHeadDim / 2))
                return wrongShape();
            std::vector<int> indices;
            for (const nlohmann::json& index : head) {
                if (!index.is_number_unsigned() ||
                    index.get<std::uint64_t>() >= static_cast<std::uint64_t>(pairs))
                    return reader.fail("rope_pairs", "holds " + index.dump().substr(0, 80) +
                                                         ", an index below " +
                                                         std::to_string(pairs) + " is expected");
                indices.push_back(index.get<int>());
            }
            heads.push_back(std::move(indices));
        }
        mla.ropePairs.push_back(std::move(heads));
    }
}

/// In the file, head_dim and num_key_value_heads describe the expanded attention; the source's own
/// values stand beside them.
void restoreSourceHeads(JsonReader& reader, const MlaConfig& mla, ModelConfig& model)
{
    const std::int64_t width = std::int64_t{mla.qkNopeHeadDim} + mla.qkRopeHeadDim;
    if (model.headDim != width)
        reader.fail("head_dim", "is " + std::to_string(model.headDim) +
                                    ", qk_nope_head_dim + qk_rope_head_dim = " +
                                    std::to_string(width) + " is expected");
    if (model.numKeyValueHeads != model.numAttentionHeads)
        reader.fail("num_key_value_heads",
                    "must equal num_attention_heads = " + std::to_string(model.numAttentionHeads));
    reader.require("original_head_dim");
    reader.require("original_num_key_value_heads");
    model.headDim = reader.integer("original_head_dim", 2, 2);
    model.numKeyValueHeads = reader.positive("original_num_key_value_heads", 1);
    if (model.headDim % 2 != 0)
        reader.fail("original_head_dim", "must be even");
    divides(reader, "original_num_key_value_heads", model.numKeyValueHeads, model.numAttentionHeads,
            "attention heads");
}

} // namespace

Status parseMla(const nlohmann::json& config, const std::string& origin, ModelConfig& model)
{
    JsonReader reader(config, origin);
    for (const char* key :
         {"converter", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim", "rope_key_heads",
          "kv_up_heads", "attention_scale", "query_bias", "kv_down_bias", "kv_up_bias"})
        reader.require(key);
    MlaConfig mla;
    mla.converter = reader.text("converter", {});
    mla.latentRank = readLatentRank(reader, config, model.numHiddenLayers);
    mla.qkRopeHeadDim = reader.integer("qk_rope_head_dim", 2, 2);
    mla.qkNopeHeadDim = reader.integer("qk_nope_head_dim", 0, 0);
    mla.vHeadDim = reader.positive("v_head_dim", 1);
    mla.ropeKeyHeads = reader.positive("rope_key_heads", 1);
    mla.kvUpHeads = reader.positive("kv_up_heads", 1);
    mla.attentionScale = reader.number("attention_scale", 1);
    mla.queryBias = reader.boolean("query_bias", false);
    mla.kvDownBias = reader.boolean("kv_down_bias", false);
    mla.kvUpBias = reader.boolean("kv_up_bias", false);
    MLA_CHECK(reader.status());

    restoreSourceHeads(reader, mla, model);
    if (mla.converter.empty())
        reader.fail("converter", "is empty");
    // One rotary key head may gather the dims of all KV heads.
    const std::int64_t keyDims = std::int64_t{model.numKeyValueHeads} * model.headDim;
    if (mla.qkRopeHeadDim % 2 != 0 || std::int64_t{mla.ropeKeyHeads} * mla.qkRopeHeadDim > keyDims)
        reader.fail("qk_rope_head_dim",
                    "must be even, and " + std::to_string(mla.ropeKeyHeads) +
                        " rotary key heads of it at most original_num_key_value_heads * "
                        "original_head_dim = " +
                        std::to_string(keyDims));
    divides(reader, "rope_key_heads", mla.ropeKeyHeads, model.numAttentionHeads, "attention heads");
    divides(reader, "kv_up_heads", mla.kvUpHeads, model.numAttentionHeads, "attention heads");
    if (mla.attentionScale <= 0)
        reader.fail("attention_scale", "must be positive");
    readRopePairs(reader, config, model, mla);
    MLA_CHECK(reader.status());
    model.mla = std::move(mla);
    return {};
}

} // namespace mla
