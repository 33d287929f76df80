// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluate/fidelity.h"

#include <cmath>

#include "core/model/causal_attention.h"

namespace mla
{

using torch::Tensor;

namespace
{

/// Sum over heads and valid queries of KL(p || q), of one sequence.
template <typename Block>
double attentionKl(const GqaBlock& original, const Block& draft, const Tensor& input,
                   const Tensor& mask)
{
    const auto [q, k] = rotatedQueriesKeys(original, input);
    const auto [qm, km] = rotatedQueriesKeys(draft, input);
    const Tensor p = causalProbabilities(q, k, original.scale, original.window).to(torch::kFloat64);
    const Tensor pm = causalProbabilities(qm, km, draft.scale, draft.window).to(torch::kFloat64);
    // Masked keys have p = 0 and contribute nothing; tiny floors keep the logarithms finite.
    const Tensor kl = (p * ((p + 1e-300).log() - (pm + 1e-300).log())).sum(-1); // [1, H, T]
    return (kl * mask.to(torch::kFloat64).unsqueeze(1)).sum().item<double>();
}

template <typename Block>
FidelityRecord measure(const GqaBlock& original, const Block& draft, const Tensor& input,
                       const Tensor& target, const Tensor& mask)
{
    const torch::NoGradGuard noGrad;
    double error = 0, energy = 0, cosine = 0, kl = 0, tokens = 0;
    for (std::int64_t row = 0; row < input.size(0); ++row) {
        const Tensor x = input.narrow(0, row, 1), m = mask.narrow(0, row, 1).to(x.device());
        const Tensor a = target.narrow(0, row, 1).to(torch::kFloat64);
        const Tensor b = attend(draft, x).to(torch::kFloat64);
        const Tensor valid = m.to(torch::kFloat64);
        error += ((b - a).pow(2).sum(-1) * valid).sum().item<double>();
        energy += (a.pow(2).sum(-1) * valid).sum().item<double>();
        const Tensor norms = (a.norm(2, {-1}) * b.norm(2, {-1})).clamp_min(1e-300);
        cosine += ((a * b).sum(-1) / norms * valid).sum().item<double>();
        kl += attentionKl(original, draft, x, m);
        tokens += valid.sum().item<double>();
    }
    FidelityRecord record;
    record.relativeError = std::sqrt(error / energy);
    record.cosine = cosine / tokens;
    record.attentionKl = kl / (tokens * original.heads);
    return record;
}

} // namespace

FidelityRecord blockFidelity(const GqaBlock& original, const MlaBlock& draft, const Tensor& input,
                             const Tensor& target, const Tensor& mask)
{
    return measure(original, draft, input, target, mask);
}

FidelityRecord blockFidelity(const GqaBlock& original, const GqaBlock& changed, const Tensor& input,
                             const Tensor& target, const Tensor& mask)
{
    return measure(original, changed, input, target, mask);
}

} // namespace mla
