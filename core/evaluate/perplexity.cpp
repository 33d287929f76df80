// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluate/perplexity.h"

#include <atomic>
#include <cmath>
#include <numeric>

#include "core/model/sampling.h"
#include "core/model/tensors.h"

namespace mla
{
namespace
{

constexpr std::int64_t kRows = 128; // positions whose logits are held at once

struct WindowSums {
    double nll = 0, kl = 0;
    std::int64_t tokens = 0, agreeing = 0;
};

WindowSums sumsOf(const WindowScores& scores)
{
    WindowSums sums;
    sums.nll = scores.nll.sum().item<double>();
    sums.tokens = scores.nll.numel();
    if (scores.kl.defined()) {
        sums.kl = scores.kl.sum().item<double>();
        sums.agreeing = static_cast<std::int64_t>(scores.agreeing.sum().item<double>());
    }
    return sums;
}

/// -log p of each row's own next token, [rows].
torch::Tensor negative(const torch::Tensor& log, const torch::Tensor& next)
{
    return -log.gather(-1, next).squeeze(-1);
}

torch::Tensor joined(const std::vector<torch::Tensor>& blocks)
{
    if (blocks.empty())
        return torch::zeros({0}, torch::kFloat64); // a window of one token
    return torch::cat(blocks).to(torch::kCPU, torch::kFloat64);
}

} // namespace

WindowScores scoreWindow(const Decoder& model, const Decoder* reference,
                         const std::vector<int>& window)
{
    const torch::Tensor ids = idTensor(window, model.device());
    const std::int64_t scored = ids.size(1) - 1;
    const torch::Tensor hidden = model.hiddenStates(ids)[0];
    const torch::Tensor referenceHidden = reference ? reference->hiddenStates(ids)[0] : hidden;
    std::vector<torch::Tensor> nll, referenceNll, kl, agreeing;
    for (std::int64_t first = 0; first < scored; first += kRows) {
        const std::int64_t rows = std::min(kRows, scored - first);
        const torch::Tensor log =
            model.ends().logits(hidden.narrow(0, first, rows)).log_softmax(-1); // [rows, V]
        const torch::Tensor next = ids[0].narrow(0, first + 1, rows).unsqueeze(-1);
        nll.push_back(negative(log, next));
        if (!reference)
            continue;
        const torch::Tensor logReference =
            reference->ends().logits(referenceHidden.narrow(0, first, rows)).log_softmax(-1);
        referenceNll.push_back(negative(logReference, next));
        kl.push_back((logReference.exp() * (logReference - log)).sum(-1));
        agreeing.push_back(log.argmax(-1) == logReference.argmax(-1));
    }
    if (!reference)
        return {joined(nll), {}, {}, {}};
    return {joined(nll), joined(referenceNll), joined(kl), joined(agreeing)};
}

TokenWindows disjointWindows(const std::vector<int>& ids, int length)
{
    TokenWindows windows;
    for (std::size_t begin = 0; begin + 1 < ids.size(); begin += static_cast<std::size_t>(length)) {
        const std::size_t end = std::min(ids.size(), begin + static_cast<std::size_t>(length));
        if (end - begin >= 2)
            windows.emplace_back(ids.begin() + static_cast<std::ptrdiff_t>(begin),
                                 ids.begin() + static_cast<std::ptrdiff_t>(end));
    }
    return windows;
}

Result<PredictionScore> scoreWindows(JobContext& job, const Decoder& model,
                                     const Decoder* reference, const TokenWindows& windows,
                                     int workers)
{
    std::vector<WindowSums> parts(windows.size());
    std::atomic<int> done = 0;
    const int count = static_cast<int>(windows.size());
    MLA_CHECK(parallelFor(job, count, workers, [&](int index) -> Status {
        const auto i = static_cast<std::size_t>(index);
        MLA_CHECK(
            checkIds(model.config(), windows[i], static_cast<std::int64_t>(windows[i].size())));
        parts[i] = sumsOf(scoreWindow(model, reference, windows[i]));
        job.emitEvent(StageProgress{"perplexity", static_cast<double>(++done), count});
        return {};
    }));
    WindowSums all;
    for (const WindowSums& part : parts) {
        all.nll += part.nll;
        all.kl += part.kl;
        all.tokens += part.tokens;
        all.agreeing += part.agreeing;
    }
    if (all.tokens == 0)
        return badInput("nothing to score: at least two tokens are needed");
    const auto n = static_cast<double>(all.tokens);
    return PredictionScore{std::exp(all.nll / n), all.tokens, all.kl / n,
                           static_cast<double>(all.agreeing) / n};
}

} // namespace mla
