// SPDX-License-Identifier: GPL-3.0-or-later
// spectrum and fidelity: looking at layers without making a draft.
#include <mutex>

#include "core/convert/rank_spectrum.h"
#include "core/evaluate/fidelity.h"
#include "core/export/imported_draft.h"
#include "core/model/layer_loading.h"
#include "core/model/tensors.h"
#include "core/pipeline/layer_workers.h"
#include "core/pipeline/run_support.h"

namespace mla
{
namespace
{

namespace fs = std::filesystem;

/// Calibration for a look only: built, not stored anywhere.
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

/// Runs `measure` over all layers and returns their records in order.
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

} // namespace

Result<std::vector<LayerRecord>> measureSpectrum(JobContext& job, const fs::path& checkpoint,
                                                 const CalibrationSettings& calibration,
                                                 const ComputeSettings& compute)
{
    useOneThread();
    MLA_TRY(original, openSource(checkpoint));
    MLA_TRY(device, resolveDevice(compute.device));
    MLA_TRY(set, temporaryCalibration(job, original, calibration, compute));
    return measureLayers(job, "spectrum", original, set, device, workerCount(compute, device),
                         [&](LayerActivations& layer) -> Result<LayerRecord> {
                             const GqaBlock& gqa = std::get<GqaBlock>(layer.weights.attention);
                             LayerRecord record;
                             record.layer = layer.layer;
                             record.spectrum = keyValueSpectrum(gqa, layer.input, set.mask);
                             record.complete = true;
                             return record;
                         });
}

Result<FidelityReport> measureFidelity(JobContext& job, const fs::path& draft,
                                       const fs::path& original,
                                       const std::optional<CalibrationSettings>& calibration,
                                       const ComputeSettings& compute)
{
    useOneThread();
    MLA_TRY(source, openSource(original));
    MLA_TRY(model, openDraft(draft));
    if (model.config().numHiddenLayers != source.config().numHiddenLayers ||
        model.config().hiddenSize != source.config().hiddenSize)
        return badInput("is not the original of this draft: layers or hidden_size differ",
                        original.string());
    if (isImported(model) && !calibration)
        return usageError(importedFrom(model) + " drafts have no calibration of their own",
                          "give --calibration, for example: --calibration self");
    MLA_TRY(device, resolveDevice(compute.device));
    CalibrationSet set;
    if (calibration) {
        MLA_TRY(built, temporaryCalibration(job, source, *calibration, compute));
        set = std::move(built);
    } else {
        MLA_TRY(stored, loadCalibration(calibrationFile(draft)));
        const std::int64_t heldout = stored.heldout(), first = stored.sequences() - heldout;
        set = {stored.ids.narrow(0, first, heldout), stored.mask.narrow(0, first, heldout),
               stored.source};
    }
    FidelityReport report;
    MLA_TRY(records,
            measureLayers(job, "fidelity", source, set, device, workerCount(compute, device),
                          [&](LayerActivations& layer) -> Result<LayerRecord> {
                              MLA_TRY(block, loadMlaBlock(model, layer.layer, device));
                              LayerRecord record;
                              record.layer = layer.layer;
                              record.after =
                                  blockFidelity(std::get<GqaBlock>(layer.weights.attention), block,
                                                layer.input, layer.output, set.mask);
                              record.complete = true;
                              return record;
                          }));
    for (const LayerRecord& record : records)
        report.meanRelativeError +=
            record.after->relativeError / static_cast<double>(records.size());
    report.layers = std::move(records);
    return report;
}

} // namespace mla
