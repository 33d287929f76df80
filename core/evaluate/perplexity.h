// SPDX-License-Identifier: GPL-3.0-or-later
// Perplexity of a model on token windows, and how far two models' predictions are apart.
#pragma once

#include <optional>
#include <vector>

#include "core/base/job.h"
#include "core/base/result.h"
#include "core/base/torch.h"
#include "core/model/decoder.h"

namespace mla
{

/// Token windows that are scored independently, each from its second token on.
using TokenWindows = std::vector<std::vector<int>>;

/// Disjoint windows of `length`; the last is kept if it has two tokens.
TokenWindows disjointWindows(const std::vector<int>& ids, int length);

/// The predictions of one window, entry t that of token t + 1 from those before it: [tokens - 1]
/// fp64 on the CPU.
struct WindowScores {
    torch::Tensor nll;          ///< negative log-likelihood, nats
    torch::Tensor referenceNll; ///< the reference's; undefined without one, like the next two
    torch::Tensor kl;           ///< KL(reference || model) of next-token distributions, nats
    torch::Tensor agreeing;     ///< 1 where both have the same first choice
};
WindowScores scoreWindow(const Decoder& model, const Decoder* reference,
                         const std::vector<int>& window);

struct PredictionScore {
    double perplexity = 0;   ///< exp(mean negative log-likelihood)
    std::int64_t tokens = 0; ///< scored tokens
    double kl = 0;        ///< mean KL(reference || model) per scored token; 0 without a reference
    double agreement = 0; ///< share of scored tokens with the reference's first choice; likewise
};

/// Scores `model`; with `reference` also how its next-token distributions differ from the
/// reference's.
Result<PredictionScore> scoreWindows(JobContext& job, const Decoder& model,
                                     const Decoder* reference, const TokenWindows& windows,
                                     int workers);

} // namespace mla
