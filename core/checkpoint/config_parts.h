// SPDX-License-Identifier: GPL-3.0-or-later
// The parts of a config.json that model_config.cpp puts together.
#pragma once

#include <string>

#include "core/base/json.h"
#include "core/base/result.h"
#include "core/checkpoint/model_config.h"

namespace mla
{

constexpr const char* mlaModelType = "mla_draft";
constexpr const char* mlaArchitecture = "MlaDraftForCausalLM";

/// Rope parameters of either generation; `config` is the whole config.json. The rules are those of
/// Transformers 5.19's RotaryEmbeddingConfigMixin: a non-empty rope_scaling wins over
/// rope_parameters, rope_theta within them over the top-level key.
Result<RopeConfig> parseRope(const nlohmann::json& config, int maxPositionEmbeddings,
                             const std::string& origin);
/// Writes `rope` in the keys of both generations.
void writeRope(const RopeConfig& rope, nlohmann::json& config);

/// Reads the keys of an mla_draft into `model.mla` and restores the source's head_dim and KV heads.
Status parseMla(const nlohmann::json& config, const std::string& origin, ModelConfig& model);

} // namespace mla
