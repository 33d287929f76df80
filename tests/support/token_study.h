// SPDX-License-Identifier: GPL-3.0-or-later
// A study with two replayed texts of nine tokens whose steps can be followed by hand.
#pragma once

#include "core/store/records.h"

namespace mla::test
{

/// A row over the texts 10 11 12 13 14 15 | 20 21 22, k = 2, whose draft is right at `right`.
inline AcceptanceRecord tokenRow(const std::string& run, const std::vector<int>& right)
{
    AcceptanceRecord record;
    record.id = run;
    record.target = "target";
    record.run = run;
    record.task = "talk";
    record.method = "replay";
    record.k = 2;
    record.settingsJson = "{}";
    record.continuation = "text";
    const std::vector<std::int32_t> ids = {10, 11, 12, 13, 14, 15, 20, 21, 22};
    for (std::size_t i = 0; i < ids.size(); ++i) {
        record.choices.ids.insert(record.choices.ids.end(),
                                  {right[i] ? ids[i] : 99, right[i] ? 99 : ids[i], -1});
        record.choices.probabilities.insert(record.choices.probabilities.end(), {.75, .25, 0});
    }
    return record;
}

inline void addStep(AcceptanceRecord& record, int prompt, int drafted, int accepted)
{
    record.prompt.push_back(prompt);
    record.drafted.push_back(drafted);
    record.accepted.push_back(accepted);
}

inline StudyData tokenStudy()
{
    StudyData data;
    ContinuationRecord text;
    text.id = "text";
    text.target = "target";
    text.task = "talk";
    text.offsets = {0, 6, 9};
    text.ids = {10, 11, 12, 13, 14, 15, 20, 21, 22};
    text.margins.assign(9, 1);
    for (const std::int32_t id : text.ids) {
        text.choices.ids.insert(text.choices.ids.end(), {id, 99, 98});
        text.choices.probabilities.insert(text.choices.probabilities.end(), {.5, .25, .125});
    }
    data.put(text);
    data.put(TokenTextRecord{"target", {10, 11, 99}, {" a", "\n", "\xF0\x9F"}});
    RunRecord run;
    run.id = "functional";
    run.variant = "functional";
    run.converter = "transmla";
    run.kvLoraRank = 4;
    run.qkRopeHeadDim = 2;
    data.put(run);
    // Right everywhere but at position 3 of the first text and 0 of the second.
    AcceptanceRecord draft = tokenRow("functional", {1, 1, 1, 0, 1, 1, 0, 1, 1});
    addStep(draft, 0, 2, 2); // 10 11 accepted, 12 bonus
    addStep(draft, 0, 2, 0); // 13 corrected
    addStep(draft, 0, 1, 1); // 14 accepted, 15 bonus
    addStep(draft, 1, 2, 0); // 20 corrected
    addStep(draft, 1, 1, 1); // 21 accepted, 22 bonus
    data.put(draft);
    // Wrong everywhere; the last token of each text has nothing drafted.
    AcceptanceRecord original = tokenRow("original", {0, 0, 0, 0, 0, 0, 0, 0, 0});
    for (const int drafted : {2, 2, 2, 2, 1})
        addStep(original, 0, drafted, 0);
    for (const int drafted : {2, 1})
        addStep(original, 1, drafted, 0);
    original.plainSteps = 2;
    data.put(original);
    return data;
}

} // namespace mla::test
