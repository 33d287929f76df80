// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/convert/rope_selection.h"

#include <algorithm>

namespace mla
{

using torch::Tensor;

std::vector<std::string> ropeSelections()
{
    return {"2-norm", "high", "low", "uniform", "distance-weighted"};
}

namespace
{

Tensor heads(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& norm,
             double eps, int count)
{
    const auto f64 = [](const Tensor& t) {
        return t.defined() ? t.to(torch::kCPU, torch::kFloat64) : Tensor();
    };
    const Tensor t =
        torch::linear(x, f64(weight), f64(bias)).view({x.size(0), count, -1}); // [n, heads, h]
    return norm.defined() ? t * torch::rsqrt(t.pow(2).mean(-1, true) + eps) * f64(norm) : t;
}

} // namespace

Tensor queryHeads(const GqaBlock& block, const Tensor& x)
{
    return heads(x, block.wq, block.bq, block.qNorm, block.normEps, block.heads);
}

Tensor keyHeads(const GqaBlock& block, const Tensor& x)
{
    return heads(x, block.wk, block.bk, block.kNorm, block.normEps, block.kvHeads);
}

Tensor pairScores(const GqaBlock& block, const Tensor& x)
{
    const auto norms = [&](const Tensor& t) { // [heads, h/2]
        return t.view({t.size(0), t.size(1), 2, block.headDim / 2}).norm(2, {2}).mean(0);
    };
    const Tensor q = norms(queryHeads(block, x));
    return norms(keyHeads(block, x)) * q.view({block.kvHeads, block.group(), -1}).sum(1);
}

Tensor rotationImportance(const Tensor& frequencies)
{
    constexpr int kDistances = 256; // the window over which drafts of a few hundred tokens attend
    const Tensor theta = frequencies.to(torch::kCPU, torch::kFloat64).reshape({1, -1});
    const Tensor distance = torch::arange(kDistances, theta.options()).unsqueeze(1);
    return (2 * (1 - (distance * theta).cos())).clamp_min(0).sqrt().mean(0);
}

namespace
{

std::vector<int> largest(const Tensor& scores, int count)
{
    const Tensor order =
        scores.argsort(/*stable=*/true, /*dim=*/0, /*descending=*/true).narrow(0, 0, count);
    std::vector<int> pairs;
    for (int i = 0; i < count; ++i)
        pairs.push_back(order[i].item<int>());
    std::sort(pairs.begin(), pairs.end());
    return pairs;
}

} // namespace

Result<std::vector<std::vector<int>>> selectPairs(const std::string& mode, int count,
                                                  const Tensor& scores, const Tensor& frequencies)
{
    const auto heads = static_cast<std::size_t>(scores.size(0));
    const int pairs = static_cast<int>(scores.size(1));
    if (mode == "2-norm" || mode == "distance-weighted") {
        const Tensor weighted =
            mode == "2-norm" ? scores : scores * rotationImportance(frequencies);
        std::vector<std::vector<int>> chosen;
        for (std::size_t head = 0; head < heads; ++head)
            chosen.push_back(largest(weighted[static_cast<std::int64_t>(head)], count));
        return chosen;
    }
    std::vector<int> same;
    for (int i = 0; i < count; ++i) {
        if (mode == "high")
            same.push_back(i);
        else if (mode == "low")
            same.push_back(pairs - count + i);
        else if (mode == "uniform")
            same.push_back(i * pairs / count);
        else
            return usageError("--rope-select " + mode +
                              ": expected 2-norm, high, low, uniform or distance-weighted");
    }
    return std::vector<std::vector<int>>(heads, same);
}

} // namespace mla
