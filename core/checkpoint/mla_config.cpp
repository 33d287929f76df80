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

constexpr const char* kSliding = "sliding_attention";
constexpr const char* kFull = "full_attention";

/// sliding_window holds in the layers that layer_types names so.
std::vector<int> readWindows(JsonReader& reader, const nlohmann::json& config, int layers)
{
    const int window = reader.optionalInteger("sliding_window", {}, 1).value_or(0);
    if (window == 0)
        return {};
    reader.require("layer_types");
    if (!reader.status())
        return {};
    const nlohmann::json& types = config.at("layer_types");
    std::vector<int> windows;
    for (const nlohmann::json& type : types)
        if (type == kSliding || type == kFull)
            windows.push_back(type == kSliding ? window : 0);
    if (!types.is_array() || types.size() != static_cast<std::size_t>(layers) ||
        windows.size() != types.size())
        reader.fail("layer_types", "must list '" + std::string(kSliding) + "' or '" + kFull +
                                       "' for each of the " + std::to_string(layers) + " layers");
    return windows;
}

/// The keys of Transformers: one window, and where it holds.
void writeWindows(const std::vector<int>& windows, nlohmann::json& config)
{
    for (const char* key : {"use_sliding_window", "max_window_layers", "layer_types"})
        config.erase(key);
    config["sliding_window"] = nullptr;
    if (windows.empty())
        return;
    config["sliding_window"] = std::ranges::max(windows);
    nlohmann::json types = nlohmann::json::array();
    for (const int window : windows)
        types.push_back(window > 0 ? kSliding : kFull);
    config["layer_types"] = std::move(types);
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
    mla.latentNorm = reader.boolean("latent_norm", false);
    mla.latentNormEps = reader.number("latent_norm_eps", mla.latentNormEps);
    model.qkNorm = reader.boolean("qk_norm", false);
    model.slidingWindow = readWindows(reader, config, model.numHiddenLayers);
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
    if (mla.latentNormEps < 0)
        reader.fail("latent_norm_eps", "must not be negative");
    if (model.qkNorm && mla.kvUpHeads != mla.ropeKeyHeads)
        reader.fail("qk_norm", "needs as many rope_key_heads as kv_up_heads");
    if (model.rope.type == RopeType::Dynamic)
        reader.fail("rope_parameters", "have the type 'dynamic', which an MLA draft cannot have");
    readRopePairs(reader, config, model, mla);
    MLA_CHECK(reader.status());
    model.mla = std::move(mla);
    return {};
}

nlohmann::json mlaConfigToJson(const ModelConfig& config, nlohmann::json base)
{
    const MlaConfig& mla = *config.mla;
    for (const char* key : {"_name_or_path", "quantization_config", "partial_rotary_factor",
                            "kv_lora_rank", "q_lora_rank", "qk_latent_layernorm", "qk_head_dim",
                            "mha2mla"}) // the last ones are other tools'
        base.erase(key);
    base["model_type"] = mlaModelType;
    base["architectures"] = {mlaArchitecture};
    base["auto_map"] = {{"AutoConfig", "configuration_mla_draft.MlaDraftConfig"},
                        {"AutoModel", "modeling_mla_draft.MlaDraftModel"},
                        {"AutoModelForCausalLM", "modeling_mla_draft.MlaDraftForCausalLM"}};
    base["vocab_size"] = config.vocabSize;
    base["hidden_size"] = config.hiddenSize;
    base["intermediate_size"] = config.intermediateSize;
    base["num_hidden_layers"] = config.numHiddenLayers;
    base["num_attention_heads"] = config.numAttentionHeads;
    base["num_key_value_heads"] = config.numAttentionHeads;
    base["original_num_key_value_heads"] = config.numKeyValueHeads;
    base["head_dim"] = mla.qkNopeHeadDim + mla.qkRopeHeadDim;
    base["original_head_dim"] = config.headDim;
    base["max_position_embeddings"] = config.maxPositionEmbeddings;
    base["rms_norm_eps"] = config.rmsNormEps;
    base["hidden_act"] = "silu";
    base["attention_bias"] = config.outputBias;
    base["mlp_bias"] = config.mlpBias;
    base["tie_word_embeddings"] = config.tieWordEmbeddings;
    writeWindows(config.slidingWindow, base);
    writeRope(config.rope, base);
    for (const char* key : {"dtype", "torch_dtype"})
        base[key] = config.dtype.empty() ? nlohmann::json() : nlohmann::json(config.dtype);
    base["bos_token_id"] =
        config.bosTokenId ? nlohmann::json(*config.bosTokenId) : nlohmann::json();
    const std::vector<int>& eos = config.eosTokenIds;
    base["eos_token_id"] = eos.empty()       ? nlohmann::json()
                           : eos.size() == 1 ? nlohmann::json(eos.front())
                                             : nlohmann::json(eos);

    const bool uniform = std::ranges::all_of(
        mla.latentRank, [&](int rank) { return rank == mla.latentRank.front(); });
    base["converter"] = mla.converter;
    base["latent_rank"] =
        uniform ? nlohmann::json(mla.latentRank.front()) : nlohmann::json(mla.latentRank);
    base["qk_rope_head_dim"] = mla.qkRopeHeadDim;
    base["qk_nope_head_dim"] = mla.qkNopeHeadDim;
    base["v_head_dim"] = mla.vHeadDim;
    base["rope_key_heads"] = mla.ropeKeyHeads;
    base["kv_up_heads"] = mla.kvUpHeads;
    base["attention_scale"] = mla.attentionScale;
    base["rope_pairs"] = mla.ropePairs;
    base["query_bias"] = mla.queryBias;
    base["kv_down_bias"] = mla.kvDownBias;
    base["kv_up_bias"] = mla.kvUpBias;
    base["qk_norm"] = config.qkNorm;
    base["latent_norm"] = mla.latentNorm;
    base["latent_norm_eps"] = mla.latentNormEps;
    return base;
}

} // namespace mla
