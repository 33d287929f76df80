// SPDX-License-Identifier: GPL-3.0-or-later
// config.json of TOY, the smallest Llama that has everything, and changes to it.
#pragma once

#include <string>

#include "core/checkpoint/model_config.h"
#include <nlohmann/json.hpp>

namespace mla::test
{

using nlohmann::json;

inline json toy()
{
    return {{"architectures", {"LlamaForCausalLM"}},
            {"model_type", "llama"},
            {"hidden_size", 64},
            {"intermediate_size", 128},
            {"num_hidden_layers", 2},
            {"num_attention_heads", 4},
            {"num_key_value_heads", 2},
            {"vocab_size", 256},
            {"rms_norm_eps", 1e-5},
            {"rope_theta", 10000.0}};
}

inline json with(json base, const json& changes)
{
    base.update(changes);
    return base;
}

/// TOY as another family.
inline json family(const std::string& modelType, const json& changes)
{
    json config = with(toy(), {{"model_type", modelType}});
    config.erase("architectures");
    return with(std::move(config), changes);
}

inline json llama3Scaling()
{
    return {{"rope_type", "llama3"},
            {"factor", 32.0},
            {"low_freq_factor", 1.0},
            {"high_freq_factor", 4.0},
            {"original_max_position_embeddings", 8192}};
}

inline ModelConfig parsed(const json& config)
{
    return parseModelConfig(config, "config.json").value();
}

} // namespace mla::test
