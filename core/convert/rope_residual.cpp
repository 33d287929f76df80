// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/convert/rope_residual.h"

#include <algorithm>
#include <cmath>

namespace mla
{
namespace
{

constexpr double kBinsPerOctave = 2;

/// Index of the log-spaced bin of a distance; distance 0 has a bin of its own.
int binOf(std::int64_t distance)
{
    return distance == 0
               ? 0
               : 1 + static_cast<int>(std::floor(
                         kBinsPerOctave * std::log2(static_cast<double>(distance)) + 1e-9));
}

} // namespace

void measureScoreResidual(const GqaBlock& original, const MlaBlock& fullRankBlock,
                          const torch::Tensor& x, const torch::Tensor& mask, RopeRecord& record)
{
    const torch::NoGradGuard noGrad;
    const std::int64_t length = x.size(1);
    torch::Tensor sum = torch::zeros({length}, torch::kFloat64);
    torch::Tensor count = torch::zeros({length}, torch::kFloat64);
    for (std::int64_t row = 0; row < x.size(0); ++row) {
        const torch::Tensor one = x.narrow(0, row, 1);
        const auto [q, k] = rotatedQueriesKeys(original, one);
        const auto [qm, km] = rotatedQueriesKeys(fullRankBlock, one);
        const torch::Tensor change =
            (torch::matmul(qm, km.transpose(-1, -2)) * fullRankBlock.scale -
             torch::matmul(q, k.transpose(-1, -2)) * original.scale)
                .abs()
                .mean(1)[0]
                .to(torch::kCPU, torch::kFloat64); // [T, T]
        const std::int64_t valid = mask[row].sum().item<std::int64_t>();
        const std::int64_t seen = original.window > 0 ? std::min(valid, original.window) : valid;
        for (std::int64_t distance = 0; distance < seen; ++distance) {
            // Queries distance .. valid-1 against keys `distance` before them: one diagonal.
            const torch::Tensor diagonal =
                change.narrow(0, 0, valid).narrow(1, 0, valid).diagonal(-distance);
            sum[distance] += diagonal.sum();
            count[distance] += static_cast<double>(diagonal.numel());
        }
    }
    const int bins = binOf(length - 1) + 1;
    std::vector<double> total(static_cast<std::size_t>(bins)), pairs(total), weighted(total);
    for (std::int64_t distance = 0; distance < length; ++distance) {
        const auto bin = static_cast<std::size_t>(binOf(distance));
        const double n = count[distance].item<double>();
        total[bin] += sum[distance].item<double>();
        pairs[bin] += n;
        weighted[bin] += n * static_cast<double>(distance);
    }
    record.distance.clear();
    record.scoreResidual.clear();
    for (std::size_t bin = 0; bin < total.size(); ++bin) {
        if (pairs[bin] == 0)
            continue;
        record.distance.push_back(weighted[bin] / pairs[bin]);
        record.scoreResidual.push_back(total[bin] / pairs[bin]);
    }
}

} // namespace mla
