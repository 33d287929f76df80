// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pipeline/accept_engine.h"

#include "core/base/elapsed.h"
#include "core/evaluate/speculative.h"
#include "core/model/tensors.h"
#include "core/pipeline/accept_texts.h"

namespace mla
{
namespace
{

class NativeEngine final : public AcceptEngine
{
public:
    NativeEngine(const Decoder& target, const Decoder* draft, const AcceptRequest& request,
                 const StopRule& stop)
        : m_target(target), m_draft(draft), m_request(request), m_stop(stop)
    {
    }
    Result<EngineText> speculate(JobContext& job, const std::vector<int>& prompt,
                                 int index) override
    {
        const SteadyClock::time_point begun = SteadyClock::now();
        torch::Generator generator = seededGenerator(m_request.compute.seed, acceptanceStream,
                                                     static_cast<std::uint64_t>(index));
        const AcceptSettings& settings = m_request.settings;
        if (!m_draft) {
            MLA_TRY(text, continuePrompt(job, m_target, prompt, settings.maxNewTokens, m_stop,
                                         settings.rule(), &generator, Remember::Ids));
            return EngineText{std::move(text.ids), {}, secondsSince(begun), {}, {}, {}};
        }
        MLA_TRY(result, mla::speculate(job, m_target, *m_draft, prompt, settings.maxNewTokens,
                                       settings.k, m_stop, settings.rule(), &generator));
        return EngineText{std::move(result.ids), {std::move(result.steps), result.plainSteps},
                          secondsSince(begun),   result.draftSeconds,
                          result.verifySeconds,  {}};
    }
    [[nodiscard]] bool parallel() const override { return true; }
    [[nodiscard]] std::string software() const override { return {}; }
    Status finish(JobContext& /*job*/) override { return {}; }

private:
    const Decoder& m_target;
    const Decoder* m_draft; ///< null: plain decoding
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
        return EngineText{std::move(text.ids), std::move(counts),  text.seconds,
                          text.draftSeconds,   text.verifySeconds, text.own};
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

std::unique_ptr<AcceptEngine> nativeEngine(const Decoder& target, const Decoder* draft,
                                           const AcceptRequest& request, const StopRule& stop)
{
    return std::make_unique<NativeEngine>(target, draft, request, stop);
}

Result<std::unique_ptr<AcceptEngine>> pythonEngine(JobContext& job, const AcceptRequest& request,
                                                   const AcceptPair& pair, int longestPrompt,
                                                   bool plain)
{
    const std::string& name = request.settings.backend;
    const int targetRows = pair.target.config().vocabSize,
              draftRows = pair.draft.config().vocabSize;
    if (targetRows != draftRows && !plain)
        return badInput("vocab_size differs: " + std::to_string(targetRows) + " in the target, " +
                            std::to_string(draftRows) + " in the draft; the " + name +
                            " backend needs them equal",
                        request.draft.string(), "--backend native masks what one of them lacks");
    BackendSettings settings;
    settings.target = request.target;
    if (!plain)
        settings.draft = request.draft;
    settings.k = request.settings.k;
    settings.maxNewTokens = request.settings.maxNewTokens;
    settings.minNewTokens = request.settings.minNewTokens;
    settings.contextTokens = longestPrompt + request.settings.maxNewTokens + request.settings.k;
    settings.eosIds = pair.target.config().eosTokenIds;
    settings.suppressed = suppressed(pair);
    settings.rule = request.settings.rule();
    settings.compute = request.compute;
    MLA_TRY(backend, PythonBackend::open(job, name, settings));
    return std::unique_ptr<AcceptEngine>(
        std::make_unique<PythonEngine>(std::move(backend), settings.k));
}

} // namespace mla
