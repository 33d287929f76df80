// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluate/attention_map.h"

#include "core/model/causal_attention.h"

namespace mla
{
namespace
{

template <typename Block>
torch::Tensor probabilities(const Block& block, const torch::Tensor& x, HeadIndex head)
{
    const torch::NoGradGuard noGrad;
    const auto [q, k] = rotatedQueriesKeys(block, x); // [1, H, T, width] each
    const auto only = [&](const torch::Tensor& t) {
        return t.narrow(1, head.value, 1).to(torch::kCPU, torch::kFloat64);
    };
    return causalProbabilities(only(q), only(k), block.scale, block.window)[0][0];
}

} // namespace

torch::Tensor headProbabilities(const GqaBlock& block, const torch::Tensor& x, HeadIndex head)
{
    return probabilities(block, x, head);
}

torch::Tensor headProbabilities(const MlaBlock& block, const torch::Tensor& x, HeadIndex head)
{
    return probabilities(block, x, head);
}

} // namespace mla
