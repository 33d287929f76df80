// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluate/replay.h"

#include <algorithm>

#include "core/model/token_distribution.h"

namespace mla
{

Result<ReplayResult> replay(const Decoder& draft, const std::vector<int>& prompt,
                            const Continuation& continuation, const StopRule& stop,
                            const SamplingRule& rule)
{
    ReplayResult out;
    const std::vector<int>& ids = continuation.ids;
    if (ids.empty())
        return out;
    TORCH_CHECK(rule.greedy() || continuation.drawn.size() == ids.size(),
                "a sampled text needs the probability of each token");
    std::vector<int> text = prompt;
    text.insert(text.end(), ids.begin(), ids.end());
    MLA_CHECK(checkIds(draft.config(), text, static_cast<std::int64_t>(text.size())));
    const torch::NoGradGuard noGrad;
    const auto start = static_cast<std::int64_t>(prompt.size());
    const auto length = static_cast<std::int64_t>(ids.size());
    const torch::Tensor hidden = draft.hiddenStates(idTensor(text, draft.device()))[0];
    const torch::Tensor logits = draft.ends().logits(hidden.narrow(0, start - 1, length));
    for (std::int64_t i = 0; i < length; ++i) {
        const torch::Tensor allowed = allowedLogits(logits[i], stop, static_cast<int>(i));
        const auto at = static_cast<std::size_t>(i);
        out.matches.push_back(allowed.argmax(-1).item<int>() == ids[at]);
        out.margins.push_back(
            appendTopTokens(allowed, keptChoices, out.topIds, out.topProbabilities));
        if (!rule.greedy()) {
            const double q = tokenProbabilities(allowed, rule)[ids[at]].item<double>();
            out.acceptProbability.push_back(std::min(1.0, q / continuation.drawn[at]));
        }
    }
    return out;
}

} // namespace mla
