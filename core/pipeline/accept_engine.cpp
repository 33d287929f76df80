// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pipeline/accept_engine.h"

#include <chrono>

#include "core/evaluate/speculative.h"
#include "core/model/tensors.h"

namespace mla
{
namespace
{

constexpr std::uint64_t samplingStream = 0xACCE97; // of random numbers, apart from calibration's

SamplingRule ruleOf(const AcceptSettings& settings)
{
    return {settings.temperature, 0, 1};
}

class NativeEngine final : public AcceptEngine
{
public:
    NativeEngine(const Decoder& target, const Decoder& draft, const AcceptRequest& request,
                 const StopRule& stop)
        : m_target(target), m_draft(draft), m_request(request), m_stop(stop)
    {
    }
    Result<EngineText> speculate(JobContext& job, const std::vector<int>& prompt,
                                 int index) override
    {
        using Clock = std::chrono::steady_clock;
        const Clock::time_point begun = Clock::now();
        torch::Generator generator = seededGenerator(m_request.compute.seed, samplingStream,
                                                     static_cast<std::uint64_t>(index));
        const AcceptSettings& settings = m_request.settings;
        MLA_TRY(result, mla::speculate(job, m_target, m_draft, prompt, settings.maxNewTokens,
                                       settings.k, m_stop, ruleOf(settings), &generator));
        return EngineText{std::move(result.ids),
                          {std::move(result.steps), result.plainSteps},
                          std::chrono::duration<double>(Clock::now() - begun).count(),
                          {}};
    }
    [[nodiscard]] bool parallel() const override { return true; }
    [[nodiscard]] std::string software() const override { return {}; }
    Status finish(JobContext& /*job*/) override { return {}; }

private:
    const Decoder& m_target;
    const Decoder& m_draft;
    const AcceptRequest& m_request;
    const StopRule& m_stop;
};

class PythonEngine final : public AcceptEngine
{
public:
    PythonEngine(PythonBackend backend, int k) : m_backend(std::move(backend)), m_k(k) {}
    Result<EngineText> speculate(JobContext& job, const std::vector<int>& prompt,
                                 int index) override
    {
        MLA_TRY(text, m_backend.speculate(job, prompt, index));
        AlignedCounts counts =
            alignedSteps(text.begun, static_cast<int>(text.ids.size()), m_k, /*prompt=*/0);
        return EngineText{std::move(text.ids), std::move(counts), text.seconds, text.own};
    }
    [[nodiscard]] bool parallel() const override { return false; }
    [[nodiscard]] std::string software() const override
    {
        return m_backend.software() + ", on " + m_backend.device();
    }
    Status finish(JobContext& job) override { return m_backend.finish(job); }

private:
    PythonBackend m_backend;
    int m_k;
};

/// Rows of the smaller head that are no shared token: the libraries choose among all rows.
std::vector<int> suppressed(const AcceptPair& pair)
{
    std::vector<int> ids;
    if (pair.shared.whole)
        return ids;
    for (int id = 0; id < pair.target.config().vocabSize; ++id)
        if (!pair.shared.contains(id))
            ids.push_back(id);
    return ids;
}

} // namespace

std::unique_ptr<AcceptEngine> nativeEngine(const Decoder& target, const Decoder& draft,
                                           const AcceptRequest& request, const StopRule& stop)
{
    return std::make_unique<NativeEngine>(target, draft, request, stop);
}

Result<std::unique_ptr<AcceptEngine>> pythonEngine(JobContext& job, const AcceptRequest& request,
                                                   const AcceptPair& pair, int longestPrompt)
{
    const std::string& name = request.settings.backend;
    const int targetRows = pair.target.config().vocabSize,
              draftRows = pair.draft.config().vocabSize;
    if (targetRows != draftRows)
        return badInput("vocab_size differs: " + std::to_string(targetRows) + " in the target, " +
                            std::to_string(draftRows) + " in the draft; the " + name +
                            " backend needs them equal",
                        request.draft.string(), "--backend native masks what one of them lacks");
    BackendSettings settings;
    settings.target = request.target;
    settings.draft = request.draft;
    settings.k = request.settings.k;
    settings.maxNewTokens = request.settings.maxNewTokens;
    settings.minNewTokens = request.settings.minNewTokens;
    settings.contextTokens = longestPrompt + request.settings.maxNewTokens + request.settings.k;
    settings.eosIds = pair.target.config().eosTokenIds;
    settings.suppressed = suppressed(pair);
    settings.rule = ruleOf(request.settings);
    settings.compute = request.compute;
    MLA_TRY(backend, PythonBackend::open(job, name, settings));
    return std::unique_ptr<AcceptEngine>(
        std::make_unique<PythonEngine>(std::move(backend), settings.k));
}

} // namespace mla
