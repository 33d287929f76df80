// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/file.h"
#include "core/base/resources.h"
#include "core/export/imported_draft.h"
#include "core/model/sampling.h"
#include "core/model/tensors.h"
#include "core/pipeline/run_support.h"

namespace mla
{
namespace
{

namespace fs = std::filesystem;

Result<std::optional<DType>> dtypeOption(const std::optional<std::string>& name)
{
    if (!name)
        return std::optional<DType>();
    if (*name == "fp32")
        return std::optional(DType::F32);
    if (*name == "fp16")
        return std::optional(DType::F16);
    if (*name == "bf16")
        return std::optional(DType::BF16);
    return usageError("--dtype " + *name + ": expected fp32, fp16 or bf16");
}

const char* configName(DType dtype)
{
    return dtype == DType::F32 ? "float32" : dtype == DType::F16 ? "float16" : "bfloat16";
}

/// Largest logit difference of two models on the first held-out sequences, over the logits' spread.
Result<double> logitDifference(const Checkpoint& a, const Checkpoint& b,
                               const TokenWindows& windows, torch::Device device)
{
    const torch::NoGradGuard noGrad;
    MLA_TRY(first, Decoder::load(a, device));
    MLA_TRY(second, Decoder::load(b, device));
    double difference = 0, spread = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(2, windows.size()); ++i) {
        const torch::Tensor ids = idTensor(windows[i], device);
        const torch::Tensor expected = first.logits(ids);
        difference =
            std::max(difference, (second.logits(ids) - expected).abs().max().item<double>());
        spread = std::max(spread, expected.std().item<double>());
    }
    return difference / spread;
}

Result<ExportOutcome> exportNow(JobContext& job, const ExportRequest& request)
{
    MLA_TRY(dtype, dtypeOption(request.dtype));
    MLA_TRY(draft, openDraft(request.draft));
    if (isImported(draft))
        return usageError(importedFrom(draft) + " wrote this draft",
                          "refine it first: the result is a draft of ours, which can be exported");
    MLA_TRY(meta, readDraftMeta(request.draft));
    MLA_TRY(calibration, loadCalibration(calibrationFile(request.draft)));
    MLA_TRY(basis, loadKeyBasis(request.draft, draft.config().numHiddenLayers, meta.keyRank));
    MLA_TRY(resources, resourceDirectory());
    MLA_TRY(device, resolveDevice(request.compute.device));
    MLA_TRY(staged, StagedDirectory::create(request.output, request.overwrite));
    DraftContent content{draft, draft.config(), meta, calibration, resources / "python", basis,
                         {},    dtype};
    if (dtype)
        content.config.dtype = configName(*dtype);
    content.layer = [](LayerIndex) { return std::optional<LayerTensors>(); };
    job.emitEvent(StageStarted{"export", 1, "drafts", {}});
    MLA_CHECK(writeDraft(content, staged.path()));
    ExportOutcome outcome{request.output, {}, {}};
    if (request.verify) {
        MLA_TRY(written, Checkpoint::open(staged.path()));
        MLA_TRY(difference, logitDifference(draft, written, heldoutWindows(calibration), device));
        // A cast changes logits; without one the copy must be the same model.
        if (!dtype && difference > 1e-6)
            return computeFailed("the exported draft differs from its source: logits by " +
                                     std::to_string(difference) + " of their spread",
                                 request.output.string());
        outcome.maxLogitDifference = difference;
    }
    MLA_CHECK(staged.commit());
    return outcome;
}

} // namespace

Result<ExportOutcome> exportDraft(JobContext& job, const ExportRequest& request)
{
    if (request.layout != "huggingface")
        return usageError("--layout " + request.layout + " is not available in this version",
                          "available: huggingface");
    useOneThread();
    std::optional<Result<ExportOutcome>> outcome;
    MLA_CHECK(guarded("export", [&]() -> Status {
        outcome.emplace(exportNow(job, request));
        return {};
    }));
    return std::move(*outcome);
}

} // namespace mla
