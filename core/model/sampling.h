// SPDX-License-Identifier: GPL-3.0-or-later
// Choosing the next token, and plain autoregressive decoding with one model.
#pragma once

#include <vector>

#include "core/base/job.h"
#include "core/base/result.h"
#include "core/base/settings.h"
#include "core/base/torch.h"
#include "core/model/decoder.h"

namespace mla
{

/// Ids that may be chosen at all; the others (padding rows, tokens that the other model of a pair
/// lacks) count as having a logit of -inf.
struct VocabularyMask {
    std::int64_t size = 0; ///< ids from it on are never chosen; 0 = no limit
    torch::Tensor holes;   ///< [n] int64: ids below `size` that are not either; may be undefined
};

struct StopRule {
    std::vector<int> eosIds;
    int minNewTokens = 0; ///< EOS is kept out until that many tokens were produced
    VocabularyMask vocabulary = {};
    [[nodiscard]] bool isEos(int id) const;
};

/// The logits [.., V] that a choice is made from: cut to the vocabulary's size, its holes at -inf,
/// and the eos ids too while `produced` < minNewTokens.
torch::Tensor allowedLogits(const torch::Tensor& logits, const StopRule& stop, int produced);

/// Greedy choice per row of logits [.., V], as int64 [..]: the lowest id of equal maxima,
/// among the allowed ones.
torch::Tensor greedyTokens(const torch::Tensor& logits, const StopRule& stop, int produced);

/// One sample per row of logits [B, V] from softmax(logits / temperature), with one uniform number
/// a row from `generator`: [B] int64.
torch::Tensor sampleTokens(const torch::Tensor& logits, double temperature,
                           torch::Generator& generator);

/// Difference of the two largest logits of each row, [..].
torch::Tensor topTwoMargin(const torch::Tensor& logits);

inline constexpr int keptChoices = 3; ///< likeliest tokens remembered at each position

struct Continuation {
    std::vector<int> ids;       ///< new tokens, EOS included
    std::vector<float> margins; ///< top-2 margin of the logits each came from
    /// Sampling only: the probability, under the rule, with which each was drawn.
    std::vector<double> drawn;
    std::vector<std::int32_t> topIds;    ///< [n, 3] the likeliest tokens at each position
    std::vector<float> topProbabilities; ///< [n, 3]
};

/// The `count` likeliest tokens behind allowed logits [V] and their probabilities at temperature 1,
/// appended best first; -1 and 0 where there are fewer. Returns the margin of the two largest
/// logits.
float appendTopTokens(const torch::Tensor& logits, int count, std::vector<std::int32_t>& ids,
                      std::vector<float>& probabilities);

/// What continuePrompt() writes down. The ids alone cost nothing beside the model: for timing, and
/// where nobody looks at the rest.
enum class Remember { Ids, Choices };

/// Plain decoding of one prompt. `generator` is used for sampling only.
Result<Continuation> continuePrompt(JobContext& job, const Decoder& model,
                                    const std::vector<int>& prompt, int newTokens,
                                    const StopRule& stop, const SamplingRule& rule = {},
                                    torch::Generator* generator = nullptr,
                                    Remember remember = Remember::Choices);

/// [1, T] int64 on the model's device.
torch::Tensor idTensor(const std::vector<int>& ids, torch::Device device);

/// Each id must be within the vocabulary, and the model's context hold `total` tokens.
Status checkIds(const ModelConfig& config, const std::vector<int>& ids, std::int64_t total);

} // namespace mla
