// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluate/speculative.h"

#include <algorithm>

namespace mla
{
namespace
{

/// One model with its cache over prompt + continuation so far.
struct Runner {
    const Decoder& model;
    KvCache cache;
    /// Logits of the tokens of `text` that the cache does not hold yet: [n, V].
    torch::Tensor catchUp(const std::vector<int>& text)
    {
        const std::vector<int> fresh(text.begin() + static_cast<std::ptrdiff_t>(cache.length()),
                                     text.end());
        return model.step(idTensor(fresh, model.device()), cache)[0];
    }
};

} // namespace

Result<SpeculativeResult> speculate(JobContext& job, const Decoder& target, const Decoder& draft,
                                    const std::vector<int>& prompt, int newTokens, int k,
                                    const StopRule& stop)
{
    const std::int64_t total = static_cast<std::int64_t>(prompt.size()) + newTokens;
    MLA_CHECK(checkIds(target.config(), prompt, total));
    MLA_CHECK(checkIds(draft.config(), prompt, total));
    const torch::NoGradGuard noGrad;
    const auto start = static_cast<std::int64_t>(prompt.size());
    Runner verifier{target, target.makeCache(1, total)}, proposer{draft, draft.makeCache(1, total)};
    // All but the last prompt token; each later pass begins with the newest certain token.
    std::vector<int> text = prompt;
    if (start > 1) {
        const std::vector<int> head(prompt.begin(), prompt.end() - 1);
        (void)target.stepLast(idTensor(head, target.device()), verifier.cache);
        (void)draft.stepLast(idTensor(head, draft.device()), proposer.cache);
    }
    SpeculativeResult out;
    std::vector<std::pair<int, int>> begun; // position of each step, and what it accepted
    bool ended = false;
    while (!ended && static_cast<int>(out.ids.size()) < newTokens) {
        if (job.stopRequested())
            return cancelled();
        const int position = static_cast<int>(out.ids.size());
        const int drafted = std::min(k, newTokens - position - 1);
        std::vector<int> proposal = text;
        for (int i = 0; i < drafted; ++i) {
            const torch::Tensor logits = proposer.catchUp(proposal);
            const torch::Tensor allowed =
                allowedLogits(logits[logits.size(0) - 1], stop, position + i);
            proposal.push_back(allowed.argmax(-1).item<int>());
            out.draftMargins.push_back(topTwoMargin(allowed).item<float>());
        }
        const torch::Tensor logits = verifier.catchUp(proposal); // [drafted + 1, V]
        int accepted = 0;
        while (!ended) {
            const torch::Tensor row = logits[logits.size(0) - drafted - 1 + accepted];
            const int token = greedyTokens(row, stop, position + accepted).item<int>();
            text.push_back(token);
            out.ids.push_back(token);
            ended = stop.isEos(token);
            if (accepted == drafted || proposal[text.size() - 1] != token)
                break; // this token was the target's own
            ++accepted;
        }
        // What lies behind the last certain token but one is void in both caches.
        verifier.cache.rollback(static_cast<std::int64_t>(text.size()) - 1);
        proposer.cache.rollback(static_cast<std::int64_t>(text.size()) - 1);
        begun.emplace_back(position, accepted);
    }
    // Drafts are counted against the text that came out: what was proposed past its end is not.
    const int length = static_cast<int>(out.ids.size());
    for (const auto& [position, accepted] : begun) {
        const int drafted = std::min(k, length - position - 1);
        if (drafted > 0)
            out.steps.push_back({0, drafted, std::min(accepted, drafted)});
        else
            ++out.plainSteps;
    }
    return out;
}

} // namespace mla
