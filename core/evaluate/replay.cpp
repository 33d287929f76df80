// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluate/replay.h"

namespace mla
{

Result<ReplayResult> replay(const Decoder& draft, const std::vector<int>& prompt,
                            const std::vector<int>& continuation, const StopRule& stop)
{
    ReplayResult out;
    if (continuation.empty())
        return out;
    std::vector<int> text = prompt;
    text.insert(text.end(), continuation.begin(), continuation.end());
    MLA_CHECK(checkIds(draft.config(), text, static_cast<std::int64_t>(text.size())));
    const torch::NoGradGuard noGrad;
    const auto start = static_cast<std::int64_t>(prompt.size());
    const auto length = static_cast<std::int64_t>(continuation.size());
    const torch::Tensor hidden = draft.hiddenStates(idTensor(text, draft.device()))[0];
    const torch::Tensor logits = draft.ends().logits(hidden.narrow(0, start - 1, length));
    for (std::int64_t i = 0; i < length; ++i) {
        const torch::Tensor allowed = allowedLogits(logits[i], stop, static_cast<int>(i));
        const int choice = allowed.argmax(-1).item<int>();
        out.matches.push_back(choice == continuation[static_cast<std::size_t>(i)]);
        out.margins.push_back(topTwoMargin(allowed).item<float>());
    }
    return out;
}

} // namespace mla
