// SPDX-License-Identifier: GPL-3.0-or-later
// What each converter accepts for a model, and the cache its settings lead to. The converters
// enforce it; the command line, the Checkpoint page and the new-run dialog show it. No torch here.
// Notation of design section 4: G KV heads of h dims, r kv_lora_rank, d_r qk_rope_head_dim.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/settings.h"
#include "core/checkpoint/model_config.h"

namespace mla
{

/// What the converter named in the settings allows for `config`. Bounds are inclusive.
struct ConversionLimits {
    std::vector<int> ropeDims;  ///< legal d_r, ascending
    std::vector<int> freqfolds; ///< legal at the settings' d_r, ascending; empty for MHA2MLA
    /// Largest legal r at the settings' d_r: the rank of what the latent carries.
    int largestRank = 0;
    /// Largest legal r whose cache is smaller than the original's; below 1 there is none.
    int largestSavingRank = 0;
};
[[nodiscard]] ConversionLimits conversionLimits(const ModelConfig& config,
                                                const ConvertSettings& settings);

/// The setting that an issue is about; Model: this converter cannot take this model at all.
enum class ConversionSetting { Model, QkRopeHeadDim, KvLoraRank, Freqfold, RopeSelect, Svd };

struct ConversionIssue {
    ConversionSetting setting = ConversionSetting::Model;
    bool blocking = true; ///< false: a warning (nothing is saved)
    Error error;          ///< names the command line's option and what was expected
};
/// Everything that is wrong with converting `config` so, most basic first. An unknown converter is
/// an issue of Model.
[[nodiscard]] std::vector<ConversionIssue> conversionIssues(const ModelConfig& config,
                                                            const ConvertSettings& settings);
/// The first blocking issue.
Status checkConversion(const ModelConfig& config, const ConvertSettings& settings);

/// 2 G h of the model, or of the source that an MLA draft was made from.
[[nodiscard]] std::int64_t originalCacheElements(const ModelConfig& config);
/// Of the model as it is, a token and layer, mean over the layers.
[[nodiscard]] double meanCacheElements(const ModelConfig& config);
/// Elements a token and layer: r + d_r (TransMLA, one rotary key head), r + G d_r (MHA2MLA), and
/// one RMS scalar per KV head more where the model has QK-norm.
[[nodiscard]] std::int64_t plannedCacheElements(const ModelConfig& config,
                                                const ConvertSettings& settings);

/// A sentence if nothing is saved: `cacheElements` a token and layer against 2 G h of the source.
[[nodiscard]] std::vector<std::string> conversionWarnings(const ModelConfig& source,
                                                          std::int64_t cacheElements);

/// The largest legal kv_lora_rank whose cache is at most `elements` a token and layer, everything
/// else as in `settings`; a Usage error says the smallest budget that works.
Result<int> rankForBudget(const ModelConfig& config, const ConvertSettings& settings,
                          double elements);
/// "108" elements or "28%" of the original's; a Usage error names `option`.
Result<double> parseCacheBudget(const ModelConfig& config, const std::string& text,
                                const std::string& option);

/// How a cache is filled and stored.
struct CacheUse {
    std::int64_t context = 4096; ///< tokens of one sequence
    std::int64_t batch = 1;      ///< sequences at a time
    int bytesPerElement = 2;
};
/// Bytes that `elements` a token and layer take in all layers. A layer with a sliding window keeps
/// at most its window's tokens.
[[nodiscard]] std::int64_t cacheBytes(const ModelConfig& config, std::int64_t elements,
                                      const CacheUse& use);
/// Bytes of the model's own cache, whose layers may differ (ranks of an MLA draft).
[[nodiscard]] std::int64_t ownCacheBytes(const ModelConfig& config, const CacheUse& use);

/// Types a KV cache is kept in, with the bytes of an element: fp32, bf16, fp16, fp8.
struct CacheType {
    const char* name;
    int bytesPerElement;
};
[[nodiscard]] const std::vector<CacheType>& cacheTypes();

} // namespace mla
