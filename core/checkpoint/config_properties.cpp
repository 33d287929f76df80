// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/config_properties.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>

namespace mla
{
namespace
{

class Properties
{
public:
    void add(std::string name, bool value) { put(std::move(name), value); }
    void add(std::string name, std::int64_t value) { put(std::move(name), value); }
    void add(std::string name, int value) { put(std::move(name), std::int64_t{value}); }
    void add(std::string name, double value) { put(std::move(name), value); }
    void add(std::string name, std::string value) { put(std::move(name), std::move(value)); }
    std::vector<ConfigProperty> take() { return std::move(m_list); }

private:
    template <typename T>
    void put(std::string name, T value)
    {
        m_list.push_back({std::move(name), std::move(value)});
    }
    std::vector<ConfigProperty> m_list;
};

void addSizes(Properties& list, const ModelConfig& config)
{
    list.add("model_type", config.modelType);
    list.add("num_hidden_layers", config.numHiddenLayers);
    list.add("hidden_size", config.hiddenSize);
    list.add("intermediate_size", config.intermediateSize);
    list.add("num_attention_heads", config.numAttentionHeads);
    list.add("num_key_value_heads", config.numKeyValueHeads);
    list.add("head_dim", config.headDim);
    list.add("vocab_size", config.vocabSize);
    list.add("max_position_embeddings", config.maxPositionEmbeddings);
    list.add("rms_norm_eps", config.rmsNormEps);
}

void addRope(Properties& list, const RopeConfig& rope)
{
    list.add("rope_type", ropeTypeText(rope.type));
    list.add("rope_theta", rope.theta);
    if (rope.type == RopeType::Default)
        return;
    list.add("rope_factor", rope.factor);
    if (rope.type == RopeType::Llama3) {
        list.add("low_freq_factor", rope.lowFreqFactor);
        list.add("high_freq_factor", rope.highFreqFactor);
    }
    if (rope.type == RopeType::Llama3 || rope.type == RopeType::Yarn)
        list.add("original_max_position_embeddings", rope.originalMaxPositionEmbeddings);
    if (rope.type != RopeType::Yarn)
        return;
    list.add("attention_factor", rope.attentionFactor);
    list.add("beta_fast", rope.betaFast);
    list.add("beta_slow", rope.betaSlow);
}

/// "4096 in layers 0-31", or "none".
std::string windowText(const ModelConfig& config)
{
    std::map<int, std::vector<int>> layers;
    for (int layer = 0; layer < config.numHiddenLayers; ++layer)
        if (const int window = config.window(layer); window > 0)
            layers[window].push_back(layer);
    std::string text;
    for (const auto& [window, of] : layers)
        text += (text.empty() ? "" : "; ") + std::to_string(window) + " tokens in layers " +
                rangesText(of);
    return text.empty() ? "none" : text;
}

void addAttention(Properties& list, const ModelConfig& config)
{
    list.add("qkv_bias", config.mla ? config.mla->queryBias : config.qkvBias);
    list.add("output_bias", config.outputBias);
    list.add("mlp_bias", config.mlpBias);
    list.add("qk_norm", config.qkNorm);
    list.add("sliding_window", windowText(config));
}

void addLatent(Properties& list, const MlaConfig& mla)
{
    list.add("converter", mla.converter);
    const auto [least, most] = std::ranges::minmax(mla.latentRank);
    if (least == most)
        list.add("kv_lora_rank", least);
    else
        list.add("kv_lora_rank", std::to_string(least) + " to " + std::to_string(most));
    list.add("qk_rope_head_dim", mla.qkRopeHeadDim);
    list.add("rope_key_heads", mla.ropeKeyHeads);
    list.add("qk_nope_head_dim", mla.qkNopeHeadDim);
    list.add("v_head_dim", mla.vHeadDim);
}

std::string idsText(const std::vector<int>& ids)
{
    std::string text;
    for (const int id : ids)
        text += (text.empty() ? "" : ", ") + std::to_string(id);
    return text.empty() ? "none" : text;
}

} // namespace

std::vector<ConfigProperty> configProperties(const ModelConfig& config)
{
    Properties list;
    addSizes(list, config);
    if (config.mla)
        addLatent(list, *config.mla);
    addRope(list, config.rope);
    addAttention(list, config);
    list.add("tie_word_embeddings", config.tieWordEmbeddings);
    list.add("dtype", config.dtype.empty() ? std::string("not named") : config.dtype);
    if (config.bosTokenId)
        list.add("bos_token_id", *config.bosTokenId);
    if (config.eosTokenIds.size() == 1)
        list.add("eos_token_id", config.eosTokenIds.front());
    else
        list.add("eos_token_id", idsText(config.eosTokenIds));
    return list.take();
}

std::string valueText(const ConfigProperty& property)
{
    if (const auto* flag = std::get_if<bool>(&property.value))
        return *flag ? "true" : "false";
    if (const auto* whole = std::get_if<std::int64_t>(&property.value))
        return std::to_string(*whole);
    if (const auto* word = std::get_if<std::string>(&property.value))
        return *word;
    // The shortest text that reads back the same; 100000 rather than 1e+05.
    const double number = std::get<double>(property.value), size = std::abs(number);
    const bool plain = size == 0 || (size >= 1e-4 && size < 1e15);
    std::array<char, 32> digits{};
    const auto end =
        std::to_chars(digits.data(), digits.data() + digits.size(), number,
                      plain ? std::chars_format::fixed : std::chars_format::scientific);
    return {digits.data(), end.ptr};
}

std::string ropeTypeText(RopeType type)
{
    switch (type) {
    case RopeType::Default:
        return "default";
    case RopeType::Linear:
        return "linear";
    case RopeType::Dynamic:
        return "dynamic";
    case RopeType::Llama3:
        return "llama3";
    case RopeType::Yarn:
        return "yarn";
    }
    return {};
}

std::string rangesText(const std::vector<int>& numbers)
{
    std::string text;
    for (std::size_t begin = 0; begin < numbers.size();) {
        std::size_t end = begin + 1;
        while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1)
            ++end;
        text += (text.empty() ? "" : ", ") + std::to_string(numbers[begin]);
        if (end - begin > 1)
            text += "-" + std::to_string(numbers[end - 1]);
        begin = end;
    }
    return text;
}

} // namespace mla
