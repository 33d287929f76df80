// SPDX-License-Identifier: GPL-3.0-or-later
// What the stages' drivers share: names of runs, provenance, calibration that is stored once.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/base/job.h"
#include "core/base/result.h"
#include "core/calibrate/corpus.h"
#include "core/evaluate/perplexity.h"
#include "core/pipeline/pipeline.h"

namespace mla
{

/// "stories260K": the directory's name.
std::string checkpointId(const std::filesystem::path& checkpoint);
/// "mla-draft-workbench 0.1.0, LibTorch 2.13.0, AMD EPYC ..."
std::string softwareText();
std::string utcNow(); ///< ISO 8601
/// "cpu" or "cuda:0".
std::string deviceText(torch::Device device);

/// "transmla-28+4-f2", "mha2mla-16+4x4-2-norm-joint".
std::string conversionLabel(const ConvertSettings& settings, const ModelConfig& source);

/// Where a run keeps its layers while it works: NAME.parts/<run> beside the study, else OUT.parts/.
std::filesystem::path partsFolder(const std::optional<std::filesystem::path>& study,
                                  const std::filesystem::path& output, const std::string& run);
std::filesystem::path partsRoot(const std::filesystem::path& study); ///< NAME.parts

CheckpointRecord describeCheckpoint(const Checkpoint& checkpoint, const std::string& fingerprint);

/// The bundled prompts that self-generated calibration starts from.
Result<std::filesystem::path> defaultPrompts();

/// A calibration set and the id it has in a study.
struct NamedCalibration {
    CalibrationSet set;
    std::string id;
};
/// The set that `settings` describe: taken from `stored` (a file of this run), then from the study,
/// else built and kept in `stored`. Ids are reused, never generated twice.
Result<NamedCalibration> obtainCalibration(JobContext& job, const Checkpoint& checkpoint,
                                           const std::string& fingerprint,
                                           const CalibrationSettings& settings,
                                           const ComputeSettings& compute,
                                           const std::optional<std::filesystem::path>& study,
                                           const std::filesystem::path& stored);
CalibrationRecord toRecord(const NamedCalibration& calibration);

/// All sequences of a set as windows (padding cut off).
TokenWindows validWindows(const CalibrationSet& set);
/// Held-out sequences of a set as windows to score (padding cut off).
TokenWindows heldoutWindows(const CalibrationSet& set);

/// Changes a loaded draft; false where what that takes is not there.
using ChangeDraft = std::function<Result<bool>(Decoder& draft)>;

/// Perplexity of the original and of the draft on `windows`, and the draft's KL from the original;
/// the draft's figures stand under `stage`. With `atFullRank`, which gives the draft the
/// projections of its full rank, also those of the draft that has lost nothing but rotation:
/// `rope_removed`.
Result<std::map<std::string, StageRecord>>
scoreStages(JobContext& job, const Checkpoint& original, const std::filesystem::path& draft,
            const std::string& stage, const TokenWindows& windows, torch::Device device,
            int workers, const ChangeDraft& atFullRank = {});

/// An open GQA checkpoint, or an error that says a draft was given where a source is needed.
Result<Checkpoint> openSource(const std::filesystem::path& path);
Result<Checkpoint> openDraft(const std::filesystem::path& path);

} // namespace mla
