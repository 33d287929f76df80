// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pipeline/export_deepseek.h"

#include <algorithm>
#include <mutex>

#include "core/export/deepseek_layout.h"
#include "core/model/constant_channel.h"
#include "core/model/layer_loading.h"
#include "core/model/tensors.h"
#include "core/pipeline/layer_workers.h"
#include "core/pipeline/run_support.h"

namespace mla
{
namespace
{

namespace fs = std::filesystem;

constexpr double kLargestHalf = 65504; // of fp16
constexpr double kHeadroom = 2;        // of C over w.x C

/// C and w of every layer, fitted to what the draft itself computes on its calibration.
Result<std::vector<ConstantChannel>> fitChannels(JobContext& job, const Checkpoint& draft,
                                                 const CalibrationSet& set, torch::Device device,
                                                 int workers)
{
    const std::int64_t train = set.sequences() - set.heldout();
    const double eps = std::max(kStockLatentNormEps, draft.config().rmsNormEps);
    const int layers = draft.config().numHiddenLayers;
    std::vector<ConstantChannel> channels(static_cast<std::size_t>(layers));
    std::mutex mutex;
    int done = 0;
    job.emitEvent(StageStarted{"export", layers, "layers", {}});
    MLA_CHECK(forEachLayer(
        job, draft, set, device, workers, [](LayerIndex) { return true; },
        [&](LayerActivations& layer) -> Status {
            const MlaBlock& block = std::get<MlaBlock>(layer.weights.attention);
            ConstantChannel fitted = fitConstantChannel(block, layer.input.narrow(0, 0, train),
                                                        set.mask.narrow(0, 0, train), eps);
            fitted.functional = fitted.functional.cpu();
            const std::scoped_lock lock(mutex);
            channels[static_cast<std::size_t>(layer.layer.value)] = std::move(fitted);
            job.emitEvent(StageProgress{"export", static_cast<double>(++done), layers});
            return {};
        }));
    return channels;
}

Status checkRange(const std::vector<ConstantChannel>& channels, std::optional<DType> dtype)
{
    if (dtype != DType::F16)
        return {};
    for (std::size_t i = 0; i < channels.size(); ++i)
        if (channels[i].value * kHeadroom > kLargestHalf)
            return badInput("the constant of the latent norm, " +
                                std::to_string(channels[i].value) +
                                ", is too near the end of fp16's range",
                            "layer " + std::to_string(i), "use --dtype bf16");
    return {};
}

/// The exported model against the draft, on held-out sequences.
Result<LayoutLoss> measure(JobContext& job, const Checkpoint& draft, const fs::path& written,
                           const TokenWindows& windows, torch::Device device, int workers)
{
    MLA_TRY(checkpoint, Checkpoint::open(written));
    MLA_TRY(reference, Decoder::load(draft, device));
    MLA_TRY(model, Decoder::load(checkpoint, device));
    job.emitEvent(StageStarted{"perplexity", 2 * static_cast<int>(windows.size()), "windows", {}});
    MLA_TRY(own, scoreWindows(job, reference, nullptr, windows, workers));
    MLA_TRY(score, scoreWindows(job, model, &reference, windows, workers));
    LayoutLoss loss;
    loss.kl = score.kl;
    loss.agreement = score.agreement;
    loss.draftPerplexity = own.perplexity;
    loss.exportedPerplexity = score.perplexity;
    return loss;
}

} // namespace

Result<LayoutLoss> exportDeepseek(JobContext& job, const Checkpoint& draft,
                                  const ComputeSettings& compute, std::optional<DType> dtype,
                                  const fs::path& staged)
{
    MLA_TRY(plan, planDeepseek(draft.config(), draft.directory().string()));
    MLA_TRY(device, resolveDevice(compute.device));
    const int workers = workerCount(compute, device);
    MLA_TRY(set, loadCalibration(calibrationFile(draft.directory())));
    std::vector<ConstantChannel> channels;
    if (!plan.exact) {
        MLA_TRY(fitted, fitChannels(job, draft, set, device, workers));
        MLA_CHECK(checkRange(fitted, dtype));
        channels = std::move(fitted);
    }
    const auto layer = [&](LayerIndex index) -> Result<MlaBlock> {
        MLA_TRY(block, loadMlaBlock(draft, index));
        if (plan.exact)
            return std::move(block);
        return withConstantChannel(block, channels[static_cast<std::size_t>(index.value)],
                                   NopeKeyBias::Drop);
    };
    MLA_CHECK(writeDeepseekModel(draft, plan, dtype, layer, staged));
    MLA_TRY(loss, measure(job, draft, staged, heldoutWindows(set), device, workers));
    if (!(loss.kl <= kLargestLayoutLoss))
        return badInput("the deepseek layout loses too much of this draft: KL " +
                            std::to_string(loss.kl) + " nats a token, at most " +
                            std::to_string(kLargestLayoutLoss) + " is accepted",
                        draft.directory().string(),
                        "refine it with --layout deepseek, which trains what is exported");
    loss.exact = plan.exact;
    return std::move(loss);
}

} // namespace mla
