// SPDX-License-Identifier: GPL-3.0-or-later
// Acceptance without generation by the draft: one teacher-forced pass over the target's
// continuation tells where the draft would have proposed the same token (greedy), or with what
// probability it would have been accepted (sampling), for every k at once.
#pragma once

#include <vector>

#include "core/base/result.h"
#include "core/model/decoder.h"
#include "core/model/sampling.h"

namespace mla
{

struct ReplayResult {
    std::vector<bool> matches;  ///< [n] the draft's greedy choice equals continuation.ids[i]
    std::vector<float> margins; ///< [n] top-2 margin of the draft's logits there
    /// [n] sampling only: min(1, q / p) of the text's own token, for expectedCounts()
    std::vector<double> acceptProbability;
    std::vector<std::int32_t> topIds;    ///< [n, 3] the draft's likeliest tokens
    std::vector<float> topProbabilities; ///< [n, 3]
};

/// `continuation`: the target's own continuation of `prompt` under `rule`, EOS included.
Result<ReplayResult> replay(const Decoder& draft, const std::vector<int>& prompt,
                            const Continuation& continuation, const StopRule& stop,
                            const SamplingRule& rule = {});

} // namespace mla
