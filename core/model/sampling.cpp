// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/sampling.h"

#include <algorithm>
#include <limits>

#include "core/model/token_distribution.h"

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

float appendTopTokens(const torch::Tensor& logits, int count, std::vector<std::int32_t>& ids,
                      std::vector<float>& probabilities)
{
    const std::int64_t found = std::min<std::int64_t>(count, logits.size(-1));
    const auto [values, order] = logits.topk(found);
    const torch::Tensor shares =
        (values - logits.logsumexp(-1)).exp().to(torch::kCPU, torch::kFloat);
    const torch::Tensor indices = order.to(torch::kCPU);
    for (std::int64_t i = 0; i < count; ++i) {
        ids.push_back(i < found ? indices[i].item<std::int32_t>() : -1);
        probabilities.push_back(i < found ? shares[i].item<float>() : 0);
    }
    return (values[0] - values[std::min<std::int64_t>(1, found - 1)]).item<float>();
}

Result<Continuation> continuePrompt(JobContext& job, const Decoder& model,
                                    const std::vector<int>& prompt, int newTokens,
                                    const StopRule& stop, const SamplingRule& rule,
                                    torch::Generator* generator, Remember remember)
{
    TORCH_CHECK(rule.greedy() || generator, "sampling needs a generator");
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
        if (rule.greedy()) {
            out.ids.push_back(allowed.argmax(-1).item<int>());
        } else {
            const torch::Tensor probabilities = tokenProbabilities(allowed[0], rule);
            out.ids.push_back(drawToken(probabilities, *generator));
            if (remember == Remember::Choices)
                out.drawn.push_back(probabilities[out.ids.back()].item<double>());
        }
        if (remember == Remember::Choices)
            out.margins.push_back(
                appendTopTokens(allowed[0], keptChoices, out.topIds, out.topProbabilities));
        if (stop.isEos(out.ids.back()) || static_cast<int>(out.ids.size()) == newTokens)
            break;
        logits = model.stepLast(idTensor({out.ids.back()}, model.device()), cache);
    }
    return out;
}

} // namespace mla
