// SPDX-License-Identifier: GPL-3.0-or-later
// Runs an exported directory where people serve it, and compares logits and greedy texts with what
// our own engine computes: of the draft it came from, and of the weights that were written.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/job.h"
#include "core/base/result.h"
#include "core/checkpoint/checkpoint.h"
#include "core/evaluate/perplexity.h"
#include "core/pipeline/pipeline.h"

namespace mla
{

/// Bound of a logit's difference in fp32, over the spread (standard deviation) of the logits.
inline constexpr double kExactBound = 2e-3;
/// Bounds of what a cast of the weights may change, likewise.
inline constexpr double kHalfBound = 0.05, kBrainBound = 0.4;

struct ExportVerification {
    const Checkpoint& draft;
    std::filesystem::path folder; ///< the written directory
    std::string layout;
    double ownBound = kExactBound;  ///< of exported weights beside the draft
    const TokenWindows& windows;    ///< texts; short prompts are cut from them
    const ComputeSettings& compute; ///< device, threads, Python
};
/// The first check is our own engine's; then Transformers' and vLLM's. A stack that is not there or
/// cannot run such a draft is a check with `remark` and no prompts. ComputeFailed, naming the stack
/// and the difference, when one exceeds its bound or a text differs at no near-tie.
Result<std::vector<ExportCheckRecord>> verifyExport(JobContext& job,
                                                    const ExportVerification& request);

} // namespace mla
