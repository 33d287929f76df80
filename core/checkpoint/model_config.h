// SPDX-License-Identifier: GPL-3.0-or-later
// config.json of a decoder checkpoint, both generations (Transformers v4: rope_theta, rope_scaling,
// torch_dtype; v5: rope_parameters, dtype), normalised into one struct. No torch here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include <nlohmann/json_fwd.hpp>

namespace mla
{

enum class RopeType { Default, Linear, Dynamic, Llama3, Yarn };

/// Rotary position embedding parameters, named as in Transformers' modeling_rope_utils.
struct RopeConfig {
    RopeType type = RopeType::Default;
    double theta = 10000.0;
    double factor = 1.0;         ///< every type but default
    double lowFreqFactor = 1.0;  ///< llama3
    double highFreqFactor = 4.0; ///< llama3
    /// llama3, yarn: tokens of the context before scaling. dynamic: max_position_embeddings, the
    /// length beyond which the frequencies follow the length.
    int originalMaxPositionEmbeddings = 8192;
    /// yarn: cos and sin are multiplied by it; 1 for every other type. Resolved on reading: given,
    /// from mscale and mscale_all_dim, or from the factor.
    double attentionFactor = 1.0;
    double betaFast = 32.0, betaSlow = 1.0; ///< yarn: turns over the original context
    bool truncate = true;                   ///< yarn: the ramp's ends are whole pairs
    bool operator==(const RopeConfig&) const = default;
};

/// Inverse frequencies of a head of `dim` rotary dims: [dim / 2] radians per position, in fp64,
/// by the formulas of Transformers 5.19's modeling_rope_utils. `length`: tokens of the sequence,
/// which only `dynamic` asks for; up to the original length it changes nothing.
[[nodiscard]] std::vector<double> inverseFrequencies(const RopeConfig& rope, int dim,
                                                     std::int64_t length = 0);

/// How an MLA draft names and orders its tensors.
enum class DraftLayout {
    Own,      ///< model_type "mla_draft"
    TransMla, ///< TransMLA's converter: deepseek names, rotary rows as interleaved pairs
    Mha2Mla   ///< MHA2MLA's trainer: q_proj all rotary rows first, k_r_proj, kv_proj.down/up
};

/// Present when the checkpoint is an MLA draft.
struct MlaConfig {
    DraftLayout layout = DraftLayout::Own;
    std::string converter;       ///< "transmla" | "mha2mla"
    std::vector<int> latentRank; ///< kv_lora_rank per layer [num_hidden_layers]
    int qkRopeHeadDim = 0;       ///< d_r of one rotary key head
    int qkNopeHeadDim = 0;       ///< d_n
    int vHeadDim = 0;            ///< d_v
    int ropeKeyHeads = 0;        ///< n_r
    int kvUpHeads = 0;           ///< heads of kv_b_proj: query heads or KV heads
    double attentionScale = 0;   ///< multiplies q.k
    /// For each layer and rotary key head the indices into inverseFrequencies(rope, head_dim)
    /// of its pairs: [num_hidden_layers][n_r][d_r / 2].
    std::vector<std::vector<std::vector<int>>> ropePairs;
    bool queryBias = false, kvDownBias = false, kvUpBias = false;
    bool latentNorm = false;     ///< the latent passes an RMSNorm before it is cached and used
    double latentNormEps = 1e-6; ///< of that norm
    int queryRank = 0;           ///< TransMla: q_lora_rank; 0 = one projection
    bool splitLatent = false;    ///< Mha2Mla: keys and values have latents of their own, half each
    bool operator==(const MlaConfig&) const = default;
};

struct ModelConfig {
    std::string modelType; ///< "llama", "mistral", "qwen2", "qwen3" or "mla_draft"
    int hiddenSize = 0, intermediateSize = 0, numHiddenLayers = 0;
    int numAttentionHeads = 0;
    int numKeyValueHeads = 0, headDim = 0; ///< G and h; of the *source* for an mla_draft
    int vocabSize = 0, maxPositionEmbeddings = 0;
    double rmsNormEps = 1e-6;
    RopeConfig rope;
    bool qkvBias = false;    ///< q, k and v have biases (always in Qwen2)
    bool outputBias = false; ///< o_proj has one
    bool qkNorm = false;     ///< Qwen3: RMSNorm of every query and key head before RoPE
    /// Keys a query sees in each layer, itself included: [num_hidden_layers], 0 = all of them.
    /// Empty where no layer has a window.
    std::vector<int> slidingWindow;
    bool mlpBias = false;
    bool tieWordEmbeddings = false;
    std::string dtype; ///< "float32", "bfloat16", ...; may be empty
    std::optional<int> bosTokenId;
    std::vector<int> eosTokenIds; ///< generation_config.json wins over config.json
    std::optional<MlaConfig> mla;

    bool operator==(const ModelConfig&) const = default;
    [[nodiscard]] bool isMla() const { return mla.has_value(); }
    /// Tokens of the longest text: max_position_embeddings, or what the rope stretches it to
    /// (linear and dynamic: times the factor; yarn: the original length times the factor).
    [[nodiscard]] int contextLength() const;
    /// Keys a query of `layer` sees, itself included; 0 = all.
    [[nodiscard]] int window(int layer) const
    {
        return slidingWindow.empty() ? 0 : slidingWindow.at(static_cast<std::size_t>(layer));
    }
    /// Cached elements per token in `layer`: 2*G*h for GQA, r + n_r*d_r for MLA (and n_r scalars
    /// with QK-norm).
    [[nodiscard]] std::int64_t cacheElements(int layer) const;
};

/// Reads and checks `directory`/config.json (and generation_config.json for the stop ids).
/// Unknown architectures, activations and rope types are refused by name.
Result<ModelConfig> readModelConfig(const std::filesystem::path& directory);
/// The same from parsed JSON; `origin` names the file in errors.
Result<ModelConfig> parseModelConfig(const nlohmann::json& config, const std::string& origin);
/// config.json of the MLA draft that `config` (with its `mla`) describes. `base` is the source
/// checkpoint's config.json: keys that this program does not know are kept from it, all others are
/// written from `config`, rope and dtype in both generations' keys. Reading the result gives
/// `config`.
[[nodiscard]] nlohmann::json mlaConfigToJson(const ModelConfig& config, nlohmann::json base);

} // namespace mla
