// SPDX-License-Identifier: GPL-3.0-or-later
// What the stock classes of `deepseek_v2` in Transformers and vLLM can hold of a draft, read from
// their sources (Transformers 5.19, vLLM 0.32). They fix much: one rotary key head, rotated as
// interleaved pairs at theta^(-2i / d_r); an RMSNorm on the latent; no biases (Transformers can
// have some, vLLM has none and drops those it meets); the score scale (d_n + d_r)^-1/2; full
// attention. vLLM turns every other rope into YaRN. No torch here.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/base/result.h"
#include "core/checkpoint/model_config.h"

namespace mla
{

/// eps of `kv_a_layernorm` in Transformers' DeepSeek classes, whatever config.json says.
constexpr double kStockLatentNormEps = 1e-6;

/// How a draft is written for the stock classes.
struct DeepseekPlan {
    ModelConfig model; ///< as they read it; model.mla->latentRank is the kv_lora_rank written
    /// The draft has a latent norm already: what is written is what it computes. False: a constant
    /// channel is added, which approximates it.
    bool exact = false;
    std::vector<std::string> keeps, loses; ///< sentences for people
};

/// The plan, or BadInput with every reason why the stock classes cannot hold the draft. `origin`
/// names it in messages. Of other tools' drafts: in our layout, i.e. after refinement.
Result<DeepseekPlan> planDeepseek(const ModelConfig& draft, const std::string& origin);

/// The config of a draft whose blocks went through withConstantChannel(); the same draft where it
/// has a latent norm already.
ModelConfig withLatentNorm(ModelConfig draft);

/// config.json, with every key that the stock loaders would default. `source` is the draft's own,
/// for ids that ModelConfig does not hold.
nlohmann::json deepseekConfig(const ModelConfig& stock, const nlohmann::json& source);

} // namespace mla
