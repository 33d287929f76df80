// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/token_distribution.h"

#include <algorithm>
#include <limits>

namespace mla
{

namespace
{

constexpr double minusInfinity = -std::numeric_limits<double>::infinity();

torch::Tensor keepTopK(const torch::Tensor& logits, int k)
{
    const std::int64_t kept = std::min<std::int64_t>(k, logits.size(-1));
    const torch::Tensor smallest = std::get<0>(logits.topk(kept)).narrow(-1, kept - 1, 1);
    return logits.masked_fill(logits < smallest, minusInfinity);
}

/// Keeps the most probable tokens until their sum reaches topP; the most probable one always.
torch::Tensor keepTopP(const torch::Tensor& logits, double topP)
{
    const auto [sorted, order] = logits.sort(/*dim=*/-1, /*descending=*/true);
    const torch::Tensor probabilities = sorted.softmax(-1);
    const torch::Tensor before = probabilities.cumsum(-1) - probabilities;
    torch::Tensor dropped = before >= topP;
    dropped.select(-1, 0).fill_(false);
    return logits.masked_fill(torch::zeros_like(dropped).scatter(-1, order, dropped),
                              minusInfinity);
}

} // namespace

torch::Tensor tokenProbabilities(const torch::Tensor& logits, const SamplingRule& rule)
{
    torch::Tensor scaled = logits.to(torch::kCPU, torch::kFloat64) / rule.temperature;
    if (rule.topK > 0)
        scaled = keepTopK(scaled, rule.topK);
    if (rule.topP < 1)
        scaled = keepTopP(scaled, rule.topP);
    return scaled.softmax(-1);
}

double drawUniform(torch::Generator& generator)
{
    return torch::rand({1}, generator, torch::kFloat64).item<double>();
}

int drawToken(const torch::Tensor& probabilities, torch::Generator& generator)
{
    const torch::Tensor weights = probabilities.contiguous();
    const double* values = weights.data_ptr<double>();
    const std::int64_t count = weights.numel();
    double left = drawUniform(generator) * weights.sum().item<double>();
    std::int64_t last = 0; // rounding may leave a rest after all of them
    for (std::int64_t i = 0; i < count; ++i) {
        if (values[i] <= 0)
            continue;
        last = i;
        left -= values[i];
        if (left < 0)
            break;
    }
    return static_cast<int>(last);
}

int drawResidual(const torch::Tensor& p, const torch::Tensor& q, torch::Generator& generator)
{
    const torch::Tensor rest = (p - q).clamp_min(0);
    return drawToken(rest.sum().item<double>() > 0 ? rest : p, generator);
}

double overlap(const torch::Tensor& p, const torch::Tensor& q)
{
    return torch::minimum(p, q).sum().item<double>();
}

} // namespace mla
