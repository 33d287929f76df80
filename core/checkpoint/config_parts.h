// SPDX-License-Identifier: GPL-3.0-or-later
// The parts of a config.json that model_config.cpp puts together.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.h"
#include "core/base/result.h"
#include "core/checkpoint/model_config.h"

namespace mla
{

constexpr const char* mlaModelType = "mla_draft";
constexpr const char* mlaArchitecture = "MlaDraftForCausalLM";

/// What a model_type fixes, and the defaults of absent keys: those of its config class in
/// Transformers 5.19 (4.x has the same).
struct Family {
    enum class Biases {
        ByKey,     ///< q, k, v and o have biases where attention_bias is true
        QkvAlways, ///< q, k and v always, o never; attention_bias says nothing
        None,
        OutputByKey ///< attention_bias speaks of o alone
    };
    enum class Windows {
        None,
        EveryLayer,  ///< sliding_window, null for none
        ByLayerType, ///< use_sliding_window, sliding_window, layer_types or max_window_layers
        Draft        ///< parseMla() reads them
    };
    const char* modelType;
    const char* architecture;
    int vocabSize, intermediateSize, maxPositionEmbeddings;
    std::optional<int> numKeyValueHeads; ///< none: as many as attention heads
    std::optional<int> headDim;          ///< none: hidden_size / num_attention_heads
    std::optional<int> bosTokenId, eosTokenId;
    Biases biases;
    Windows windows;
    bool mlpBias; ///< mlp_bias is a key of this family
    bool qkNorm;
};
/// nullptr when the model_type is not supported.
const Family* familyNamed(std::string_view modelType);
/// "llama, mistral, ..."
std::string supportedFamilies();

/// ModelConfig::slidingWindow as Transformers resolves it. Layer types other than full_attention
/// and sliding_attention are refused by name.
std::vector<int> readSlidingWindow(JsonReader& reader, const nlohmann::json& config,
                                   Family::Windows windows, int layers);

/// Rope parameters of either generation; `config` is the whole config.json. The rules are those of
/// Transformers 5.19's RotaryEmbeddingConfigMixin: a non-empty rope_scaling wins over
/// rope_parameters, rope_theta within them over the top-level key. Parameters per layer type are
/// read when all are equal.
Result<RopeConfig> parseRope(const nlohmann::json& config, int maxPositionEmbeddings,
                             const std::string& origin);
/// Writes `rope` in the keys of both generations.
void writeRope(const RopeConfig& rope, nlohmann::json& config);

/// Reads the keys of an mla_draft into `model.mla` and restores the source's head_dim and KV heads.
Status parseMla(const nlohmann::json& config, const std::string& origin, ModelConfig& model);

} // namespace mla
