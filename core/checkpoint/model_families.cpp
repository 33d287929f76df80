// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <array>

#include "core/checkpoint/config_parts.h"

namespace mla
{

namespace
{

constexpr const char* fullAttention = "full_attention";
constexpr const char* slidingAttention = "sliding_attention";
constexpr int defaultWindow = 4096;        // of mistral, qwen2 and qwen3
constexpr int defaultMaxWindowLayers = 28; // of qwen2 and qwen3

using Biases = Family::Biases;
using Windows = Family::Windows;

constexpr std::array families = {
    Family{.modelType = "llama",
           .architecture = "LlamaForCausalLM",
           .vocabSize = 32000,
           .intermediateSize = 11008,
           .maxPositionEmbeddings = 2048,
           .numKeyValueHeads = {},
           .headDim = {},
           .bosTokenId = 1,
           .eosTokenId = 2,
           .biases = Biases::ByKey,
           .windows = Windows::None,
           .mlpBias = true,
           .qkNorm = false},
    Family{.modelType = "mistral",
           .architecture = "MistralForCausalLM",
           .vocabSize = 32000,
           .intermediateSize = 14336,
           .maxPositionEmbeddings = 131072,
           .numKeyValueHeads = 8,
           .headDim = {},
           .bosTokenId = 1,
           .eosTokenId = 2,
           .biases = Biases::None,
           .windows = Windows::EveryLayer,
           .mlpBias = false,
           .qkNorm = false},
    Family{.modelType = "qwen2",
           .architecture = "Qwen2ForCausalLM",
           .vocabSize = 151936,
           .intermediateSize = 22016,
           .maxPositionEmbeddings = 32768,
           .numKeyValueHeads = 32,
           .headDim = {},
           .bosTokenId = {},
           .eosTokenId = {},
           .biases = Biases::QkvAlways,
           .windows = Windows::ByLayerType,
           .mlpBias = false,
           .qkNorm = false},
    Family{.modelType = "qwen3",
           .architecture = "Qwen3ForCausalLM",
           .vocabSize = 151936,
           .intermediateSize = 22016,
           .maxPositionEmbeddings = 32768,
           .numKeyValueHeads = 32,
           .headDim = 128,
           .bosTokenId = {},
           .eosTokenId = {},
           .biases = Biases::ByKey,
           .windows = Windows::ByLayerType,
           .mlpBias = false,
           .qkNorm = true},
    Family{.modelType = mlaModelType, // llama's defaults: a draft's config.json gives every key
           .architecture = mlaArchitecture,
           .vocabSize = 32000,
           .intermediateSize = 11008,
           .maxPositionEmbeddings = 2048,
           .numKeyValueHeads = {},
           .headDim = {},
           .bosTokenId = 1,
           .eosTokenId = 2,
           .biases = Biases::OutputByKey,
           .windows = Windows::Draft,
           .mlpBias = true,
           .qkNorm = false},
};

/// Whether each layer slides, from `layer_types`; `fallback` where the key is absent or null.
std::vector<bool> readLayerTypes(JsonReader& reader, const nlohmann::json& config,
                                 std::vector<bool> fallback)
{
    if (!reader.has("layer_types"))
        return fallback;
    const nlohmann::json& types = config.at("layer_types");
    if (!types.is_array() || types.size() != fallback.size()) {
        reader.fail("layer_types",
                    "must be a list of " + std::to_string(fallback.size()) + " names, one a layer");
        return fallback;
    }
    std::vector<bool> slides;
    for (const nlohmann::json& type : types) {
        if (type != fullAttention && type != slidingAttention)
            reader.fail("layer_types", "holds " + type.dump().substr(0, 80) + "; supported: " +
                                           fullAttention + ", " + slidingAttention);
        slides.push_back(type == slidingAttention);
    }
    return slides;
}

bool any(const std::vector<bool>& values)
{
    return std::ranges::find(values, true) != values.end();
}

/// Transformers' class masks nothing, yet its cache forgets what lies before the window.
void refuseWindow(JsonReader& reader, const nlohmann::json& config, std::size_t layers)
{
    if (reader.has("sliding_window") && reader.boolean("use_sliding_window", true))
        reader.fail("sliding_window", "is set, which is not supported for this model_type");
    if (any(readLayerTypes(reader, config, std::vector<bool>(layers))))
        reader.fail("layer_types", std::string("names ") + slidingAttention +
                                       ", which is not supported for this model_type");
}

/// One window for all layers. Layer types that say otherwise belong to another class.
int readOneWindow(JsonReader& reader, const nlohmann::json& config, std::size_t layers)
{
    const int window = reader.optionalInteger("sliding_window", defaultWindow, 1).value_or(0);
    const std::vector<bool> expected(layers, window > 0);
    if (readLayerTypes(reader, config, expected) != expected)
        reader.fail("layer_types", "disagrees with sliding_window, which holds for every layer");
    return window;
}

std::vector<int> readWindowsByType(JsonReader& reader, const nlohmann::json& config,
                                   std::size_t layers)
{
    int window = 0;
    if (reader.boolean("use_sliding_window", false))
        window = reader.optionalInteger("sliding_window", defaultWindow, 1).value_or(0);
    const auto full =
        static_cast<std::size_t>(reader.integer("max_window_layers", defaultMaxWindowLayers, 0));
    std::vector<bool> slides(layers);
    for (std::size_t i = full; window > 0 && i < layers; ++i)
        slides[i] = true;
    slides = readLayerTypes(reader, config, std::move(slides));
    if (any(slides) && window == 0)
        reader.fail("layer_types", std::string("names ") + slidingAttention +
                                       ", but use_sliding_window and sliding_window give none");
    std::vector<int> windows;
    for (const bool slide : slides)
        windows.push_back(slide ? window : 0);
    return any(slides) ? windows : std::vector<int>();
}

} // namespace

const Family* familyNamed(std::string_view modelType)
{
    const auto it = std::ranges::find_if(
        families, [&](const Family& family) { return family.modelType == modelType; });
    return it == families.end() ? nullptr : &*it;
}

std::string supportedFamilies()
{
    std::string names;
    for (const Family& family : families)
        names += (names.empty() ? "" : ", ") + std::string(family.modelType);
    return names;
}

std::vector<int> readSlidingWindow(JsonReader& reader, const nlohmann::json& config,
                                   Family::Windows windows, int layers)
{
    if (!reader.status()) // `layers` may be anything then
        return {};
    const auto count = static_cast<std::size_t>(layers);
    switch (windows) {
    case Windows::None:
        refuseWindow(reader, config, count);
        return {};
    case Windows::EveryLayer: {
        const int window = readOneWindow(reader, config, count);
        return window > 0 ? std::vector<int>(count, window) : std::vector<int>();
    }
    case Windows::ByLayerType:
        return readWindowsByType(reader, config, count);
    case Windows::Draft:
        break;
    }
    return {};
}

} // namespace mla
