// SPDX-License-Identifier: GPL-3.0-or-later
// One head's attention on a prompt, in the original's block and in the draft's.
#include "core/evaluate/attention_map.h"

#include "core/calibrate/activation_stream.h"
#include "core/convert/rank_spectrum.h"
#include "core/model/layer_loading.h"
#include "core/model/sampling.h"
#include "core/model/tensors.h"
#include "core/pipeline/accept_texts.h"
#include "core/pipeline/diagnostic_support.h"

namespace mla
{
namespace
{

/// `name` below `count`.
Status checkIndex(const char* name, int value, int count)
{
    if (value >= 0 && value < count)
        return {};
    return usageError("--attention-map: " + std::string(name) + " " + std::to_string(value) +
                      ": the model has 0 to " + std::to_string(count - 1));
}

Result<std::vector<int>> promptIds(const Tokenizer& tokenizer, const ModelConfig& config,
                                   const std::string& prompt)
{
    std::vector<int> ids = tokenizer.encode(prompt);
    if (prompt.empty() || ids.empty())
        return usageError("--prompt is empty: an attention map needs a text");
    if (ids.size() > kLongestMapPrompt)
        return usageError("--prompt has " + std::to_string(ids.size()) +
                          " tokens: an attention map takes at most " +
                          std::to_string(kLongestMapPrompt));
    MLA_CHECK(checkIds(config, ids, static_cast<std::int64_t>(ids.size())));
    return ids;
}

/// The original up to `layer` on one sequence.
Result<LayerActivations> activationsAt(JobContext& job, const DraftPair& pair,
                                       const std::vector<int>& ids, LayerIndex layer)
{
    const torch::Tensor tensor = idTensor(ids, torch::kCPU);
    const CalibrationSet set{tensor, torch::ones_like(tensor, torch::kBool), "prompt"};
    MLA_TRY(stream, ActivationStream::create(pair.original, set, pair.device, 1));
    for (;;) {
        if (job.stopRequested())
            return cancelled();
        MLA_TRY(next, stream.next(job));
        job.emitEvent(StageProgress{"attention map", next->layer.value + 1.0, layer.value + 1});
        if (next->layer == layer)
            return std::move(*next);
    }
}

Status fillMap(JobContext& job, const DraftPair& pair, const std::vector<int>& ids,
               AttentionMapRecord& map)
{
    MLA_TRY(activations, activationsAt(job, pair, ids, map.layer));
    MLA_TRY(block, loadMlaBlock(pair.draft, map.layer, pair.device));
    map.original = toVector(headProbabilities(std::get<GqaBlock>(activations.weights.attention),
                                              activations.input, map.head)
                                .flatten());
    map.draft = toVector(headProbabilities(block, activations.input, map.head).flatten());
    return {};
}

} // namespace

Result<AttentionMapRecord> measureAttentionMap(JobContext& job, const AttentionMapRequest& request)
{
    useOneThread();
    MLA_TRY(pair, openDraftPair(request.draft, request.original, request.compute));
    const ModelConfig& config = pair.original.config();
    MLA_CHECK(checkIndex("layer", request.layer.value, config.numHiddenLayers));
    MLA_CHECK(checkIndex("head", request.head.value, config.numAttentionHeads));
    MLA_CHECK(checkStudyHasRun(request.study, pair.draft));
    MLA_TRY(tokenizer, Tokenizer::open(pair.original.directory()));
    MLA_TRY(ids, promptIds(tokenizer, config, request.prompt));
    AttentionMapRecord map{request.layer, request.head, request.prompt, {}, {}, {}};
    for (const int id : ids)
        map.tokens.push_back(tokenText(tokenizer, id).value_or("?"));
    job.emitEvent(StageStarted{"attention map", request.layer.value + 1, "layers", {}});
    MLA_CHECK(guarded("attention map", [&] { return fillMap(job, pair, ids, map); }));
    MLA_CHECK(updateRun(request.study, pair.draft, [&](RunRecord& run) { run.put(map); }));
    return map;
}

} // namespace mla
