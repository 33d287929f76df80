// SPDX-License-Identifier: GPL-3.0-or-later
// Speculative decoding, greedy: a draft proposes, the target verifies k + 1 tokens in one pass.
#pragma once

#include <optional>
#include <vector>

#include "core/base/job.h"
#include "core/base/result.h"
#include "core/evaluate/acceptance.h"
#include "core/model/decoder.h"
#include "core/model/sampling.h"

namespace mla
{

struct SpeculativeResult {
    std::vector<int> ids;         ///< the continuation, EOS included
    std::vector<StepCount> steps; ///< aligned counts (acceptance.h), prompt index 0
    std::int64_t plainSteps = 0;
    std::vector<float> draftMargins; ///< per drafted token, in order: the draft's top-2 margin
};

/// Continues `prompt` by up to `newTokens`. Output equals the target's own greedy output up to
/// numerical near-ties. Counts are aligned to the text: step lengths are min(k, n - p - 1).
Result<SpeculativeResult> speculate(JobContext& job, const Decoder& target, const Decoder& draft,
                                    const std::vector<int>& prompt, int newTokens, int k,
                                    const StopRule& stop);

} // namespace mla
