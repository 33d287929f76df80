// SPDX-License-Identifier: GPL-3.0-or-later
// Speculative decoding of one prompt after another, by this program's own engine or by a Python
// backend, with counts that follow one rule.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/backends/python_backend.h"
#include "core/base/job.h"
#include "core/base/result.h"
#include "core/evaluate/acceptance.h"
#include "core/model/decoder.h"
#include "core/model/sampling.h"
#include "core/pipeline/accept_pair.h"

namespace mla
{

struct EngineText {
    std::vector<int> ids; ///< the continuation, EOS included
    AlignedCounts counts; ///< prompt index 0
    double seconds = 0;
    std::optional<double> draftSeconds, verifySeconds; ///< parts of `seconds`, where they are known
    std::optional<BackendText::OwnCounts> own;         ///< a Python backend's, as it counts
};

class AcceptEngine
{
public:
    virtual ~AcceptEngine() = default;
    /// `index` of the prompt among all prompts of the run: decides the random numbers of sampling.
    virtual Result<EngineText> speculate(JobContext& job, const std::vector<int>& prompt,
                                         int index) = 0;
    [[nodiscard]] virtual bool parallel() const = 0;        ///< speculate() from several threads
    [[nodiscard]] virtual std::string software() const = 0; ///< beside this program; may be empty
    virtual Status finish(JobContext& job) = 0;
};

/// The engine of this program. The models and `stop` must outlive it. Without a draft it decodes
/// plainly, the baseline of every speed-up.
std::unique_ptr<AcceptEngine> nativeEngine(const Decoder& target, const Decoder* draft,
                                           const AcceptRequest& request, const StopRule& stop);
/// `longestPrompt` in tokens. Ids that `shared` does not hold are never chosen. `plain`: without
/// the draft.
Result<std::unique_ptr<AcceptEngine>> pythonEngine(JobContext& job, const AcceptRequest& request,
                                                   const AcceptPair& pair, int longestPrompt,
                                                   bool plain);

} // namespace mla
