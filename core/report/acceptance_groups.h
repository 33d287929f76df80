// SPDX-License-Identifier: GPL-3.0-or-later
// Acceptance rows brought together for comparison: only rows measured in the same way are pooled.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/evaluate/recorded_steps.h"
#include "core/store/records.h"

namespace mla
{

using AcceptanceRows = std::vector<const AcceptanceRecord*>;

/// What must be equal before two rows may be pooled.
struct Protocol {
    int k = 0;
    std::string target;
    std::string method; ///< "native replay, greedy", "vllm speculative, T = 0.7, chat template"
    auto operator<=>(const Protocol&) const = default;
};
[[nodiscard]] Protocol protocolOf(const AcceptanceRecord& row);
[[nodiscard]] std::vector<Protocol> protocolsOf(const AcceptanceRows& rows); ///< sorted, unique

/// One draft's rows of one protocol.
struct DraftRows {
    const RunRecord* run =
        nullptr; ///< null for the unconverted draft, if the study has no run of it
    std::string variant;
    AcceptanceRows rows;
};
/// Everything one converter's drafts did under one protocol, the original first, then in the order
/// of the study's runs. `converter` is empty if only the original was measured.
struct AcceptanceGroup {
    std::string converter;
    Protocol protocol;
    std::vector<DraftRows> drafts;
};
/// Sorted by converter in the order of the study's runs, then by protocol.
[[nodiscard]] std::vector<AcceptanceGroup> acceptanceGroups(const StudyData& study);

/// A name for the group in ids and titles: longer only if the study holds several protocols of a k.
struct GroupName {
    std::string id, title;
};
[[nodiscard]] GroupName nameOf(const AcceptanceGroup& group,
                               const std::vector<AcceptanceGroup>& all);
/// The variant alone, unless two drafts of the group share it.
[[nodiscard]] std::string draftName(const AcceptanceGroup& group, const DraftRows& draft);

/// "greedy", or "T = 0.7, top-k 20, top-p 0.9".
[[nodiscard]] std::string samplingText(const AcceptanceRecord& row);

/// All rows of a run ("original" for the unconverted draft).
[[nodiscard]] AcceptanceRows rowsOf(const StudyData& study, const std::string& run);
/// Raw steps of all rows; prompts of different rows stay different prompts.
[[nodiscard]] std::vector<StepCount> pooledSteps(const AcceptanceRows& rows);
[[nodiscard]] AcceptanceMetrics pooledMetrics(const AcceptanceRows& rows);
/// By task, in order of first appearance in `rows`.
[[nodiscard]] std::vector<std::pair<std::string, AcceptanceRows>>
rowsByTask(const AcceptanceRows& rows);
/// Mean of the tasks' pooled rates.
[[nodiscard]] double meanTaskRate(const AcceptanceRows& rows);

} // namespace mla
