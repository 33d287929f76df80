// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/convert/rank_spectrum.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mla
{

std::vector<double> toVector(const torch::Tensor& values)
{
    const torch::Tensor t = values.to(torch::kCPU, torch::kFloat64).contiguous();
    const double* data = t.data_ptr<double>();
    return {data, data + t.numel()};
}

std::vector<double> weightSpectrum(const GqaBlock& block)
{
    const torch::Tensor stacked =
        torch::cat({block.wk, block.wv}, 0).to(torch::kCPU, torch::kFloat64);
    return toVector(torch::linalg_svdvals(stacked));
}

std::vector<double> singularFromEigen(const torch::Tensor& eigenvalues)
{
    return toVector(eigenvalues.flip(0).clamp_min(0).sqrt());
}

SpectrumRecord spectrumAtRank(std::vector<double> weights, std::vector<double> activations,
                              int rank)
{
    SpectrumRecord record;
    record.weights = std::move(weights);
    record.rank = rank;
    double total = 0, kept = 0, entropy = 0;
    for (std::size_t i = 0; i < activations.size(); ++i) {
        const double energy = activations[i] * activations[i];
        total += energy;
        if (i < static_cast<std::size_t>(rank))
            kept += energy;
    }
    if (total > 0) {
        for (const double sigma : activations) {
            const double share = sigma * sigma / total;
            if (share > 0)
                entropy -= share * std::log(share);
        }
        record.retainedEnergy = kept / total;
        record.effectiveRank = std::exp(entropy);
        record.tailBound = std::sqrt(std::max(0.0, 1.0 - record.retainedEnergy));
    }
    record.activations = std::move(activations);
    return record;
}

SpectrumRecord keyValueSpectrum(const GqaBlock& block, const torch::Tensor& x,
                                const torch::Tensor& mask)
{
    const GqaProjections p = project(block, x);
    const torch::Tensor valid = mask.reshape({-1}).to(x.device());
    const auto rows = [&](const torch::Tensor& heads) { // [N, G, T, h] -> [n, G h] fp64
        return heads.transpose(1, 2).flatten(2).flatten(0, 1).index({valid}).to(torch::kCPU,
                                                                                torch::kFloat64);
    };
    const torch::Tensor keys = rows(p.k), values = rows(p.v);
    const torch::Tensor rho = keys.norm(2, {0}).mean() / values.norm(2, {0}).mean();
    const torch::Tensor joint = torch::cat({keys / rho, values}, 1);
    return spectrumAtRank(weightSpectrum(block),
                          singularFromEigen(torch::linalg_eigvalsh(joint.t().matmul(joint))), 0);
}

} // namespace mla
