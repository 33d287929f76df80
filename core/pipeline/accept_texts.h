// SPDX-License-Identifier: GPL-3.0-or-later
// The target's own texts that drafts are measured on: generated once, kept in the study.
#pragma once

#include <string>
#include <vector>

#include "core/model/decoder.h"
#include "core/model/sampling.h"
#include "core/pipeline/accept_pair.h"

namespace mla
{

inline constexpr std::uint64_t acceptanceStream = 0xACCE97; ///< of random numbers

/// Everything that one task's texts depend on.
struct TextRequest {
    const AcceptRequest& request;
    const AcceptPair& pair;
    const TaskPrompts& task;
    const StopRule& stop;
    int firstPrompt = 0; ///< number of the task's first prompt in the run: part of a sample's seed
    int workers = 1;
};
struct TargetTexts {
    std::string id; ///< ContinuationRecord::id: a hash of all that decides the text
    std::vector<Continuation> texts;
};
/// The texts that the target gives by itself under the settings' rule.
Result<TargetTexts> targetTexts(JobContext& job, const TextRequest& what, const Decoder& target);

/// A token's text within a text; nothing for an id without a token. Decoders treat the first token
/// of a text in their own way, so it is told from what a second one adds.
std::optional<std::string> tokenText(const Tokenizer& tokenizer, int id);

/// Texts of all tokens of `ids` for a study; ids that are no token are left out.
TokenTextRecord tokenTexts(const AcceptPair& pair, const std::string& checkpoint,
                           const std::vector<std::int32_t>& ids);

} // namespace mla
