// SPDX-License-Identifier: GPL-3.0-or-later
// Greedy acceptance without generation by the draft: one teacher-forced pass over the target's
// continuation tells where the draft would have proposed the same token, for every k at once.
#pragma once

#include <vector>

#include "core/base/result.h"
#include "core/model/decoder.h"
#include "core/model/sampling.h"

namespace mla
{

struct ReplayResult {
    std::vector<bool> matches;  ///< [n] the draft's greedy choice equals continuation[i]
    std::vector<float> margins; ///< [n] top-2 margin of the draft's logits there
};

/// `continuation`: the target's greedy continuation of `prompt`, EOS included.
Result<ReplayResult> replay(const Decoder& draft, const std::vector<int>& prompt,
                            const std::vector<int>& continuation, const StopRule& stop);

} // namespace mla
