// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pipeline/accept_pair.h"

#include "core/export/imported_draft.h"

namespace mla
{
namespace
{

std::string tokenText(const Tokenizer& tokenizer, int id)
{
    const std::optional<std::string> token = tokenizer.tokenOf(id);
    return "id " + std::to_string(id) + (token ? " '" + *token + "'" : std::string());
}

Status checkEnds(const AcceptPair& pair)
{
    for (const int id : pair.target.config().eosTokenIds)
        if (pair.tokenizer.tokenOf(id) && !pair.shared.contains(id))
            return badInput("the target ends its texts with " + tokenText(pair.tokenizer, id) +
                                ", which the draft does not know",
                            pair.draft.directory().string(),
                            "use a draft whose tokenizer has the target's end-of-text tokens");
    return {};
}

} // namespace

Result<AcceptPair> openPair(const AcceptRequest& request)
{
    MLA_TRY(target, Checkpoint::open(request.target));
    MLA_TRY(draft, Checkpoint::open(request.draft));
    MLA_TRY(targetTokens, Tokenizer::open(request.target));
    MLA_TRY(draftTokens, Tokenizer::open(request.draft));
    MLA_TRY(shared, sharedTokens({targetTokens, target.config().vocabSize},
                                 {draftTokens, draft.config().vocabSize}));
    MLA_TRY(fingerprint, target.fingerprint());
    AcceptPair pair{std::move(target),
                    std::move(draft),
                    std::move(targetTokens),
                    std::move(shared),
                    std::move(fingerprint),
                    "original",
                    {}};
    if (pair.draft.config().isMla()) {
        MLA_TRY(meta, draftMeta(pair.draft));
        pair.runId = meta.runId;
    }
    MLA_CHECK(checkEnds(pair));
    if (const std::vector<int>& lost = pair.shared.targetOnly; !lost.empty())
        pair.warnings.push_back("the draft does not know " + std::to_string(lost.size()) +
                                " of the target's tokens, from " +
                                tokenText(pair.tokenizer, lost.front()) +
                                " on: neither model may choose them here");
    return pair;
}

Status checkPrompts(const AcceptPair& pair, const std::vector<TaskPrompts>& tasks)
{
    for (const TaskPrompts& task : tasks)
        for (std::size_t i = 0; i < task.prompts.size(); ++i)
            for (const int id : task.prompts[i])
                if (!pair.shared.contains(id))
                    return badInput("prompt " + std::to_string(i + 1) + " of task " + task.name +
                                        " holds " + tokenText(pair.tokenizer, id) +
                                        ", which is no token of both models",
                                    pair.draft.directory().string());
    return {};
}

} // namespace mla
