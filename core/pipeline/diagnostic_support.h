// SPDX-License-Identifier: GPL-3.0-or-later
// What looking at layers without making a draft shares: the pair, the sequences, the loop.
#pragma once

#include <functional>

#include "core/calibrate/corpus.h"
#include "core/pipeline/draft_diagnostics.h"
#include "core/pipeline/layer_workers.h"
#include "core/pipeline/run_support.h"

namespace mla
{

/// A draft and the original that it is measured against.
struct DraftPair {
    Checkpoint original, draft;
    torch::Device device;
};
/// Refuses a pair whose layers or hidden sizes differ.
Result<DraftPair> openDraftPair(const std::filesystem::path& draft,
                                const std::filesystem::path& original,
                                const ComputeSettings& compute);

/// Calibration for a look only: built, not stored anywhere.
Result<CalibrationSet> temporaryCalibration(JobContext& job, const Checkpoint& checkpoint,
                                            const CalibrationSettings& settings,
                                            const ComputeSettings& compute);

/// The sequences that `calibration` describes; null: the held-out ones recorded in the draft, a
/// Usage error for a draft that has none.
Result<CalibrationSet> measuredSequences(JobContext& job, const DraftPair& pair,
                                         const std::optional<CalibrationSettings>& calibration,
                                         const ComputeSettings& compute);

/// Runs `measure` over all layers and returns their records in order.
Result<std::vector<LayerRecord>>
measureLayers(JobContext& job, const std::string& stage, const Checkpoint& original,
              const CalibrationSet& set, torch::Device device, int workers,
              const std::function<Result<LayerRecord>(LayerActivations&)>& measure);

/// Usage unless the study, if there is one, holds the draft's run.
Status checkStudyHasRun(const std::optional<std::filesystem::path>& study, const Checkpoint& draft);
/// Changes the draft's run in the study, if there is one.
Status updateRun(const std::optional<std::filesystem::path>& study, const Checkpoint& draft,
                 const std::function<void(RunRecord&)>& change);

} // namespace mla
