// SPDX-License-Identifier: GPL-3.0-or-later
// spectrum and fidelity: looking at layers without making a draft.
#include "core/convert/rank_spectrum.h"
#include "core/evaluate/fidelity.h"
#include "core/model/layer_loading.h"
#include "core/model/tensors.h"
#include "core/pipeline/diagnostic_support.h"

namespace mla
{

namespace fs = std::filesystem;

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
    MLA_TRY(pair, openDraftPair(draft, original, compute));
    MLA_TRY(set, measuredSequences(job, pair, calibration, compute));
    FidelityReport report;
    MLA_TRY(records,
            measureLayers(
                job, "fidelity", pair.original, set, pair.device, workerCount(compute, pair.device),
                [&](LayerActivations& layer) -> Result<LayerRecord> {
                    MLA_TRY(block, loadMlaBlock(pair.draft, layer.layer, pair.device));
                    LayerRecord record;
                    record.layer = layer.layer;
                    record.after = blockFidelity(std::get<GqaBlock>(layer.weights.attention), block,
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
