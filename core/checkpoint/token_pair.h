// SPDX-License-Identifier: GPL-3.0-or-later
// Which tokens a target and a draft have in common. No torch here.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/checkpoint/tokenizer.h"

namespace mla
{

/// One model of a pair: its token table, and the rows of its embedding and head (vocab_size),
/// which are often padded beyond the table.
struct TokenSide {
    const Tokenizer& tokenizer;
    int rows = 0;
};

/// An id is shared if both tables give it the same token and both models have a row for it. Every
/// other id is padding, or a token that one model does not know: in speculative decoding neither
/// model may choose it.
struct SharedTokens {
    int size = 0;           ///< 1 + the largest shared id
    std::vector<int> holes; ///< ids below `size` that are not shared
    /// Tokens that the target can say and the draft does not know, ascending: masking them changes
    /// what the target says alone.
    std::vector<int> targetOnly;
    bool whole = false; ///< every row of both models is shared: nothing to mask

    [[nodiscard]] bool contains(int id) const;
};

/// BadInput if an id has different tokens in the two tables (the first such id and both tokens are
/// named), or if nothing is shared.
Result<SharedTokens> sharedTokens(const TokenSide& target, const TokenSide& draft);

} // namespace mla
