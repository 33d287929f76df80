// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/gguf_config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numbers>
#include <utility>

#include <nlohmann/json.hpp>

namespace mla
{

namespace
{

using nlohmann::json;

/// A number that was stored in fp32, as the shortest decimal stands for it: 1e-5, not 9.9999997e-6.
double tidy(double number)
{
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, static_cast<float>(number)).ptr;
    double value = number;
    std::from_chars(text, end, value);
    return value;
}

/// Reads one architecture's keys into a config.json. The first problem is kept.
class ConfigBuilder
{
public:
    ConfigBuilder(const GgufFile& file, std::string architecture)
        : m_file(file), m_metadata(file.metadata()), m_prefix(std::move(architecture))
    {
    }
    Result<json> build();

private:
    [[nodiscard]] std::string key(const std::string& name) const { return m_prefix + "." + name; }
    [[nodiscard]] Error problem(const std::string& name, const std::string& what) const
    {
        return badInput("metadata key '" + name + "' " + what, m_file.path().string());
    }
    /// A count that some files give once and others for each layer; the layers must agree.
    Result<std::int64_t> count(const std::string& name) const;
    Status sizes();
    Status headSizes();
    Status refuseUnsupported() const;
    Status rope();
    Result<json> scaling(double theta);
    Result<json> yarn(double factor, json parameters) const;
    Result<std::optional<json>> fromFactors() const;
    Status tokenIds();
    void flags();

    const GgufFile& m_file;
    const GgufMetadata& m_metadata;
    std::string m_prefix;
    json m_config = json::object();
};

Result<std::int64_t> ConfigBuilder::count(const std::string& name) const
{
    const auto it = m_metadata.values().find(key(name));
    if (it == m_metadata.values().end() || !it->second.isArray)
        return m_metadata.integer(key(name));
    MLA_TRY(all, m_metadata.integers(key(name)));
    if (all.empty() || std::ranges::any_of(all, [&](auto value) { return value != all.front(); }))
        return problem(key(name), "differs from layer to layer, which is not supported");
    return all.front();
}

Status ConfigBuilder::sizes()
{
    constexpr std::array<std::pair<const char*, const char*>, 5> sizes = {
        {{"hidden_size", "embedding_length"},
         {"intermediate_size", "feed_forward_length"},
         {"num_hidden_layers", "block_count"},
         {"num_attention_heads", "attention.head_count"},
         {"max_position_embeddings", "context_length"}}};
    for (const auto& [name, stored] : sizes) {
        MLA_TRY(value, count(stored));
        m_config[name] = value;
    }
    m_config["num_key_value_heads"] = m_config["num_attention_heads"];
    if (m_metadata.has(key("attention.head_count_kv"))) {
        MLA_TRY(groups, count("attention.head_count_kv"));
        m_config["num_key_value_heads"] = groups;
    }
    MLA_TRY(epsilon, m_metadata.number(key("attention.layer_norm_rms_epsilon")));
    m_config["rms_norm_eps"] = tidy(epsilon);
    const auto embedding = m_file.tensors().find("token_embd.weight");
    const std::int64_t rows =
        embedding == m_file.tensors().end() ? 0 : embedding->second.shape.front();
    MLA_TRY(vocabulary, m_metadata.integer(key("vocab_size"), rows));
    m_config["vocab_size"] = vocabulary;
    return headSizes();
}

Status ConfigBuilder::headSizes()
{
    const std::int64_t hidden = m_config["hidden_size"], heads = m_config["num_attention_heads"];
    if (heads <= 0)
        return problem(key("attention.head_count"), "must be positive");
    MLA_TRY(keyLength, m_metadata.integer(key("attention.key_length"), hidden / heads));
    MLA_TRY(valueLength, m_metadata.integer(key("attention.value_length"), keyLength));
    MLA_TRY(rotary, m_metadata.integer(key("rope.dimension_count"), keyLength));
    if (keyLength < 2)
        return problem(key("attention.head_count"), "leaves heads of " + std::to_string(keyLength) +
                                                        " numbers, rotary embedding needs pairs");
    if (valueLength != keyLength)
        return problem(key("attention.value_length"), "is " + std::to_string(valueLength) +
                                                          ", heads of keys and values must have "
                                                          "one size, here " +
                                                          std::to_string(keyLength));
    if (rotary != keyLength)
        return problem(key("rope.dimension_count"),
                       "is " + std::to_string(rotary) + ", only whole heads of " +
                           std::to_string(keyLength) + " are supported");
    m_config["head_dim"] = keyLength;
    return {};
}

Status ConfigBuilder::refuseUnsupported() const
{
    // Keys that change what the model computes, with the value that changes nothing.
    constexpr std::array<std::pair<const char*, double>, 8> neutral = {
        {{"expert_count", 0},
         {"attention.sliding_window", 0},
         {"attention.scale", 0},
         {"attention.clamp_kqv", 0},
         {"logit_scale", 0},
         {"embedding_scale", 0},
         {"residual_scale", 0},
         {"rope.scaling.yarn_ext_factor", 1}}};
    for (const auto& [name, nothing] : neutral) {
        MLA_TRY(value, m_metadata.number(key(name), nothing));
        if (value != nothing)
            return problem(key(name), "is " + json(value).dump() + ", which is not supported");
    }
    MLA_TRY(parts, m_metadata.integer("split.count", 0));
    if (parts > 1)
        return problem("split.count", "is " + std::to_string(parts) +
                                          ": a model in several files is not supported, merge "
                                          "them first");
    return {};
}

/// llama3's divisor of frequency `pair`, as llama.cpp's converter stores it.
double llama3Divisor(double theta, std::int64_t pair, std::int64_t headDim, double factor,
                     double original)
{
    constexpr double lowTurns = 1, highTurns = 4;
    const double frequency =
        std::pow(theta, -2.0 * static_cast<double>(pair) / static_cast<double>(headDim));
    const double turns = original * frequency / (2 * std::numbers::pi);
    if (turns > highTurns)
        return 1;
    if (turns < lowTurns)
        return factor;
    const double smooth = (turns - lowTurns) / (highTurns - lowTurns);
    return 1 / ((1 - smooth) / factor + smooth);
}

/// Parameters from stored divisors: nothing when there are none or all are 1.
Result<std::optional<json>> ConfigBuilder::fromFactors() const
{
    const auto it = m_file.tensors().find(ropeFactorsName);
    if (it == m_file.tensors().end())
        return std::optional<json>();
    const std::int64_t headDim = m_config["head_dim"];
    const auto failed = [&](const std::string& what) {
        return badInput(std::string("tensor '") + ropeFactorsName + "' " + what,
                        m_file.path().string());
    };
    if (it->second.type != GgmlType::F32 ||
        it->second.shape != std::vector<std::int64_t>{headDim / 2})
        return failed("must be F32 of shape [" + std::to_string(headDim / 2) + "]");
    std::vector<float> divisors(static_cast<std::size_t>(headDim / 2));
    MLA_TRY(bytes, m_file.bytes(ropeFactorsName));
    decodeGgml(GgmlType::F32, bytes, divisors);
    const float largest = *std::ranges::max_element(divisors);
    if (std::ranges::all_of(divisors, [](float divisor) { return divisor == 1; }))
        return std::optional<json>();
    // The file keeps the divisors but not the parameters. Those of the published models are 1 and 4
    // turns; the original context is a power of two.
    const double theta = m_config["rope_theta"];
    constexpr double tolerance = 1e-5; // the converter computes in fp32
    std::vector<int> originals = {8192};
    for (int length = 16; length <= 1 << 20; length *= 2)
        originals.push_back(length);
    for (const int original : originals) {
        bool equal = largest > 1;
        for (std::int64_t pair = 0; pair < headDim / 2 && equal; ++pair) {
            const double expected = llama3Divisor(theta, pair, headDim, largest, original);
            equal = std::abs(divisors[static_cast<std::size_t>(pair)] - expected) <=
                    tolerance * expected;
        }
        if (equal)
            return std::optional(json{{"rope_type", "llama3"},
                                      {"factor", tidy(largest)},
                                      {"low_freq_factor", 1.0},
                                      {"high_freq_factor", 4.0},
                                      {"original_max_position_embeddings", original}});
    }
    return failed("holds divisors of the rope frequencies that are not those of llama3 scaling "
                  "with 1 and 4 turns, which is not supported");
}

Result<json> ConfigBuilder::yarn(double factor, json parameters) const
{
    parameters["original_max_position_embeddings"] = m_config["max_position_embeddings"];
    if (m_metadata.has(key("rope.scaling.original_context_length"))) {
        MLA_TRY(original, m_metadata.integer(key("rope.scaling.original_context_length")));
        parameters["original_max_position_embeddings"] = original;
    }
    MLA_TRY(fast, m_metadata.number(key("rope.scaling.yarn_beta_fast"), 32));
    MLA_TRY(slow, m_metadata.number(key("rope.scaling.yarn_beta_slow"), 1));
    parameters["beta_fast"] = tidy(fast);
    parameters["beta_slow"] = tidy(slow);
    // llama.cpp multiplies YaRN's own amplitude by the stored factor.
    MLA_TRY(older, m_metadata.number(key("rope.scaling.attn_factor"), 1));
    MLA_TRY(amplitude, m_metadata.number(key("rope.scaling.yarn_attn_factor"), older));
    if (amplitude != 1)
        parameters["attention_factor"] =
            tidy(amplitude) * (factor > 1 ? 0.1 * std::log(factor) + 1 : 1);
    return parameters;
}

Result<json> ConfigBuilder::scaling(double theta)
{
    MLA_TRY(type, m_metadata.text(key("rope.scaling.type"), "none"));
    // Before there was a type, a factor alone meant linear scaling.
    MLA_TRY(older, m_metadata.number(key("rope.scale_linear"), 1));
    MLA_TRY(factor, m_metadata.number(key("rope.scaling.factor"), older));
    if (type == "none" && !m_metadata.has(key("rope.scaling.type")) && factor != 1)
        type = "linear";
    MLA_TRY(divisors, fromFactors());
    json parameters = {{"rope_type", "default"}, {"rope_theta", theta}};
    if (divisors) {
        if (type != "none")
            return problem(key("rope.scaling.type"),
                           "is '" + type + "' beside tensor '" + ropeFactorsName + "'");
        parameters.update(*divisors);
        return parameters;
    }
    if (type == "none")
        return parameters;
    if (type != "linear" && type != "yarn")
        return badInput("rope type '" + type + "' in metadata key '" + key("rope.scaling.type") +
                            "' is not supported",
                        m_file.path().string(), "supported: none, linear, yarn");
    parameters["rope_type"] = type;
    parameters["factor"] = tidy(factor);
    return type == "yarn" ? yarn(tidy(factor), std::move(parameters)) : Result<json>(parameters);
}

Status ConfigBuilder::rope()
{
    MLA_TRY(theta, m_metadata.number(key("rope.freq_base"), 10000));
    m_config["rope_theta"] = tidy(theta);
    MLA_TRY(parameters, scaling(tidy(theta)));
    m_config["rope_parameters"] = parameters;
    return {};
}

Status ConfigBuilder::tokenIds()
{
    m_config["bos_token_id"] = nullptr;
    m_config["eos_token_id"] = nullptr;
    if (const std::string name = "tokenizer.ggml.bos_token_id"; m_metadata.has(name)) {
        MLA_TRY(id, m_metadata.integer(name));
        m_config["bos_token_id"] = id;
    }
    json stops = json::array();
    for (const char* name : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"})
        if (m_metadata.has(name)) {
            MLA_TRY(id, m_metadata.integer(name));
            if (std::ranges::find(stops, json(id)) == stops.end())
                stops.push_back(id);
        }
    if (!stops.empty())
        m_config["eos_token_id"] = stops.size() == 1 ? stops.front() : stops;
    return {};
}

void ConfigBuilder::flags()
{
    const auto has = [&](const char* name) { return m_file.tensors().contains(name); };
    m_config["tie_word_embeddings"] = !has("output.weight");
    m_config["hidden_act"] = "silu";
    m_config["dtype"] = "float32"; // what the weights are decoded to
    if (m_prefix != "llama")
        return;
    m_config["attention_bias"] = has("blk.0.attn_q.bias");
    m_config["mlp_bias"] = has("blk.0.ffn_gate.bias");
}

Result<json> ConfigBuilder::build()
{
    m_config["model_type"] = m_prefix;
    m_config["architectures"] = {m_prefix == "llama"   ? "LlamaForCausalLM"
                                 : m_prefix == "qwen2" ? "Qwen2ForCausalLM"
                                                       : "Qwen3ForCausalLM"};
    MLA_CHECK(refuseUnsupported());
    MLA_CHECK(sizes());
    MLA_CHECK(rope());
    MLA_CHECK(tokenIds());
    flags();
    return m_config;
}

} // namespace

Result<json> ggufConfig(const GgufFile& file)
{
    MLA_TRY(architecture, file.metadata().text("general.architecture"));
    if (architecture != "llama" && architecture != "qwen2" && architecture != "qwen3")
        return badInput("architecture '" + architecture + "' is not supported in GGUF files",
                        file.path().string(), "supported: llama, qwen2, qwen3");
    return ConfigBuilder(file, architecture).build();
}

std::string hfTensorName(const std::string& ggufName)
{
    constexpr std::array<std::pair<const char*, const char*>, 3> ends = {
        {{"token_embd.weight", "model.embed_tokens.weight"},
         {"output_norm.weight", "model.norm.weight"},
         {"output.weight", "lm_head.weight"}}};
    for (const auto& [gguf, hf] : ends)
        if (ggufName == gguf)
            return hf;
    constexpr std::array<std::pair<const char*, const char*>, 11> modules = {
        {{"attn_norm", "input_layernorm"},
         {"attn_q", "self_attn.q_proj"},
         {"attn_k", "self_attn.k_proj"},
         {"attn_v", "self_attn.v_proj"},
         {"attn_output", "self_attn.o_proj"},
         {"attn_q_norm", "self_attn.q_norm"},
         {"attn_k_norm", "self_attn.k_norm"},
         {"ffn_norm", "post_attention_layernorm"},
         {"ffn_gate", "mlp.gate_proj"},
         {"ffn_up", "mlp.up_proj"},
         {"ffn_down", "mlp.down_proj"}}};
    // blk.LAYER.MODULE.KIND
    const std::size_t layerEnd = ggufName.find('.', 4), kind = ggufName.rfind('.');
    if (!ggufName.starts_with("blk.") || layerEnd == std::string::npos || kind <= layerEnd)
        return ggufName;
    const std::string module = ggufName.substr(layerEnd + 1, kind - layerEnd - 1);
    for (const auto& [gguf, hf] : modules)
        if (module == gguf)
            return "model.layers." + ggufName.substr(4, layerEnd - 4) + "." + hf +
                   ggufName.substr(kind);
    return ggufName;
}

} // namespace mla
