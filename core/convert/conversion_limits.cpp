// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/convert/conversion_limits.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace mla
{
namespace
{

using Setting = ConversionSetting;

bool isTransmla(const ConvertSettings& settings)
{
    return settings.converter == "transmla";
}

/// Rotary key heads a draft has: n_r.
int ropeKeyHeads(const ModelConfig& config, const ConvertSettings& settings)
{
    return isTransmla(settings) ? 1 : config.numKeyValueHeads;
}

/// Even divisors of h, or whole heads up to all of them (which is exact).
bool transmlaTakesRopeDim(const ModelConfig& config, int ropeDim)
{
    const int h = config.headDim;
    const bool fraction = ropeDim > 0 && ropeDim % 2 == 0 && h % ropeDim == 0;
    const bool multiple = ropeDim > 0 && ropeDim % h == 0 && ropeDim <= config.numKeyValueHeads * h;
    return fraction || multiple;
}

std::vector<int> ropeDims(const ModelConfig& config, const ConvertSettings& settings)
{
    const int most =
        isTransmla(settings) ? config.numKeyValueHeads * config.headDim : config.headDim;
    std::vector<int> dims;
    for (int dim = 2; dim <= most; dim += 2) {
        const bool legal = isTransmla(settings)
                               ? transmlaTakesRopeDim(config, dim)
                               : settings.ropeSelect != "uniform" || config.headDim % dim == 0;
        if (legal)
            dims.push_back(dim);
    }
    return dims;
}

/// c = h / d_r, the frequencies that share a rotary pair.
int collapse(const ModelConfig& config, const ConvertSettings& settings)
{
    return std::max(1, config.headDim / std::max(1, settings.qkRopeHeadDim));
}

std::vector<int> freqfolds(const ModelConfig& config, const ConvertSettings& settings)
{
    std::vector<int> folds;
    if (!isTransmla(settings))
        return folds;
    const int half = config.headDim / 2, step = collapse(config, settings);
    for (int fold = step; fold <= half; fold += step)
        if (half % fold == 0)
            folds.push_back(fold);
    return folds;
}

int largestRank(const ModelConfig& config, const ConvertSettings& settings)
{
    const int width = 2 * config.headDim;
    if (isTransmla(settings))
        return config.numKeyValueHeads * width - settings.qkRopeHeadDim;
    return std::min(config.hiddenSize, config.numKeyValueHeads * (width - settings.qkRopeHeadDim));
}

/// What is cached beside the latent.
std::int64_t elementsBesideLatent(const ModelConfig& config, const ConvertSettings& settings)
{
    const std::int64_t norms = config.qkNorm ? config.numKeyValueHeads : 0;
    return std::int64_t{ropeKeyHeads(config, settings)} * settings.qkRopeHeadDim + norms;
}

class Issues
{
public:
    void block(Setting setting, Error error)
    {
        m_list.push_back({setting, true, std::move(error)});
    }
    void warn(Setting setting, Error error)
    {
        m_list.push_back({setting, false, std::move(error)});
    }
    [[nodiscard]] bool blocked() const
    {
        return std::ranges::any_of(m_list, [](const auto& issue) { return issue.blocking; });
    }
    std::vector<ConversionIssue> take() { return std::move(m_list); }

private:
    std::vector<ConversionIssue> m_list;
};

void checkModel(Issues& issues, const ModelConfig& config, const ConvertSettings& settings)
{
    if (settings.converter != "transmla" && settings.converter != "mha2mla")
        issues.block(Setting::Model, usageError("--converter " + settings.converter +
                                                ": expected one of transmla, mha2mla"));
    else if (config.isMla())
        issues.block(Setting::Model, badInput("this is an MLA draft already; converters take the "
                                              "original checkpoint"));
    else if (config.rope.type == RopeType::Dynamic)
        issues.block(Setting::Model,
                     badInput("rope type 'dynamic' cannot be converted: its frequencies depend on "
                              "the length of the text, and a draft's rotary keys are cached once",
                              {}, "other rope types can: default, linear, llama3, yarn"));
    else if (isTransmla(settings) && config.qkNorm)
        issues.block(Setting::Model,
                     badInput("transmla cannot convert a model with QK-norm (q_norm, k_norm): the "
                              "norm of each head stands between projection and RoPE and does not "
                              "commute with TransMLA's rotation across heads",
                              {}, "mha2mla keeps the norm"));
}

void checkTransmla(Issues& issues, const ModelConfig& config, const ConvertSettings& settings)
{
    const int h = config.headDim;
    const std::string rope = std::to_string(settings.qkRopeHeadDim);
    if (settings.svd != "joint")
        issues.block(Setting::Svd,
                     usageError("--svd " + settings.svd + " is for mha2mla: transmla takes joint"));
    if (!transmlaTakesRopeDim(config, settings.qkRopeHeadDim)) {
        issues.block(
            Setting::QkRopeHeadDim,
            usageError("--qk-rope-head-dim " + rope + ": expected an even divisor of head_dim " +
                       std::to_string(h) + ", or a multiple of it up to " +
                       std::to_string(config.numKeyValueHeads * h) + " (all heads rotary)"));
        return; // the bounds of the others follow from it
    }
    const std::vector<int> folds = freqfolds(config, settings);
    if (settings.freqfold != 0 && std::ranges::find(folds, settings.freqfold) == folds.end())
        issues.block(Setting::Freqfold,
                     usageError("--freqfold " + std::to_string(settings.freqfold) +
                                ": expected a multiple of " +
                                std::to_string(collapse(config, settings)) +
                                " (head_dim / qk_rope_head_dim) that divides " +
                                std::to_string(h / 2) + " (head_dim / 2)"));
    const int most = largestRank(config, settings);
    if (settings.kvLoraRank < 1 || settings.kvLoraRank > most)
        issues.block(Setting::KvLoraRank,
                     usageError("--kv-lora-rank " + std::to_string(settings.kvLoraRank) +
                                ": expected 1 to " + std::to_string(most) +
                                " (2 * KV heads * head_dim - qk_rope_head_dim)"));
}

void checkMha2mla(Issues& issues, const ModelConfig& config, const ConvertSettings& settings)
{
    const int ropeDim = settings.qkRopeHeadDim;
    const std::string rope = std::to_string(ropeDim), head = std::to_string(config.headDim);
    if (ropeDim < 2 || ropeDim % 2 != 0 || ropeDim > config.headDim) {
        issues.block(Setting::QkRopeHeadDim,
                     usageError("--qk-rope-head-dim " + rope +
                                ": expected an even number up to head_dim " + head));
        return;
    }
    if (settings.ropeSelect == "uniform" && config.headDim % ropeDim != 0)
        issues.block(Setting::RopeSelect, usageError("--rope-select uniform: qk_rope_head_dim " +
                                                     rope + " must divide head_dim " + head));
    if (settings.freqfold != 0)
        issues.block(Setting::Freqfold, usageError("--freqfold is for transmla"));
    const int most = largestRank(config, settings);
    if (settings.kvLoraRank < 1)
        issues.block(Setting::KvLoraRank, usageError("--kv-lora-rank must be at least 1"));
    else if (settings.kvLoraRank > most)
        issues.block(Setting::KvLoraRank,
                     badInput("--kv-lora-rank " + std::to_string(settings.kvLoraRank) +
                              ": this model's stacked keys and values have rank " +
                              std::to_string(most) +
                              " at most: min(hidden_size, KV heads * (2 head_dim - "
                              "qk_rope_head_dim))"));
}

void checkSavings(Issues& issues, const ModelConfig& config, const ConvertSettings& settings)
{
    const std::vector<std::string> warnings =
        conversionWarnings(config, plannedCacheElements(config, settings));
    if (warnings.empty())
        return;
    const int most = conversionLimits(config, settings).largestSavingRank;
    issues.warn(Setting::KvLoraRank,
                usageError(warnings.front(), most < 1
                                                 ? "no rank saves anything at this qk_rope_head_dim"
                                                 : "a kv_lora_rank of " + std::to_string(most) +
                                                       " is the largest that saves"));
}

std::int64_t tokensKept(const ModelConfig& config, int layer, std::int64_t context)
{
    const std::int64_t window = config.window(layer);
    return window > 0 ? std::min(window, context) : context;
}

} // namespace

ConversionLimits conversionLimits(const ModelConfig& config, const ConvertSettings& settings)
{
    ConversionLimits limits;
    limits.ropeDims = ropeDims(config, settings);
    limits.freqfolds = freqfolds(config, settings);
    limits.largestRank = largestRank(config, settings);
    const std::int64_t saving =
        originalCacheElements(config) - 1 - elementsBesideLatent(config, settings);
    limits.largestSavingRank = static_cast<int>(std::min<std::int64_t>(limits.largestRank, saving));
    return limits;
}

std::vector<ConversionIssue> conversionIssues(const ModelConfig& config,
                                              const ConvertSettings& settings)
{
    Issues issues;
    checkModel(issues, config, settings);
    if (issues.blocked())
        return issues.take();
    if (isTransmla(settings))
        checkTransmla(issues, config, settings);
    else
        checkMha2mla(issues, config, settings);
    if (!issues.blocked())
        checkSavings(issues, config, settings);
    return issues.take();
}

Status checkConversion(const ModelConfig& config, const ConvertSettings& settings)
{
    for (ConversionIssue& issue : conversionIssues(config, settings))
        if (issue.blocking)
            return std::move(issue.error);
    return {};
}

double meanCacheElements(const ModelConfig& config)
{
    std::int64_t elements = 0;
    for (int layer = 0; layer < config.numHiddenLayers; ++layer)
        elements += config.cacheElements(layer);
    return static_cast<double>(elements) / config.numHiddenLayers;
}

std::int64_t originalCacheElements(const ModelConfig& config)
{
    return 2LL * config.numKeyValueHeads * config.headDim;
}

std::int64_t plannedCacheElements(const ModelConfig& config, const ConvertSettings& settings)
{
    return settings.kvLoraRank + elementsBesideLatent(config, settings);
}

std::vector<std::string> conversionWarnings(const ModelConfig& source, std::int64_t cacheElements)
{
    const std::int64_t original = originalCacheElements(source);
    if (cacheElements < original)
        return {};
    return {"nothing is saved: the draft caches " + std::to_string(cacheElements) +
            " elements per token and layer, the original " + std::to_string(original)};
}

Result<int> rankForBudget(const ModelConfig& config, const ConvertSettings& settings,
                          double elements)
{
    ConvertSettings probe = settings;
    probe.kvLoraRank = 1;
    MLA_CHECK(checkConversion(config, probe));
    const double room =
        std::floor(elements) - static_cast<double>(elementsBesideLatent(config, settings));
    if (!(room >= 1))
        return usageError("a cache of " + std::to_string(static_cast<std::int64_t>(elements)) +
                          " elements per token and layer leaves no room for a latent: the rotary "
                          "part alone takes " +
                          std::to_string(elementsBesideLatent(config, settings)));
    return static_cast<int>(std::min<double>(room, largestRank(config, settings)));
}

Result<double> parseCacheBudget(const ModelConfig& config, const std::string& text,
                                const std::string& option)
{
    const bool percent = text.ends_with('%');
    const char* end = text.data() + text.size() - (percent ? 1 : 0);
    double value = 0;
    const auto [stopped, problem] = std::from_chars(text.data(), end, value);
    if (problem != std::errc() || stopped != end || !std::isfinite(value) || value <= 0)
        return usageError(option +
                          ": expected a number of elements or a percentage such as 28%, "
                          "got '" +
                          text + "'");
    const auto original = static_cast<double>(originalCacheElements(config));
    // 28.125 % of 384 is 108 exactly; rounding must not make it 107.
    return percent ? value * original / 100.0 + 1e-9 : std::min(value, 2.0 * original);
}

std::int64_t cacheBytes(const ModelConfig& config, std::int64_t elements, const CacheUse& use)
{
    std::int64_t tokens = 0;
    for (int layer = 0; layer < config.numHiddenLayers; ++layer)
        tokens += tokensKept(config, layer, use.context);
    return tokens * elements * use.batch * use.bytesPerElement;
}

std::int64_t ownCacheBytes(const ModelConfig& config, const CacheUse& use)
{
    std::int64_t elements = 0;
    for (int layer = 0; layer < config.numHiddenLayers; ++layer)
        elements += tokensKept(config, layer, use.context) * config.cacheElements(layer);
    return elements * use.batch * use.bytesPerElement;
}

const std::vector<CacheType>& cacheTypes()
{
    static const std::vector<CacheType> types = {{"fp32", 4}, {"bf16", 2}, {"fp16", 2}, {"fp8", 1}};
    return types;
}

} // namespace mla
