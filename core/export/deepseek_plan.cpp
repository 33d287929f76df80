// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/export/deepseek_plan.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <optional>

namespace mla
{
namespace
{

constexpr double kSameFrequency = 1e-9; // relative; of numbers that two formulas give

std::vector<double> frequenciesOf(const ModelConfig& draft, const std::vector<int>& pairs)
{
    const std::vector<double> all = inverseFrequencies(draft.rope, draft.headDim);
    std::vector<double> chosen;
    for (const int pair : pairs)
        chosen.push_back(all.at(static_cast<std::size_t>(pair)));
    return chosen;
}

/// The theta of theta^(-2i / d_r) if the frequencies of a rotary head are of that form.
std::optional<double> thetaOf(const std::vector<double>& frequencies, double usual)
{
    const auto same = [](double a, double b) { return std::abs(a / b - 1) <= kSameFrequency; };
    const auto pairs = static_cast<double>(frequencies.size());
    if (frequencies.empty() || !same(frequencies.front(), 1))
        return std::nullopt;
    double theta = usual;
    if (frequencies.size() > 1)
        theta = std::pow(frequencies[1], -pairs);
    if (same(theta, usual))
        theta = usual;
    if (!(theta > 1))
        return std::nullopt;
    for (std::size_t i = 0; i < frequencies.size(); ++i)
        if (!same(frequencies[i], std::pow(theta, -static_cast<double>(i) / pairs)))
            return std::nullopt;
    return theta;
}

/// The one rope_theta that gives every layer's frequencies.
std::optional<double> stockTheta(const ModelConfig& draft)
{
    std::optional<double> all;
    for (const auto& heads : draft.mla->ropePairs) {
        const auto theta = thetaOf(frequenciesOf(draft, heads.front()), draft.rope.theta);
        if (!theta || (all && *all != *theta))
            return std::nullopt;
        all = theta;
    }
    return all;
}

bool hasWindow(const ModelConfig& draft)
{
    return std::ranges::any_of(draft.slidingWindow, [&](int window) {
        return window > 0 && window < draft.contextLength();
    });
}

bool hasBias(const ModelConfig& draft)
{
    const MlaConfig& mla = *draft.mla;
    return mla.queryBias || mla.kvDownBias || mla.kvUpBias || draft.outputBias;
}

std::string ropeReason(const ModelConfig& draft)
{
    if (draft.rope.type != RopeType::Default)
        return "its rope is scaled, and vLLM turns every rope but the default one into YaRN";
    return "its rotary pairs are not at the frequencies theta^(-2i / " +
           std::to_string(draft.mla->qkRopeHeadDim) + ") of one theta for all layers";
}

/// Why the stock classes cannot hold the draft; empty if they can.
std::vector<std::string> reasonsAgainst(const ModelConfig& draft)
{
    const MlaConfig& mla = *draft.mla;
    std::vector<std::string> reasons;
    if (mla.layout != DraftLayout::Own)
        reasons.emplace_back("another tool wrote it: refine it first");
    if (mla.ropeKeyHeads != 1)
        reasons.push_back("it has " + std::to_string(mla.ropeKeyHeads) +
                          " rotary key heads, and they have one");
    else if (!stockTheta(draft))
        reasons.push_back(ropeReason(draft));
    if (draft.qkNorm)
        reasons.emplace_back("it normalises queries and keys, and they do not");
    if (hasWindow(draft))
        reasons.emplace_back("it has a sliding window, and they attend to everything");
    if (draft.mlpBias)
        reasons.emplace_back("its MLP has biases, which vLLM drops");
    if (mla.latentNorm && hasBias(draft))
        reasons.emplace_back("it has biases beside a latent norm");
    if (mla.qkNopeHeadDim < 1)
        reasons.emplace_back("all of its key dims are rotary, and they need others");
    if (mla.vHeadDim > mla.qkNopeHeadDim + mla.qkRopeHeadDim)
        reasons.emplace_back("its values are wider than its keys");
    if (draft.hiddenSize % draft.numAttentionHeads != 0)
        reasons.emplace_back("hidden_size is not a multiple of num_attention_heads, which "
                             "Transformers asks of deepseek_v2");
    return reasons;
}

void describe(const ModelConfig& draft, DeepseekPlan& plan)
{
    const MlaConfig& mla = *draft.mla;
    const std::string rank = std::to_string(plan.model.mla->latentRank.front());
    plan.keeps = {"the attention scale, folded into q_proj",
                  "the rotary order, as interleaved pairs"};
    if (draft.tieWordEmbeddings)
        plan.keeps.emplace_back("the tied output head, stored a second time");
    if (plan.exact) {
        plan.keeps.emplace_back("every block as it is: it has the latent norm already");
        return;
    }
    plan.keeps.emplace_back("nope keys and values, through " + rank + " latent channels");
    plan.loses = {
        "one more latent channel holds a constant: the cache grows to " +
            std::to_string(plan.model.cacheElements(0)) + " elements a token and layer from " +
            std::to_string(draft.cacheElements(0)),
        "that constant is a linear function of the layer's input: the latent is scaled by "
        "its error, a few percent"};
    if (mla.queryBias || mla.kvDownBias)
        plan.loses.emplace_back("biases of queries and of rotary keys vary with that error");
    if (draft.outputBias)
        plan.keeps.emplace_back("the output bias, as a bias of values");
}

} // namespace

ModelConfig withLatentNorm(ModelConfig draft)
{
    MlaConfig& mla = *draft.mla;
    if (mla.latentNorm)
        return draft;
    for (int& rank : mla.latentRank)
        ++rank;
    mla.latentNorm = true;
    mla.latentNormEps = kStockLatentNormEps;
    mla.queryBias = mla.kvDownBias = mla.kvUpBias = false;
    if (draft.outputBias) // a value bias of every query head stands in for it
        mla.kvUpHeads = draft.numAttentionHeads;
    draft.outputBias = false;
    return draft;
}

Result<DeepseekPlan> planDeepseek(const ModelConfig& draft, const std::string& origin)
{
    const std::vector<std::string> reasons = reasonsAgainst(draft);
    if (!reasons.empty()) {
        std::string text;
        for (const std::string& reason : reasons)
            text += (text.empty() ? "" : "; ") + reason;
        return badInput("stock deepseek_v2 classes cannot hold this draft: " + text, origin,
                        "--layout huggingface holds every draft");
    }
    DeepseekPlan plan;
    plan.exact = draft.mla->latentNorm;
    plan.model = withLatentNorm(draft);
    plan.model.modelType = "deepseek_v2";
    plan.model.tieWordEmbeddings = false;
    plan.model.slidingWindow.clear();
    plan.model.rope = RopeConfig();
    plan.model.rope.theta = *stockTheta(draft);
    MlaConfig& mla = *plan.model.mla;
    mla.layout = DraftLayout::TransMla; // its names and its order of rows
    mla.kvUpHeads = draft.numAttentionHeads;
    mla.attentionScale = 1 / std::sqrt(static_cast<double>(mla.qkNopeHeadDim + mla.qkRopeHeadDim));
    // One rank for all layers, and an even one: Transformers views the rotary key, which follows
    // the latent in memory, as complex numbers. Zero channels fill up.
    const int rank = std::ranges::max(mla.latentRank);
    std::ranges::fill(mla.latentRank, rank + rank % 2);
    describe(draft, plan);
    return plan;
}

nlohmann::json deepseekConfig(const ModelConfig& stock, const nlohmann::json& source)
{
    using nlohmann::json;
    const MlaConfig& mla = *stock.mla;
    const auto orNull = [](const auto& value) { return value ? json(*value) : json(); };
    const std::vector<int>& eos = stock.eosTokenIds;
    const json dtype = stock.dtype.empty() ? json() : json(stock.dtype);
    json config = {
        {"model_type", "deepseek_v2"},
        {"architectures", {"DeepseekV2ForCausalLM"}},
        {"vocab_size", stock.vocabSize},
        {"hidden_size", stock.hiddenSize},
        {"intermediate_size", stock.intermediateSize},
        {"num_hidden_layers", stock.numHiddenLayers},
        {"num_attention_heads", stock.numAttentionHeads},
        {"num_key_value_heads", stock.numAttentionHeads},
        {"max_position_embeddings", stock.maxPositionEmbeddings},
        {"rms_norm_eps", stock.rmsNormEps},
        {"hidden_act", "silu"},
        {"attention_bias", false},
        {"attention_dropout", 0.0},
        {"mlp_bias", false},
        {"tie_word_embeddings", false},
        {"use_cache", true},
        {"initializer_range", 0.02},
        {"bos_token_id", orNull(stock.bosTokenId)},
        {"eos_token_id", eos.empty()       ? json()
                         : eos.size() == 1 ? json(eos.front())
                                           : json(eos)},
        {"pad_token_id", source.value("pad_token_id", json())},
        {"dtype", dtype},
        {"torch_dtype", dtype},
    };
    config.update(
        {{"q_lora_rank", nullptr},
         {"kv_lora_rank", mla.latentRank.front()},
         {"qk_nope_head_dim", mla.qkNopeHeadDim},
         {"qk_rope_head_dim", mla.qkRopeHeadDim},
         {"v_head_dim", mla.vHeadDim},
         {"head_dim", mla.qkRopeHeadDim}, // the width that the rotary embedding is built for
         {"rope_theta", stock.rope.theta},
         {"rope_scaling", nullptr},
         {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", stock.rope.theta}}}});
    // Dense everywhere; the experts' sizes are read though none is built.
    config.update({{"first_k_dense_replace", stock.numHiddenLayers},
                   {"moe_layer_freq", 1},
                   {"moe_intermediate_size", stock.intermediateSize},
                   {"n_routed_experts", 1},
                   {"n_shared_experts", 0},
                   {"num_experts_per_tok", 1},
                   {"n_group", 1},
                   {"topk_group", 1},
                   {"topk_method", "greedy"},
                   {"norm_topk_prob", false},
                   {"scoring_func", "softmax"},
                   {"routed_scaling_factor", 1.0}});
    return config;
}

} // namespace mla
