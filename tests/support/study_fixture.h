// SPDX-License-Identifier: GPL-3.0-or-later
// A study small enough to read, as literals: one conversion, two refinements of it, two tasks.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "core/store/records.h"

namespace mla::test
{

/// Accepted prefixes of steps of `k` drafted tokens each, all of prompt 0.
inline AcceptanceRecord measurement(const std::string& run, const std::string& task,
                                    const std::vector<std::int32_t>& accepted, int k = 4)
{
    AcceptanceRecord record;
    record.id = run + "/" + task;
    record.target = "toy";
    record.run = run;
    record.task = task;
    record.method = "replay";
    record.k = k;
    record.accepted = accepted;
    record.drafted.assign(accepted.size(), k);
    record.prompt.assign(accepted.size(), 0);
    return record;
}

inline LayerRecord refinedLayer(int index, double errorBefore, double errorAfter)
{
    constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
    LayerRecord layer;
    layer.layer = LayerIndex(index);
    layer.loss = LossCurve{
        {0, 1, 2, 3}, {nothing, 0.9, 0.6, 0.5}, {1.0, nothing, 0.7, 0.55}, {0, 1e-3, 2e-3, 1e-3}};
    layer.before = FidelityRecord{errorBefore, 0.8, 0.3};
    layer.after = FidelityRecord{errorAfter, 0.95, 0.1};
    layer.lossBefore = 1.0;
    layer.lossAfter = 0.55;
    layer.seconds = 2;
    layer.complete = true;
    return layer;
}

inline LayerRecord convertedLayer(int index)
{
    LayerRecord layer;
    layer.layer = LayerIndex(index);
    layer.spectrum = SpectrumRecord{{8, 4, 2, 1}, {10, 5, 1, 0.5}, 2, 0.99, 1.9, 0.1};
    layer.rope =
        RopeRecord{1, 2, {0.75, 0.25}, {0.75, 0}, {0.5, 0.5}, {1, 8, 64}, {0.01, 0.02, 0.04}};
    layer.after = FidelityRecord{0.5 + 0.1 * index, 0.8, 0.3};
    layer.complete = true;
    return layer;
}

inline RunRecord toyRun(const std::string& variant)
{
    RunRecord run;
    run.id = "toy/transmla-4+2/" + variant;
    run.variant = variant;
    run.converter = "transmla";
    run.checkpoint = "toy";
    run.parent = variant == "converted" ? "" : "toy/transmla-4+2/converted";
    run.calibration = "self";
    run.settingsJson = R"({"refine": {"steps": 3}})";
    run.device = "cpu";
    run.software = "mla-draft 0.1.0";
    run.seed = 7;
    run.kvLoraRank = 4;
    run.qkRopeHeadDim = 2;
    run.cacheElements = 6;
    run.originalCacheElements = 16;
    return run;
}

/// Rates: original 16/16, converted 4/16, partial-rope 4/16, functional 8/16 on both tasks, but
/// "stories" of functional is 9/16.
inline StudyData toyStudy()
{
    StudyData study;
    study.created = "2026-01-02T03:04:05Z";
    study.software = "mla-draft 0.1.0";
    study.put(CheckpointRecord{"toy", "/models/toy", "0123abcd", R"({"model_type": "llama"})"});
    study.put(CalibrationRecord{"self", "self", 1, 4, {1, 2, 3, 4}, {1, 1, 1, 0}});
    RunRecord converted = toyRun("converted");
    converted.layers = {convertedLayer(0), convertedLayer(1)};
    study.put(converted);
    RunRecord baseline = toyRun("partial-rope");
    baseline.layers = {refinedLayer(0, 0.5, 0.45), refinedLayer(1, 0.6, 0.62)};
    study.put(baseline);
    RunRecord functional = toyRun("functional");
    functional.layers = {refinedLayer(0, 0.5, 0.25), refinedLayer(1, 0.6, 0.35)};
    study.put(functional);
    for (const char* task : {"chat", "stories"}) {
        study.put(measurement("original", task, {4, 4, 4, 4}));
        study.put(measurement(converted.id, task, {1, 1, 1, 1}));
        study.put(measurement(baseline.id, task, {4, 0, 0, 0}));
    }
    study.put(measurement(functional.id, "chat", {4, 4, 0, 0}));
    study.put(measurement(functional.id, "stories", {4, 4, 1, 0}));
    return study;
}

} // namespace mla::test
