// SPDX-License-Identifier: GPL-3.0-or-later
// Speculative decoding: a draft proposes, the target verifies k + 1 tokens in one pass. Greedy
// (longest matching prefix) or by rejection sampling (Leviathan et al. 2023, arXiv 2211.17192):
// accept x ~ q with min(1, p(x) / q(x)), else draw from (p - q)+; the text then has the target's
// own distribution.
#pragma once

#include <optional>
#include <vector>

#include "core/base/job.h"
#include "core/base/result.h"
#include "core/base/settings.h"
#include "core/evaluate/acceptance.h"
#include "core/model/decoder.h"
#include "core/model/sampling.h"

namespace mla
{

/// A model that continues one growing text: what the engine needs of either side.
class TextModel
{
public:
    virtual ~TextModel() = default;
    /// Logits [n, V] behind the tokens of `text` not seen yet; it then knows all of `text`.
    virtual torch::Tensor catchUp(const std::vector<int>& text) = 0;
    /// Forgets everything from position `length` on.
    virtual void rollback(std::int64_t length) = 0;
};

struct SpeculativeResult {
    std::vector<int> ids;         ///< the continuation, EOS included
    std::vector<StepCount> steps; ///< aligned counts (acceptance.h), prompt index 0
    double plainSteps = 0;
    std::vector<float> draftMargins; ///< greedy, per drafted token in order: its top-2 margin
    std::vector<double> overlaps;    ///< sampling, per verified drafted token: sum_v min(p, q)
    double draftSeconds = 0, verifySeconds = 0; ///< proposing; the target's passes and choices
};

/// Continues `prompt` by up to `newTokens`. Greedy output equals the target's own up to numerical
/// near-ties; sampled output has the target's distribution. `generator` is used for sampling only.
/// Counts are aligned to the text: step lengths are min(k, n - p - 1).
Result<SpeculativeResult> speculate(JobContext& job, const Decoder& target, const Decoder& draft,
                                    const std::vector<int>& prompt, int newTokens, int k,
                                    const StopRule& stop, const SamplingRule& rule = {},
                                    torch::Generator* generator = nullptr);

/// The engine itself, over any two models that know all but the last token of `prompt`.
Result<SpeculativeResult> speculate(JobContext& job, TextModel& target, TextModel& draft,
                                    const std::vector<int>& prompt, int newTokens, int k,
                                    const StopRule& stop, const SamplingRule& rule,
                                    torch::Generator* generator);

} // namespace mla
