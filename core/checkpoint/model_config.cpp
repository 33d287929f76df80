// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/model_config.h"

#include <algorithm>
#include <limits>

#include "core/checkpoint/config_parts.h"
#include "core/checkpoint/import_config.h"
#include "core/checkpoint/quantization.h"

namespace mla
{

namespace
{

// Far above any real decoder; keeps a hostile config from asking for millions of tensor names.
constexpr int maximalLayers = 4096;

/// The family, by model_type and the class it was saved from.
Result<const Family*> familyOf(JsonReader& reader, const nlohmann::json& config,
                               const std::string& origin)
{
    reader.require("model_type");
    const std::string type = reader.text("model_type", {});
    MLA_CHECK(reader.status());
    const Family* family = familyNamed(type);
    if (!family)
        return badInput("model_type '" + type + "' is not supported", origin,
                        "supported: " + supportedFamilies());
    const std::string expected = family->architecture;
    if (!reader.has("architectures"))
        return family;
    const nlohmann::json& named = config.at("architectures");
    if (!named.is_array() ||
        !std::ranges::all_of(named, [](const auto& item) { return item.is_string(); }))
        return badInput("'architectures' must be a list of names", origin);
    for (const nlohmann::json& item : named)
        if (item.get<std::string>() != expected)
            return badInput("architecture '" + item.get<std::string>() +
                                "' is not supported for model_type '" + type + "'",
                            origin, "supported: " + expected);
    return family;
}

/// Keys that change what a model computes and that this program does not follow.
void refuseUnsupported(JsonReader& reader)
{
    if (const std::string act = reader.text("hidden_act", "silu"); act != "silu")
        reader.fail("hidden_act", "is '" + act + "', only silu is supported");
    for (const char* key : {"compression_config", "per_layer_config"})
        if (reader.has(key))
            reader.fail(key, "is set: compressed or per-layer checkpoints are not supported");
}

void readHeadDim(JsonReader& reader, const Family& family, ModelConfig& model)
{
    // A family with a number of its own for the absent key takes no null there.
    const std::optional<int> headDim = family.headDim ? reader.positive("head_dim", *family.headDim)
                                                      : reader.optionalInteger("head_dim", {}, 1);
    if (!headDim && model.hiddenSize % model.numAttentionHeads != 0)
        reader.fail("hidden_size", "is " + std::to_string(model.hiddenSize) +
                                       ", not a multiple of the " +
                                       std::to_string(model.numAttentionHeads) +
                                       " attention heads, and no head_dim is given");
    model.headDim = headDim.value_or(model.hiddenSize / model.numAttentionHeads);
    if (model.headDim % 2 != 0)
        reader.fail("head_dim",
                    "is " + std::to_string(model.headDim) + ", rotary embedding needs an even one");
}

void readSizes(JsonReader& reader, const Family& family, ModelConfig& model)
{
    model.vocabSize = reader.positive("vocab_size", family.vocabSize);
    model.hiddenSize = reader.positive("hidden_size", 4096);
    model.intermediateSize = reader.positive("intermediate_size", family.intermediateSize);
    model.numHiddenLayers = reader.positive("num_hidden_layers", 32);
    model.numAttentionHeads = reader.positive("num_attention_heads", 32);
    model.numKeyValueHeads =
        reader.optionalInteger("num_key_value_heads", family.numKeyValueHeads, 1)
            .value_or(model.numAttentionHeads);
    model.maxPositionEmbeddings =
        reader.positive("max_position_embeddings", family.maxPositionEmbeddings);
    model.rmsNormEps = reader.number("rms_norm_eps", 1e-6);
    if (model.rmsNormEps < 0)
        reader.fail("rms_norm_eps", "must not be negative");
    if (model.numHiddenLayers > maximalLayers)
        reader.fail("num_hidden_layers", "is " + std::to_string(model.numHiddenLayers) +
                                             ", at most " + std::to_string(maximalLayers) +
                                             " are supported");
    if (model.numAttentionHeads % model.numKeyValueHeads != 0)
        reader.fail("num_key_value_heads", "is " + std::to_string(model.numKeyValueHeads) +
                                               ", which does not divide the " +
                                               std::to_string(model.numAttentionHeads) +
                                               " attention heads");
    readHeadDim(reader, family, model);
}

void readBiases(JsonReader& reader, const Family& family, ModelConfig& model)
{
    using Biases = Family::Biases;
    const bool byKey =
        family.biases == Biases::QkvAlways ? false : reader.boolean("attention_bias", false);
    if (byKey && family.biases == Biases::None)
        reader.fail("attention_bias", "is true, which is not supported for this model_type");
    model.qkvBias = family.biases == Biases::QkvAlways || (byKey && family.biases == Biases::ByKey);
    model.outputBias = byKey;
    model.mlpBias = reader.boolean("mlp_bias", false);
    if (model.mlpBias && !family.mlpBias)
        reader.fail("mlp_bias", "is true, which is not supported for this model_type");
}

void readFlags(JsonReader& reader, const Family& family, ModelConfig& model)
{
    readBiases(reader, family, model);
    model.qkNorm = family.qkNorm;
    model.tieWordEmbeddings = reader.boolean("tie_word_embeddings", false);
    const std::string older = reader.text("torch_dtype", {});
    model.dtype = reader.text("dtype", older);
}

/// Negative ids stand for "none" in some configs.
std::vector<int> stopIds(JsonReader& reader, std::vector<int> fallback)
{
    std::vector<int> ids = reader.integers("eos_token_id", std::move(fallback), -1);
    std::erase_if(ids, [](int id) { return id < 0; });
    return ids;
}

void readTokenIds(JsonReader& reader, const Family& family, ModelConfig& model)
{
    model.bosTokenId = reader.optionalInteger("bos_token_id", family.bosTokenId, -1);
    if (model.bosTokenId && *model.bosTokenId < 0)
        model.bosTokenId.reset();
    if (model.bosTokenId && *model.bosTokenId >= model.vocabSize) {
        if (reader.has("bos_token_id"))
            reader.fail("bos_token_id", "is " + std::to_string(*model.bosTokenId) +
                                            ", outside the vocabulary of " +
                                            std::to_string(model.vocabSize));
        model.bosTokenId.reset();
    }
    const std::optional<int> stop = family.eosTokenId;
    model.eosTokenIds = stopIds(reader, stop ? std::vector<int>{*stop} : std::vector<int>());
}

} // namespace

std::int64_t ModelConfig::cacheElements(int layer) const
{
    if (mla)
        return std::int64_t{mla->latentRank.at(static_cast<std::size_t>(layer))} +
               std::int64_t{mla->ropeKeyHeads} * (mla->qkRopeHeadDim + (qkNorm ? 1 : 0));
    return std::int64_t{2} * numKeyValueHeads * headDim;
}

int ModelConfig::contextLength() const
{
    double length = maxPositionEmbeddings;
    if (rope.type == RopeType::Linear || rope.type == RopeType::Dynamic)
        length *= rope.factor;
    if (rope.type == RopeType::Yarn)
        length = rope.originalMaxPositionEmbeddings * rope.factor;
    constexpr double highest = std::numeric_limits<int>::max();
    return std::max(maxPositionEmbeddings, static_cast<int>(std::min(length, highest)));
}

Result<ModelConfig> parseModelConfig(const nlohmann::json& config, const std::string& origin)
{
    if (const DraftLayout layout = importedLayout(config); layout != DraftLayout::Own)
        return parseImported(layout, config, origin);
    JsonReader reader(config, origin);
    MLA_TRY(family, familyOf(reader, config, origin));
    ModelConfig model;
    model.modelType = family->modelType;
    refuseUnsupported(reader);
    readSizes(reader, *family, model);
    readFlags(reader, *family, model);
    readTokenIds(reader, *family, model);
    model.slidingWindow = readSlidingWindow(reader, config, family->windows, model.numHiddenLayers);
    MLA_CHECK(reader.status());
    MLA_TRY(quantization, parseQuantization(config, origin));
    if (quantization && model.modelType == mlaModelType)
        return badInput("'quantization_config' is not supported for an mla_draft", origin);
    MLA_TRY(rope, parseRope(config, model.maxPositionEmbeddings, origin));
    model.rope = rope;
    if (rope.type == RopeType::Dynamic && model.headDim <= 2)
        return badInput("'head_dim' is 2, dynamic rope needs more", origin);
    if (family->windows == Family::Windows::Draft)
        MLA_CHECK(parseMla(config, origin, model));
    return model;
}

Result<ModelConfig> readModelConfig(const std::filesystem::path& directory)
{
    std::error_code ignored;
    if (!std::filesystem::exists(directory, ignored))
        return badInput("no such directory", directory.string());
    if (!std::filesystem::is_directory(directory, ignored))
        return badInput("is not a directory", directory.string(),
                        "a Hugging Face model directory is expected");
    const std::filesystem::path file = directory / "config.json";
    if (!std::filesystem::exists(file, ignored))
        return badInput("config.json is missing", directory.string(),
                        "a Hugging Face model directory is expected");
    MLA_TRY(json, readJsonFile(file));
    MLA_TRY(model, parseModelConfig(json, file.string()));
    const std::filesystem::path generation = directory / "generation_config.json";
    if (std::filesystem::exists(generation, ignored)) {
        MLA_TRY(settings, readJsonFile(generation));
        JsonReader reader(settings, generation.string());
        if (reader.has("eos_token_id"))
            model.eosTokenIds = stopIds(reader, {});
        MLA_CHECK(reader.status());
    }
    return std::move(model);
}

} // namespace mla
