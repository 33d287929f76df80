// SPDX-License-Identifier: GPL-3.0-or-later
// A continuation token by token: what each draft would have proposed, and what the target made of
// it. Of replays, which keep both models' likeliest choices. No torch here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/report/tables.h"
#include "core/store/records.h"

namespace mla
{

/// One task's continuations as replayed with one k.
struct TokenSource {
    std::string continuation; ///< ContinuationRecord::id
    std::string target;       ///< CheckpointRecord::id
    std::string task;
    int k = 0;
    int prompts = 0;
    auto operator<=>(const TokenSource&) const = default;
};
/// Greedy replays only: a replay of sampling has expected steps, not steps. In the study's order.
[[nodiscard]] std::vector<TokenSource> tokenSources(const StudyData& study);

/// What became of a position of the text, in the steps of one draft.
enum class TokenMark {
    Accepted,  ///< drafted and accepted
    Corrected, ///< the draft proposed another token; this one is the target's
    Bonus,     ///< the whole draft was accepted; this one came free with its verification
    Plain,     ///< nothing was drafted here: the end of the text
};
[[nodiscard]] std::string
markName(TokenMark mark); ///< "accepted", "rejected", "bonus", "not drafted"

struct TokenChoice {
    std::int32_t id = -1;
    std::string text; ///< visible, see visibleToken()
    double probability = 0;
};
struct TextToken {
    std::int32_t id = 0;
    std::string text;
    std::vector<TokenChoice> choices; ///< the target's, best first; empty in older studies
};
struct DraftToken {
    TokenMark mark = TokenMark::Plain;
    std::vector<TokenChoice> choices; ///< the draft's, best first
};
struct DraftLine {
    std::string run;     ///< RunRecord::id or "original"
    std::string name;    ///< for people
    std::string variant; ///< of the run
    std::vector<DraftToken> tokens;
};
struct TokenText {
    std::vector<TextToken> tokens;
    std::vector<DraftLine> drafts; ///< each with as many tokens; the original first
};
/// `prompt`: 0-based. Drafts whose steps do not cover the text are left out.
[[nodiscard]] TokenText tokenText(const StudyData& study, const TokenSource& source, int prompt);

/// One row per token: position, token, the target's choice; of each draft its proposal and mark.
[[nodiscard]] Table tokenTable(const TokenText& text, const TokenSource& source, int prompt);

/// A token's bytes as readable text: "␣" for a space, "⏎", "⇥", "\xE2" for bytes that are no whole
/// UTF-8 character, "\x07" for other control characters.
[[nodiscard]] std::string visibleToken(const std::string& bytes);

/// Per prompt and position the probability that the row's draft is accepted there; 0 or 1 of a
/// greedy replay. Empty if the row or the study does not hold it.
[[nodiscard]] std::vector<std::vector<double>> acceptanceChances(const StudyData& study,
                                                                 const AcceptanceRecord& row);

} // namespace mla
