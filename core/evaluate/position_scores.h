// SPDX-License-Identifier: GPL-3.0-or-later
// How predictions depend on the position in a text: what partial RoPE may cost at long range
// (design section 5).
#pragma once

#include "core/evaluate/perplexity.h"
#include "core/store/records.h"

namespace mla
{

/// Windows are scored up to this many tokens.
inline constexpr int kMostPositions = 2048;

/// The bucket of a predicting token at `position` (0-based): 0-31, then [2^n, 2^(n+1) - 1].
[[nodiscard]] PositionBucket emptyBucketAt(int position);

/// Perplexity of both models and mean KL(original || draft) by the position of the token that
/// predicts. Every window begins at position 0. Windows of more than kMostPositions tokens are a
/// Usage error; ids outside the vocabulary or the context BadInput. Buckets that no window reaches
/// are left out.
Result<std::vector<PositionBucket>> scorePositions(JobContext& job, const Decoder& original,
                                                   const Decoder& draft,
                                                   const TokenWindows& windows, int workers);

/// All buckets as one, first .. last position.
[[nodiscard]] PositionBucket pooled(const std::vector<PositionBucket>& buckets);

} // namespace mla
