// SPDX-License-Identifier: GPL-3.0-or-later
// A target and a draft that are to work together: opened, and their tokens compared.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/token_pair.h"
#include "core/pipeline/accept_prompts.h"
#include "core/pipeline/pipeline.h"

namespace mla
{

struct AcceptPair {
    Checkpoint target, draft;
    Tokenizer tokenizer; ///< the target's
    SharedTokens shared; ///< what either model may choose
    std::string targetFingerprint;
    std::string runId; ///< of the draft; "original" when it is no draft of ours
    std::vector<std::string> warnings;
};

/// BadInput if the token tables contradict each other (sharedTokens), or if a token that ends the
/// target's text is none of the draft's.
Result<AcceptPair> openPair(const AcceptRequest& request);

/// Every token of every prompt must be one of the pair's shared ones; else BadInput names the
/// first.
Status checkPrompts(const AcceptPair& pair, const std::vector<TaskPrompts>& tasks);

} // namespace mla
