// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pipeline/diagnostic_support.h"

#include <mutex>

#include "core/export/imported_draft.h"
#include "core/model/tensors.h"
#include "core/store/study.h"

namespace mla
{

namespace fs = std::filesystem;

namespace
{

Error noSuchRun(const fs::path& study, const std::string& run)
{
    return usageError("--study " + study.string() + " does not hold the run " + run +
                          " of this draft",
                      "give the study that its convert or refine wrote to");
}

} // namespace

Result<DraftPair> openDraftPair(const fs::path& draft, const fs::path& original,
                                const ComputeSettings& compute)
{
    MLA_TRY(source, openSource(original));
    MLA_TRY(model, openDraft(draft));
    if (model.config().numHiddenLayers != source.config().numHiddenLayers ||
        model.config().hiddenSize != source.config().hiddenSize)
        return badInput("is not the original of this draft: layers or hidden_size differ",
                        original.string());
    MLA_TRY(device, resolveDevice(compute.device));
    return DraftPair{std::move(source), std::move(model), device};
}

Result<CalibrationSet> temporaryCalibration(JobContext& job, const Checkpoint& checkpoint,
                                            const CalibrationSettings& settings,
                                            const ComputeSettings& compute)
{
    MLA_CHECK(validate(settings));
    MLA_TRY(tokenizer, Tokenizer::open(checkpoint.directory()));
    MLA_TRY(prompts, defaultPrompts());
    MLA_TRY(built, buildCalibration(job, checkpoint, tokenizer, settings, prompts, compute));
    for (const std::string& warning : built.warnings)
        job.warn(warning);
    return std::move(built.set);
}

Result<CalibrationSet> measuredSequences(JobContext& job, const DraftPair& pair,
                                         const std::optional<CalibrationSettings>& calibration,
                                         const ComputeSettings& compute)
{
    if (calibration)
        return temporaryCalibration(job, pair.original, *calibration, compute);
    if (isImported(pair.draft))
        return usageError(importedFrom(pair.draft) + " drafts have no calibration of their own",
                          "give --calibration, for example: --calibration self");
    MLA_TRY(stored, loadCalibration(calibrationFile(pair.draft.directory())));
    const std::int64_t heldout = stored.heldout(), first = stored.sequences() - heldout;
    return CalibrationSet{stored.ids.narrow(0, first, heldout),
                          stored.mask.narrow(0, first, heldout), stored.source};
}

Result<std::vector<LayerRecord>>
measureLayers(JobContext& job, const std::string& stage, const Checkpoint& original,
              const CalibrationSet& set, torch::Device device, int workers,
              const std::function<Result<LayerRecord>(LayerActivations&)>& measure)
{
    const int layers = original.config().numHiddenLayers;
    std::vector<LayerRecord> records(static_cast<std::size_t>(layers));
    std::mutex mutex;
    int done = 0;
    job.emitEvent(StageStarted{stage, layers, "layers", {}});
    MLA_CHECK(forEachLayer(
        job, original, set, device, workers, [](LayerIndex) { return true; },
        [&](LayerActivations& layer) -> Status {
            MLA_TRY(record, measure(layer));
            const std::scoped_lock lock(mutex);
            records[static_cast<std::size_t>(layer.layer.value)] = std::move(record);
            job.emitEvent(StageProgress{stage, static_cast<double>(++done), layers});
            return {};
        }));
    return records;
}

Status checkStudyHasRun(const std::optional<fs::path>& study, const Checkpoint& draft)
{
    if (!study)
        return {};
    MLA_TRY(meta, draftMeta(draft));
    if (!fs::exists(*study))
        return noSuchRun(*study, meta.runId);
    MLA_TRY(data, loadStudy(*study));
    return data.findRun(meta.runId) ? Status() : noSuchRun(*study, meta.runId);
}

Status updateRun(const std::optional<fs::path>& study, const Checkpoint& draft,
                 const std::function<void(RunRecord&)>& change)
{
    if (!study)
        return {};
    MLA_TRY(meta, draftMeta(draft));
    return updateStudy(*study, [&](StudyData& data) -> Status {
        const RunRecord* stored = data.findRun(meta.runId);
        if (!stored)
            return noSuchRun(*study, meta.runId);
        RunRecord run = *stored;
        change(run);
        data.put(std::move(run));
        return {};
    });
}

} // namespace mla
