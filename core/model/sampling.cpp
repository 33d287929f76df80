// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/sampling.h"

#include <algorithm>
#include <limits>

namespace mla
{

bool StopRule::isEos(int id) const
{
    return std::find(eosIds.begin(), eosIds.end(), id) != eosIds.end();
}

torch::Tensor idTensor(const std::vector<int>& ids, torch::Device device)
{
    return torch::tensor(ids, torch::kInt64).unsqueeze(0).to(device);
}

Status checkIds(const ModelConfig& config, const std::vector<int>& ids, std::int64_t total)
{
    if (ids.empty())
        return badInput("no token ids: at least one is needed");
    for (const int id : ids)
        if (id < 0 || id >= config.vocabSize)
            return badInput("token id " + std::to_string(id) + " is outside the vocabulary of " +
                            std::to_string(config.vocabSize));
    if (total > config.contextLength())
        return badInput(std::to_string(total) + " tokens exceed the context of " +
                        std::to_string(config.contextLength()) + " (max_position_embeddings = " +
                        std::to_string(config.maxPositionEmbeddings) + ")");
    return {};
}

torch::Tensor allowedLogits(const torch::Tensor& logits, const StopRule& stop, int produced)
{
    constexpr float never = -std::numeric_limits<float>::infinity();
    const VocabularyMask& known = stop.vocabulary;
    torch::Tensor allowed = logits;
    if (known.size > 0 && known.size < logits.size(-1))
        allowed = allowed.narrow(-1, 0, known.size);
    if (known.holes.defined() && known.holes.numel() > 0)
        allowed = allowed.index_fill(-1, known.holes.to(logits.device()), never);
    if (produced >= stop.minNewTokens || stop.eosIds.empty())
        return allowed;
    allowed = allowed.clone();
    for (const int id : stop.eosIds)
        if (id < allowed.size(-1))
            allowed.select(-1, id).fill_(never);
    return allowed;
}

torch::Tensor greedyTokens(const torch::Tensor& logits, const StopRule& stop, int produced)
{
    return allowedLogits(logits, stop, produced).argmax(-1);
}

torch::Tensor sampleTokens(const torch::Tensor& logits, double temperature,
                           torch::Generator& generator)
{
    // Inverse transform in fp64: exactly one draw a row, the same on every machine.
    const torch::Tensor cumulative =
        (logits.to(torch::kCPU, torch::kFloat64) / temperature).softmax(-1).cumsum(-1);
    const torch::Tensor uniform =
        torch::rand({logits.size(0), 1}, generator, torch::dtype(torch::kFloat64)) *
        cumulative.narrow(-1, cumulative.size(-1) - 1, 1);
    return torch::searchsorted(cumulative, uniform, /*out_int32=*/false, /*right=*/true)
        .squeeze(-1)
        .clamp_max(logits.size(-1) - 1)
        .to(logits.device());
}

torch::Tensor topTwoMargin(const torch::Tensor& logits)
{
    const torch::Tensor top = std::get<0>(logits.topk(std::min<std::int64_t>(2, logits.size(-1))));
    return top.select(-1, 0) - top.select(-1, top.size(-1) - 1);
}

Result<Continuation> continuePrompt(JobContext& job, const Decoder& model,
                                    const std::vector<int>& prompt, int newTokens,
                                    const StopRule& stop, double temperature,
                                    torch::Generator* generator)
{
    const std::int64_t total = static_cast<std::int64_t>(prompt.size()) + newTokens;
    MLA_CHECK(checkIds(model.config(), prompt, total));
    const torch::NoGradGuard noGrad;
    KvCache cache = model.makeCache(1, total);
    Continuation out;
    torch::Tensor logits = model.stepLast(idTensor(prompt, model.device()), cache);
    while (static_cast<int>(out.ids.size()) < newTokens) {
        if (job.stopRequested())
            return cancelled();
        const int produced = static_cast<int>(out.ids.size());
        const torch::Tensor allowed = allowedLogits(logits, stop, produced);
        const torch::Tensor token =
            temperature > 0 ? sampleTokens(allowed, temperature, *generator) : allowed.argmax(-1);
        out.ids.push_back(token.item<int>());
        out.margins.push_back(topTwoMargin(allowed).item<float>());
        if (stop.isEos(out.ids.back()) || static_cast<int>(out.ids.size()) == newTokens)
            break;
        logits = model.stepLast(token.view({1, 1}), cache);
    }
    return out;
}

} // namespace mla
