// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/import_config.h"

#include <cmath>

#include "core/checkpoint/torch_file.h"

namespace mla
{

namespace
{

using nlohmann::json;
using Pairs = std::vector<std::vector<std::vector<int>>>; // [layer][rotary head][pair]

constexpr const char* transMlaType = "deepseek_v3";
constexpr const char* stockType = "deepseek_v2"; // what `export --layout deepseek` writes
constexpr const char* mha2MlaKey = "mha2mla";

/// Frequencies that change while a text grows cannot be cached in a rotary key.
Status refuseDynamic(const ModelConfig& model, const std::string& origin)
{
    if (model.rope.type == RopeType::Dynamic)
        return badInput("rope type 'dynamic' is not supported in an MLA draft", origin);
    return {};
}

/// The classes that TransMLA's attention was put into, or the stock class of our export; a mixture
/// of experts is none of them.
void checkTransMlaModel(JsonReader& reader, const json& config, bool stock)
{
    for (const char* key : {"num_hidden_layers", "num_attention_heads", "kv_lora_rank",
                            "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim"})
        reader.require(key);
    const int layers = reader.positive("num_hidden_layers", 1);
    const int experts = reader.optionalInteger("n_routed_experts", 0, 0).value_or(0);
    if (experts > 0 &&
        reader.optionalInteger("first_k_dense_replace", stock ? 0 : 3, 0).value_or(layers) < layers)
        reader.fail("n_routed_experts",
                    "is " + std::to_string(experts) + ": a mixture of experts is not supported");
    if (!reader.boolean("rope_interleave", true))
        reader.fail("rope_interleave", "is false: TransMLA's rotary rows are interleaved");
    const json known = stock ? json{"DeepseekV2ForCausalLM"}
                             : json{"LlamaMLAForCausalLM", "DeepseekV3ForCausalLM"};
    const json& named = reader.has("architectures") ? config.at("architectures") : json::array();
    for (const json& item : named)
        if (std::ranges::find(known, item) == known.end())
            reader.fail("architectures",
                        "names " + item.dump().substr(0, 80) + "; supported for model_type '" +
                            (stock ? stockType : transMlaType) + "': " + known.dump());
}

/// Source head width whose every n-th frequency gives those of a rotary head: the nope part, as
/// TransMLA makes it, or else (stock only) the rotary head's own.
int sourceHeadDim(const json& config, bool stock)
{
    const int nope = config.at("qk_nope_head_dim").get<int>();
    const int rotary = config.at("qk_rope_head_dim").get<int>();
    return stock && rotary > 0 && nope % rotary != 0 ? rotary : nope;
}

/// The rest of the model is a Llama with heads of that width.
json asLlama(json config, int headDim)
{
    for (const char* key : {"attention_bias", "sliding_window", "use_sliding_window", "layer_types",
                            "max_window_layers", mha2MlaKey})
        config.erase(key);
    config["model_type"] = "llama";
    config["architectures"] = {"LlamaForCausalLM"};
    config["head_dim"] = headDim;
    config["num_key_value_heads"] = config.at("num_attention_heads");
    return config;
}

Result<ModelConfig> parseTransMla(const json& config, const std::string& origin)
{
    JsonReader reader(config, origin);
    const bool stock = config.at("model_type") == stockType;
    checkTransMlaModel(reader, config, stock);
    const int nope = reader.integer("qk_nope_head_dim", 1, 1);
    (void)reader.integer("qk_rope_head_dim", 2, 2);
    MLA_CHECK(reader.status());
    MLA_TRY(model, parseModelConfig(asLlama(config, sourceHeadDim(config, stock)), origin));
    MLA_CHECK(refuseDynamic(model, origin));
    model.modelType = stock ? stockType : transMlaType;
    MlaConfig mla;
    mla.layout = DraftLayout::TransMla;
    mla.converter = "transmla";
    mla.latentRank.assign(static_cast<std::size_t>(model.numHiddenLayers),
                          reader.positive("kv_lora_rank", 1));
    mla.queryRank = reader.optionalInteger("q_lora_rank", {}, 1).value_or(0);
    mla.qkRopeHeadDim = reader.integer("qk_rope_head_dim", 2, 2);
    mla.qkNopeHeadDim = nope;
    mla.vHeadDim = reader.positive("v_head_dim", 1);
    mla.ropeKeyHeads = 1;
    mla.kvUpHeads = model.numAttentionHeads;
    mla.latentNorm = stock || reader.boolean("qk_latent_layernorm", true);
    mla.queryBias = mla.kvDownBias = reader.boolean("attention_bias", false);
    if (mla.queryRank > 0 && mla.latentNorm)
        reader.fail("q_lora_rank", "is set together with qk_latent_layernorm: a norm between the "
                                   "two query projections is not supported");
    if (model.rope.type == RopeType::Yarn)
        reader.fail("rope_scaling", "is yarn, whose frequencies TransMLA takes from the width of "
                                    "the rotary head: not supported in its drafts");
    if (mla.qkRopeHeadDim % 2 != 0 || model.headDim % mla.qkRopeHeadDim != 0) {
        reader.fail("qk_rope_head_dim",
                    "must be even and divide qk_nope_head_dim " + std::to_string(model.headDim));
        return reader.status().error();
    }
    MLA_CHECK(reader.status());
    mla.attentionScale = 1 / std::sqrt(static_cast<double>(mla.qkNopeHeadDim + mla.qkRopeHeadDim));
    std::vector<int> pairs; // theta^(-2 i / d_r): every (h / d_r)-th of a head's
    for (int i = 0; i < mla.qkRopeHeadDim / 2; ++i)
        pairs.push_back(i * (model.headDim / mla.qkRopeHeadDim));
    mla.ropePairs.assign(static_cast<std::size_t>(model.numHiddenLayers), {pairs});
    model.mla = std::move(mla);
    return std::move(model);
}

/// The same `count` pairs in every head: `start`, start + step, ...
Pairs everywhere(const ModelConfig& model, int count, int start, int step)
{
    std::vector<int> pairs;
    for (int i = 0; i < count; ++i)
        pairs.push_back(start + i * step);
    const std::vector<std::vector<int>> heads(static_cast<std::size_t>(model.numKeyValueHeads),
                                              pairs);
    return Pairs(static_cast<std::size_t>(model.numHiddenLayers), heads);
}

/// Ranks [layers, KV heads, head_dim] of each dim's frequency: those below `count` stay rotary.
Result<Pairs> rankedPairs(const std::filesystem::path& path, const ModelConfig& model, int count)
{
    MLA_TRY(ranks, readTorchIntegers(path));
    const std::vector<std::int64_t> shape = {model.numHiddenLayers, model.numKeyValueHeads,
                                             model.headDim};
    if (ranks.shape != shape)
        return badInput("holds ranks of another shape; [num_hidden_layers, num_key_value_heads, "
                        "head_dim] is expected",
                        path.string());
    Pairs all;
    std::size_t at = 0;
    for (int layer = 0; layer < model.numHiddenLayers; ++layer) {
        all.emplace_back();
        for (int head = 0; head < model.numKeyValueHeads; ++head, at += shape[2]) {
            std::vector<int> kept;
            for (int pair = 0; pair < model.headDim / 2; ++pair) {
                const bool first = ranks.values[at + static_cast<std::size_t>(pair)] < count;
                const std::size_t other = at + static_cast<std::size_t>(pair + model.headDim / 2);
                if (first != (ranks.values[other] < count))
                    return badInput("ranks the two dims of a frequency differently", path.string());
                if (first)
                    kept.push_back(pair);
            }
            if (kept.size() != static_cast<std::size_t>(count))
                return badInput("does not rank " + std::to_string(count) +
                                    " frequencies of every head first",
                                path.string());
            all.back().push_back(std::move(kept));
        }
    }
    return all;
}

/// Which pairs stayed rotary, by partial_rope_version.
Result<Pairs> selectedPairs(JsonReader& reader, const ModelConfig& model, int ropeDim,
                            const std::string& origin)
{
    const int half = model.headDim / 2, count = ropeDim / 2;
    const std::string version = reader.text("partial_rope_version", "high");
    if (version == "high")
        return everywhere(model, count, 0, 1);
    if (version == "low")
        return everywhere(model, count, half - count, 1);
    if (version == "uniform") {
        const int step = model.headDim / ropeDim;
        const int start = reader.integer("uniform_start_point", 0, 0);
        if (half % step != 0 || half / step != count || start >= step)
            reader.fail("uniform_start_point", "and rope_dim_for_mla do not select " +
                                                   std::to_string(count) +
                                                   " frequencies of every head");
        MLA_CHECK(reader.status());
        return everywhere(model, count, start, step);
    }
    if (version != "2-norm") {
        reader.fail("partial_rope_version",
                    "is '" + version + "'; supported: high, low, uniform, 2-norm");
        return reader.status().error();
    }
    reader.require("qk_tensor_path");
    const std::filesystem::path named = reader.text("qk_tensor_path", {});
    MLA_CHECK(reader.status());
    const std::filesystem::path beside =
        std::filesystem::path(origin).parent_path() / named.filename();
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(beside, ignored))
        return badInput("'mha2mla.qk_tensor_path' names " + named.filename().string() +
                            ", which is not there: without it the rotary dims of this draft are "
                            "unknown",
                        std::filesystem::path(origin).parent_path().string(),
                        "copy the file of the 2-norm ranks beside config.json");
    return rankedPairs(beside, model, count);
}

/// The arguments that name another kind of model than the converted one.
void checkMha2MlaArguments(JsonReader& reader, const ModelConfig& model)
{
    for (const char* key : {"rope_dim_for_mla", "low_rank", "svd_init_method"})
        reader.require(key);
    if (reader.boolean("is_gqa2mha2mla", false))
        reader.fail("is_gqa2mha2mla", "is true, which is not supported");
    const std::string svd = reader.text("svd_init_method", "joint");
    if (svd != "joint" && svd != "split")
        reader.fail("svd_init_method", "is '" + svd +
                                           "', which keeps no latent of both keys and "
                                           "values; supported: joint, split");
    if (model.qkNorm)
        reader.fail("partial_rope_version", "of a model with QK-norm is not supported: MHA2MLA "
                                            "normalises after the rotation");
    const int ropeDim = reader.integer("rope_dim_for_mla", 2, 2);
    if (ropeDim % 2 != 0 || ropeDim > model.headDim)
        reader.fail("rope_dim_for_mla",
                    "must be even and at most head_dim " + std::to_string(model.headDim));
    if (reader.positive("low_rank", 1) > model.hiddenSize)
        reader.fail("low_rank", "must be at most hidden_size " + std::to_string(model.hiddenSize));
}

Result<ModelConfig> parseMha2Mla(const json& config, const std::string& origin)
{
    json source = config;
    source.erase(mha2MlaKey);
    MLA_TRY(model, parseModelConfig(source, origin));
    if (model.isMla())
        return badInput("'mha2mla' stands in the config of an MLA draft", origin);
    MLA_CHECK(refuseDynamic(model, origin));
    JsonReader reader(config.at(mha2MlaKey), origin, mha2MlaKey);
    checkMha2MlaArguments(reader, model);
    MLA_CHECK(reader.status());
    MlaConfig mla;
    mla.layout = DraftLayout::Mha2Mla;
    mla.converter = "mha2mla";
    mla.qkRopeHeadDim = reader.integer("rope_dim_for_mla", 2, 2);
    mla.qkNopeHeadDim = model.headDim - mla.qkRopeHeadDim;
    mla.vHeadDim = model.headDim;
    mla.ropeKeyHeads = mla.kvUpHeads = model.numKeyValueHeads;
    mla.splitLatent = reader.text("svd_init_method", {}) == "split";
    const int rank = reader.positive("low_rank", 1) * model.numKeyValueHeads;
    mla.latentRank.assign(static_cast<std::size_t>(model.numHiddenLayers),
                          mla.splitLatent ? 2 * rank : rank);
    mla.attentionScale = 1 / std::sqrt(static_cast<double>(model.headDim));
    mla.queryBias = mla.kvDownBias = mla.kvUpBias = model.qkvBias;
    model.qkvBias = false;
    MLA_TRY(pairs, selectedPairs(reader, model, mla.qkRopeHeadDim, origin));
    mla.ropePairs = std::move(pairs);
    MLA_CHECK(reader.status());
    model.mla = std::move(mla);
    return std::move(model);
}

} // namespace

DraftLayout importedLayout(const json& config)
{
    if (!config.is_object())
        return DraftLayout::Own;
    if (const auto type = config.find("model_type");
        type != config.end() && (*type == transMlaType || *type == stockType))
        return DraftLayout::TransMla;
    const auto arguments = config.find(mha2MlaKey);
    if (arguments == config.end() || !arguments->is_object() ||
        arguments->value("is_baseline", json()) == true)
        return DraftLayout::Own;
    return DraftLayout::Mha2Mla;
}

Result<ModelConfig> parseImported(DraftLayout layout, const json& config, const std::string& origin)
{
    return layout == DraftLayout::TransMla ? parseTransMla(config, origin)
                                           : parseMha2Mla(config, origin);
}

} // namespace mla
