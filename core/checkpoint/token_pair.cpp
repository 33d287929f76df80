// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/token_pair.h"

#include <algorithm>

namespace mla
{

bool SharedTokens::contains(int id) const
{
    return id >= 0 && id < size && !std::ranges::binary_search(holes, id);
}

Result<SharedTokens> sharedTokens(const TokenSide& target, const TokenSide& draft)
{
    SharedTokens shared;
    const int longest = std::max(target.tokenizer.size(), draft.tokenizer.size());
    for (int id = 0; id < longest; ++id) {
        const auto ours = target.tokenizer.tokenOf(id), theirs = draft.tokenizer.tokenOf(id);
        if (ours && theirs && *ours != *theirs)
            return badInput("the tokenizers differ: id " + std::to_string(id) + " is '" + *ours +
                                "' in the target and '" + *theirs + "' in the draft",
                            {}, "speculative decoding needs one token table");
        if (ours && theirs && id < std::min(target.rows, draft.rows)) {
            for (int hole = shared.size; hole < id; ++hole)
                shared.holes.push_back(hole);
            shared.size = id + 1;
        } else if (ours && id < target.rows) {
            shared.targetOnly.push_back(id);
        }
    }
    if (shared.size == 0)
        return badInput("the tokenizers of target and draft have no token in common", {},
                        "speculative decoding needs one token table");
    shared.whole = shared.holes.empty() && target.rows == shared.size && draft.rows == shared.size;
    return shared;
}

} // namespace mla
