// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pipeline/export_deepseek.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "core/evaluate/acceptance.h"
#include "core/evaluate/replay.h"
#include "core/export/deepseek_layout.h"
#include "core/export/draft_directory.h"
#include "core/model/constant_channel.h"
#include "core/model/layer_loading.h"
#include "core/model/sampling.h"
#include "core/model/tensors.h"
#include "core/pipeline/layer_workers.h"
#include "core/pipeline/run_support.h"
#include "core/report/report_text.h"

namespace mla
{
namespace
{

namespace fs = std::filesystem;

constexpr double kLargestHalf = 65504; // of fp16
constexpr double kHeadroom = 2;        // of C over w.x C

// Of the texts over which acceptance is measured.
constexpr std::ptrdiff_t kPromptTokens = 32, kMostPrompts = 16;
constexpr int kNewTokens = 48, kDraftLength = 4;

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

/// Greedy texts of the draft's original, behind the beginnings of `windows`.
struct OriginalTexts {
    TokenWindows prompts;
    std::vector<Continuation> texts;
    StopRule stop;
};

Result<OriginalTexts> originalTexts(JobContext& job, const Checkpoint& original,
                                    const TokenWindows& windows, torch::Device device, int workers)
{
    MLA_TRY(model, Decoder::load(original, device));
    OriginalTexts result;
    result.stop = {
        original.config().eosTokenIds, kNewTokens, {}}; // an early end would tell nothing
    for (const std::vector<int>& window : windows)
        if (std::ssize(window) >= kPromptTokens && std::ssize(result.prompts) < kMostPrompts)
            result.prompts.emplace_back(window.begin(), window.begin() + kPromptTokens);
    result.texts.resize(result.prompts.size());
    const int count = static_cast<int>(result.prompts.size());
    std::atomic<int> done = 0;
    job.emitEvent(StageStarted{"texts of the original", count, "prompts", {}});
    MLA_CHECK(parallelFor(job, count, workers, [&](int index) -> Status {
        const auto i = static_cast<std::size_t>(index);
        MLA_TRY(text, continuePrompt(job, model, result.prompts[i], kNewTokens, result.stop));
        result.texts[i] = std::move(text);
        job.emitEvent(StageProgress{"texts of the original", static_cast<double>(++done), count});
        return {};
    }));
    return result;
}

Result<double> replayedRate(JobContext& job, const Decoder& draft, const OriginalTexts& original,
                            int workers)
{
    const int count = static_cast<int>(original.prompts.size());
    std::vector<AlignedCounts> counts(original.prompts.size());
    MLA_CHECK(parallelFor(job, count, workers, [&](int index) -> Status {
        const auto i = static_cast<std::size_t>(index);
        MLA_TRY(replayed, replay(draft, original.prompts[i], original.texts[i], original.stop));
        counts[i] = alignedCounts(replayed.matches, kDraftLength, index);
        return {};
    }));
    std::vector<StepCount> steps;
    for (const AlignedCounts& each : counts)
        steps.insert(steps.end(), each.steps.begin(), each.steps.end());
    return acceptanceMetrics(steps, kDraftLength).acceptanceRate;
}

/// The checkpoint the draft was converted from, if it still stands where it stood.
std::optional<Checkpoint> originalOf(const DraftMeta& meta)
{
    std::error_code ignored;
    if (meta.sourcePath.empty() || !fs::exists(meta.sourcePath, ignored))
        return std::nullopt;
    Result<Checkpoint> original = openSource(meta.sourcePath);
    if (!original)
        return std::nullopt;
    const Result<std::string> fingerprint = original->fingerprint();
    if (!fingerprint || *fingerprint != meta.sourceFingerprint)
        return std::nullopt;
    return std::move(*original);
}

/// The exported model against the draft, on held-out sequences.
Result<LayoutLoss> measure(JobContext& job, const Checkpoint& draft, const fs::path& written,
                           const TokenWindows& windows, torch::Device device, int workers)
{
    MLA_TRY(meta, readDraftMeta(draft.directory()));
    OriginalTexts texts;
    if (const std::optional<Checkpoint> original = originalOf(meta)) {
        MLA_TRY(own, originalTexts(job, *original, windows, device, workers));
        texts = std::move(own);
    }
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
    if (!texts.prompts.empty()) {
        MLA_TRY(before, replayedRate(job, reference, texts, workers));
        MLA_TRY(after, replayedRate(job, model, texts, workers));
        const int prompts = static_cast<int>(texts.prompts.size());
        loss.acceptance = {before, after, prompts, prompts * kNewTokens, kDraftLength};
    }
    return loss;
}

} // namespace

std::string layoutLossText(const LayoutLoss& loss)
{
    constexpr double percent = 100;
    std::string text =
        "on held-out sequences: KL " + shortText(loss.kl) + " nats a token, same first choice " +
        fixedText(percent * loss.agreement, 2) + " %, perplexity " +
        fixedText(loss.draftPerplexity, 3) + " -> " + fixedText(loss.exportedPerplexity, 3);
    if (const auto& rates = loss.acceptance)
        text += ", acceptance by the original " + fixedText(percent * rates->draft, 1) + " -> " +
                fixedText(percent * rates->exported, 1) +
                " % (k = " + std::to_string(rates->draftLength) + ", " +
                std::to_string(rates->tokens) + " tokens)";
    return text;
}

Result<LayoutLoss> exportDeepseek(JobContext& job, const Checkpoint& draft,
                                  const ExportRequest& request, std::optional<DType> dtype,
                                  const fs::path& staged)
{
    MLA_TRY(plan, planDeepseek(draft.config(), draft.directory().string()));
    MLA_TRY(device, resolveDevice(request.compute.device));
    const int workers = workerCount(request.compute, device);
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
    MLA_CHECK(writeDeepseekModel(draft, plan, dtype, request.maxShardBytes, layer, staged));
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
