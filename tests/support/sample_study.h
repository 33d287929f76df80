// SPDX-License-Identifier: GPL-3.0-or-later
// A small study with every field set, for tests of the store and the report.
#pragma once

#include <cmath>
#include <limits>

#include "core/store/records.h"

namespace mla::test
{

inline LayerRecord sampleLayer(int index)
{
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    LayerRecord layer;
    layer.layer = LayerIndex(index);
    layer.loss = LossCurve{{0, 1, 2, 3}, {nan, .9, .5, .45}, {1.0, nan, .6, .5}, {0, .1, .2, .05}};
    layer.spectrum = SpectrumRecord{{8, 4, 2, 1}, {10, 5, 1, 0}, 2, .992, 2.2, .0894};
    layer.rope = RopeRecord{2,
                            3,
                            {.1, .2, .3, .1, .2, .1},
                            {.1, .1, 0, .1, 0, .1},
                            {.3, .3, .1, .1, .1, .1},
                            {1, 4, 16},
                            {.01, .2, .05}};
    layer.before = FidelityRecord{.5 + .1 * index, .8, .3};
    layer.after = FidelityRecord{.25 + .1 * index, .95, .1};
    layer.lossBefore = 1.0;
    layer.lossAfter = .5;
    layer.seconds = 1.25;
    layer.complete = true;
    return layer;
}

inline RunRecord sampleRun(const std::string& id, const std::string& variant)
{
    RunRecord run;
    run.id = id;
    run.variant = variant;
    run.converter = "transmla";
    run.checkpoint = "toy";
    run.parent = variant == "converted" ? "" : "transmla-4+2/converted";
    run.calibration = "self";
    run.settingsJson = R"({"steps": 3, "note": "größer"})";
    run.draftPath = "drafts/" + id;
    run.device = "cpu";
    run.software = "mla-draft 0.1.0";
    run.created = "2026-01-02T03:04:05Z";
    run.seed = ~std::uint64_t{0};
    run.kvLoraRank = 4;
    run.qkRopeHeadDim = 2;
    run.cacheElements = 6;
    run.originalCacheElements = 16;
    run.seconds = 12.5;
    run.peakRssBytes = std::int64_t{5} << 30;
    run.warnings = {"first", "", "dritte — 警告"};
    run.layers = {sampleLayer(0), sampleLayer(1)};
    run.stages = {{"original", {20, 0}}, {"low_rank", {40, .7}}, {"refined", {25, .2}}};
    return run;
}

/// What `fidelity` adds to a run of two layers.
inline RunRecord withDiagnostics(RunRecord run)
{
    for (LayerRecord& layer : run.layers) {
        layer.sources.ropeOnly = FidelityRecord{.125, .99, .01};
        layer.sources.rankOnly = FidelityRecord{.375, .9, .02};
        layer.sources.both = FidelityRecord{.5, .8, .03};
        layer.sources.refined = FidelityRecord{.25, .95, .015};
    }
    run.errorSources = ErrorSourcesNote{"self", "", ""};
    run.positions = PositionScores{"tale.txt", {{0, 31, 64, 8, 16, .5}, {32, 63, 9, 4, 5, .25}}};
    run.attentionMaps = {
        {LayerIndex(1), HeadIndex(3), "é", {"<s>", " é"}, {1, 0, .5, .5}, {1, 0, .75, .25}}};
    return run;
}

inline AcceptanceRecord sampleRow(const std::string& run, const std::string& task,
                                  const std::vector<std::int32_t>& accepted)
{
    AcceptanceRecord row;
    row.id = run + "/" + task + "/k3";
    row.target = "toy";
    row.run = run;
    row.task = task;
    row.method = "replay";
    row.k = 3;
    row.tokens = 20;
    row.wallTime = .5;
    row.settingsJson = "{}";
    row.accepted = accepted;
    row.drafted.assign(accepted.size(), 3);
    row.prompt.assign(accepted.size(), 0);
    row.plainSteps = 1;
    return row;
}

/// A replay of sampling with everything that a row can have.
inline AcceptanceRecord sampledRow()
{
    AcceptanceRecord row = sampleRow("transmla-4+2/functional", "sampled", {1, 0});
    row.temperature = .5;
    row.topK = 20;
    row.topP = .875;
    row.weight = {.75, .25};
    row.plainSteps = 1.25;
    row.speeds = {100, 104};
    row.baselineSpeeds = {50, 51};
    row.draftSeconds = .5;
    row.verifySeconds = .25;
    row.costs = {.001, {.004, .005}};
    row.continuation = "text";
    row.choices = {{7, 5, 2, 5, 2, 7}, {.5, .25, .125, .75, .125, .0625}};
    row.acceptProbability = {1, .5};
    return row;
}

inline StudyData sampleStudy()
{
    StudyData study;
    study.created = "2026-01-01T00:00:00Z";
    study.software = "mla-draft 0.1.0";
    study.put(CheckpointRecord{"toy", "models/toy", "abc", R"({"hidden_size": 8})"});
    study.put(CalibrationRecord{"self", "self", 2, 3, {1, 2, 3, 4, 5, 6}, {1, 1, 1, 1, 1, 0}});
    study.put(CalibrationRecord{"none", "", 0, 0, {}, {}});
    study.put(sampleRun("transmla-4+2/converted", "converted"));
    study.put(withDiagnostics(sampleRun("transmla-4+2/functional", "functional")));
    RunRecord bare;
    bare.id = "a bare run: 100% 你好/../.";
    bare.layers = {LayerRecord{}};
    study.put(bare);
    study.put(sampleRow("original", "math", {3, 3}));
    study.put(sampleRow("transmla-4+2/converted", "math", {1, 0}));
    study.put(sampleRow("transmla-4+2/functional", "math", {3, 0, 1, 2}));
    AcceptanceRecord engine = sampleRow("transmla-4+2/functional", "code", {3, 3});
    engine.tokensPerSecond = 10.5;
    engine.identicalToGreedy = false;
    study.put(engine);
    study.put(sampleRow("transmla-4+2/converted", "code", {}));
    study.put(sampledRow());
    study.put(ContinuationRecord{"text",
                                 "toy",
                                 "math",
                                 {0, 2},
                                 {7, 2},
                                 {1.5, .25},
                                 {.5, .125},
                                 {{7, 5, -1, 2, 7, 5}, {.5, .25, 0, .75, .125, .125}}});
    study.put(TokenTextRecord{"toy", {2, 7}, {"</s>", " the"}});
    study.put(TokenTextRecord{"toy", {5, 7}, {"é", " the"}}); // joins the first
    return study;
}

/// Without what was sampled: one way of measuring.
inline StudyData greedySampleStudy()
{
    StudyData study = sampleStudy();
    std::erase_if(study.acceptance, [](const auto& row) { return row.temperature > 0; });
    return study;
}

} // namespace mla::test
