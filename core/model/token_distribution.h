// SPDX-License-Identifier: GPL-3.0-or-later
// The distribution that a token is sampled from, the same rule for target and draft.
#pragma once

#include "core/base/settings.h"
#include "core/base/torch.h"

namespace mla
{

/// Probabilities of logits [.., V] under `rule` (temperature > 0), fp64 on the CPU. As in
/// Transformers and vLLM: the logits are divided by the temperature, the topK largest stay (ties
/// with the last of them too), then the smallest set of the most probable that reaches topP.
torch::Tensor tokenProbabilities(const torch::Tensor& logits, const SamplingRule& rule);

/// A uniform number of [0, 1).
double drawUniform(torch::Generator& generator);
/// One index of `probabilities` [V], which need not sum to one, by one uniform number.
int drawToken(const torch::Tensor& probabilities, torch::Generator& generator);
/// One token of the residual (p - q)+ of speculative sampling; of p itself where p = q, which
/// rounding alone can bring about.
int drawResidual(const torch::Tensor& p, const torch::Tensor& q, torch::Generator& generator);
/// sum_v min(p, q): the chance that a token drafted from q is accepted under p.
double overlap(const torch::Tensor& p, const torch::Tensor& q);

} // namespace mla
