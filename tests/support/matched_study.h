// SPDX-License-Identifier: GPL-3.0-or-later
// A study with matched cells whose numbers can be followed by hand: each row is one step of 10
// drafted tokens a prompt.
#pragma once

#include "core/store/records.h"

namespace mla::test
{

inline RunRecord matchedRun(const std::string& conversion, const std::string& variant,
                            std::uint64_t seed = 0)
{
    RunRecord run;
    const std::string stem = "small/" + conversion;
    run.id = stem + "/" + variant + (seed > 0 ? "-s" + std::to_string(seed) : "");
    run.variant = variant;
    run.converter = conversion.substr(0, conversion.find('-'));
    run.checkpoint = "small";
    run.calibration = "calibration-" + std::to_string(seed);
    run.seed = seed;
    run.kvLoraRank = 4;
    run.qkRopeHeadDim = 2;
    run.cacheElements = 6;
    if (variant == "converted") {
        run.settingsJson = R"({"compute": {"seed": )" + std::to_string(seed) +
                           R"(}, "convert": {"conversion": ")" + conversion + "\"}}";
        return run;
    }
    run.parent = stem + "/converted" + (seed > 0 ? "-s" + std::to_string(seed) : "");
    run.settingsJson =
        R"({"learning_rate": 0.002, "refine": {"steps": 45, "objective": ")" + variant + "\"}}";
    return run;
}

/// `accepted`: of 10 drafted tokens, one entry a prompt.
inline AcceptanceRecord matchedRow(const std::string& run, const std::string& task,
                                   const std::vector<std::int32_t>& accepted)
{
    AcceptanceRecord row;
    row.id = run + "|" + task;
    row.target = "large";
    row.run = run;
    row.task = task;
    row.method = "replay";
    row.k = 10;
    row.settingsJson = R"({"k": 10, "max_new_tokens": 64, "limit": null, "min_new_tokens": 0})";
    row.accepted = accepted;
    row.drafted.assign(accepted.size(), 10);
    for (std::size_t i = 0; i < accepted.size(); ++i)
        row.prompt.push_back(static_cast<std::int32_t>(i));
    return row;
}

/// Two converters on two tasks; functional gains, ties and declines.
inline StudyData matchedStudy()
{
    StudyData study;
    study.put(CheckpointRecord{"small", "models/small", "f", R"({"model_type": "qwen2"})"});
    for (const char* conversion : {"transmla-4+2", "mha2mla-4+2"})
        for (const char* variant : {"converted", "partial-rope", "functional"})
            study.put(matchedRun(conversion, variant));
    const auto add = [&study](const std::string& run, std::vector<std::int32_t> code,
                              std::vector<std::int32_t> chat) {
        study.put(matchedRow(run, "code", code));
        study.put(matchedRow(run, "chat", chat));
    };
    add("original", {8, 10}, {6, 6});                       // 90 %, 60 %
    add("small/transmla-4+2/converted", {2, 4}, {6, 6});    // 30 %, 60 %
    add("small/transmla-4+2/partial-rope", {3, 5}, {5, 5}); // 40 %, 50 %
    add("small/transmla-4+2/functional", {5, 7}, {5, 5});   // 60 %, 50 %
    add("small/mha2mla-4+2/converted", {0, 0}, {1, 1});
    add("small/mha2mla-4+2/partial-rope", {2, 2}, {4, 4}); // 20 %, 40 %
    add("small/mha2mla-4+2/functional", {1, 1}, {5, 5});   // 10 %, 50 %
    return study;
}

} // namespace mla::test
