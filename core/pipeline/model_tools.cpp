// SPDX-License-Identifier: GPL-3.0-or-later
// forward, generate, perplexity: one model, no study.
#include <algorithm>
#include <fstream>

#include "core/base/file.h"
#include "core/checkpoint/tokenizer.h"
#include "core/evaluate/perplexity.h"
#include "core/model/sampling.h"
#include "core/model/tensors.h"
#include "core/pipeline/pipeline.h"

namespace mla
{

namespace fs = std::filesystem;

Result<ForwardResult> forwardModel(const fs::path& model, const std::vector<int>& ids,
                                   const std::optional<fs::path>& out, bool overwrite,
                                   const ComputeSettings& compute)
{
    if (out && fs::exists(*out) && !overwrite)
        return usageError(out->string() + " exists", "give --overwrite to replace it");
    useOneThread();
    MLA_TRY(checkpoint, Checkpoint::open(model));
    MLA_CHECK(checkIds(checkpoint.config(), ids, static_cast<std::int64_t>(ids.size())));
    MLA_TRY(device, resolveDevice(compute.device));
    ForwardResult result;
    MLA_CHECK(guarded("forward", [&]() -> Status {
        const torch::NoGradGuard noGrad;
        MLA_TRY(decoder, Decoder::load(checkpoint, device));
        const torch::Tensor logits =
            decoder.logits(idTensor(ids, device))[0].to(torch::kCPU).contiguous();
        const torch::Tensor best = logits.argmax(-1);
        for (std::int64_t i = 0; i < best.numel(); ++i)
            result.argmax.push_back(best[i].item<int>());
        if (!out)
            return {};
        const std::vector<TensorView> views = {viewOf("logits", logits)};
        return writeSafetensors(*out, views);
    }));
    return result;
}

Result<std::vector<int>> generateTokens(JobContext& job, const GenerateRequest& request)
{
    useOneThread();
    MLA_TRY(checkpoint, Checkpoint::open(request.model));
    MLA_TRY(device, resolveDevice(request.compute.device));
    std::vector<int> ids;
    MLA_CHECK(guarded("generate", [&]() -> Status {
        MLA_TRY(decoder, Decoder::load(checkpoint, device));
        torch::Generator generator = seededGenerator(request.compute.seed, 0x6e4);
        const StopRule stop{decoder.config().eosTokenIds, request.minNewTokens};
        MLA_TRY(continuation, continuePrompt(job, decoder, request.ids, request.newTokens, stop,
                                             {request.temperature}, &generator, Remember::Ids));
        ids = std::move(continuation.ids);
        return {};
    }));
    return ids;
}

Result<PerplexityResult> measurePerplexity(JobContext& job, const fs::path& model,
                                           const fs::path& text, int length, bool specialTokens,
                                           const ComputeSettings& compute)
{
    if (length < 2)
        return usageError("--length " + std::to_string(length) + ": at least 2 tokens a window");
    useOneThread();
    MLA_TRY(checkpoint, Checkpoint::open(model));
    MLA_TRY(tokenizer, Tokenizer::open(model));
    MLA_TRY(content, readFile(text));
    MLA_TRY(device, resolveDevice(compute.device));
    const TokenWindows windows = disjointWindows(tokenizer.encode(content, specialTokens), length);
    if (windows.empty())
        return badInput("encodes to fewer than two tokens", text.string());
    PerplexityResult result;
    job.emitEvent(StageStarted{"perplexity", static_cast<int>(windows.size()), "windows", {}});
    MLA_CHECK(guarded("perplexity", [&]() -> Status {
        MLA_TRY(decoder, Decoder::load(checkpoint, device));
        MLA_TRY(score, scoreWindows(job, decoder, nullptr, windows, workerCount(compute, device)));
        result = {score.perplexity, score.tokens};
        return {};
    }));
    return result;
}

std::int64_t peakRssBytes()
{
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmHWM:"))
            return std::stoll(line.substr(6)) * 1024;
    return 0;
}

} // namespace mla
