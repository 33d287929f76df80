// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluate/speculative.h"

#include <algorithm>
#include <memory>

#include "core/base/elapsed.h"
#include "core/model/token_distribution.h"

namespace mla
{
namespace
{

/// A decoder with its cache over prompt + continuation so far.
class CachedModel final : public TextModel
{
public:
    CachedModel(const Decoder& model, std::int64_t capacity)
        : m_model(model), m_cache(model.makeCache(1, capacity))
    {
    }
    /// All but the last prompt token; each later pass begins with the newest certain token.
    void prefill(const std::vector<int>& prompt)
    {
        const std::vector<int> head(prompt.begin(), prompt.end() - 1);
        if (!head.empty())
            (void)m_model.stepLast(idTensor(head, m_model.device()), m_cache);
    }
    torch::Tensor catchUp(const std::vector<int>& text) override
    {
        const std::vector<int> fresh(text.begin() + static_cast<std::ptrdiff_t>(m_cache.length()),
                                     text.end());
        return m_model.step(idTensor(fresh, m_model.device()), m_cache)[0];
    }
    void rollback(std::int64_t length) override { m_cache.rollback(length); }

private:
    const Decoder& m_model;
    KvCache m_cache;
};

struct Verdict {
    int token = 0;
    bool drafted = false; ///< it is the drafted one; else the step ends with it
};

/// How tokens are proposed and verified. Rows are allowed logits [V].
class Chooser
{
public:
    virtual ~Chooser() = default;
    virtual int propose(const torch::Tensor& row) = 0;
    /// The token that stands, given the target's row and the step's `index`-th proposal.
    virtual Verdict verify(const torch::Tensor& row, int index) = 0;
    /// The token after a wholly accepted draft.
    virtual int bonus(const torch::Tensor& row) = 0;
    virtual void beginStep() = 0;
};

class GreedyChooser final : public Chooser
{
public:
    explicit GreedyChooser(SpeculativeResult& out) : m_out(out) {}
    void beginStep() override { m_proposed.clear(); }
    int propose(const torch::Tensor& row) override
    {
        m_out.draftMargins.push_back(topTwoMargin(row).item<float>());
        return m_proposed.emplace_back(row.argmax(-1).item<int>());
    }
    Verdict verify(const torch::Tensor& row, int index) override
    {
        const int token = bonus(row);
        return {token, token == m_proposed[static_cast<std::size_t>(index)]};
    }
    int bonus(const torch::Tensor& row) override { return row.argmax(-1).item<int>(); }

private:
    SpeculativeResult& m_out;
    std::vector<int> m_proposed;
};

class SamplingChooser final : public Chooser
{
public:
    SamplingChooser(SpeculativeResult& out, const SamplingRule& rule, torch::Generator& generator)
        : m_out(out), m_rule(rule), m_generator(generator)
    {
    }
    void beginStep() override { m_proposed.clear(); }
    int propose(const torch::Tensor& row) override
    {
        torch::Tensor q = tokenProbabilities(row, m_rule);
        const int token = drawToken(q, m_generator);
        m_proposed.push_back({token, std::move(q)});
        return token;
    }
    Verdict verify(const torch::Tensor& row, int index) override
    {
        const Proposal& proposal = m_proposed[static_cast<std::size_t>(index)];
        const torch::Tensor p = tokenProbabilities(row, m_rule);
        m_out.overlaps.push_back(overlap(p, proposal.q));
        const auto at = [&](const torch::Tensor& t) { return t[proposal.token].item<double>(); };
        if (drawUniform(m_generator) * at(proposal.q) < at(p))
            return {proposal.token, true};
        return {drawResidual(p, proposal.q, m_generator), false};
    }
    int bonus(const torch::Tensor& row) override
    {
        return drawToken(tokenProbabilities(row, m_rule), m_generator);
    }

private:
    struct Proposal {
        int token = 0;
        torch::Tensor q; ///< what it was drawn from
    };
    SpeculativeResult& m_out;
    const SamplingRule& m_rule;
    torch::Generator& m_generator;
    std::vector<Proposal> m_proposed;
};

std::unique_ptr<Chooser> chooserFor(SpeculativeResult& out, const SamplingRule& rule,
                                    torch::Generator* generator)
{
    if (rule.greedy())
        return std::make_unique<GreedyChooser>(out);
    TORCH_CHECK(generator, "sampling needs a generator");
    return std::make_unique<SamplingChooser>(out, rule, *generator);
}

} // namespace

Result<SpeculativeResult> speculate(JobContext& job, TextModel& target, TextModel& draft,
                                    const std::vector<int>& prompt, int newTokens, int k,
                                    const StopRule& stop, const SamplingRule& rule,
                                    torch::Generator* generator)
{
    const torch::NoGradGuard noGrad;
    SpeculativeResult out;
    const std::unique_ptr<Chooser> chooser = chooserFor(out, rule, generator);
    std::vector<int> text = prompt;
    std::vector<StepStart> begun;
    bool ended = false;
    while (!ended && static_cast<int>(out.ids.size()) < newTokens) {
        if (job.stopRequested())
            return cancelled();
        const int position = static_cast<int>(out.ids.size());
        const int drafted = std::min(k, newTokens - position - 1);
        std::vector<int> proposal = text;
        chooser->beginStep();
        const SteadyClock::time_point proposing = SteadyClock::now();
        for (int i = 0; i < drafted; ++i) {
            const torch::Tensor logits = draft.catchUp(proposal);
            proposal.push_back(
                chooser->propose(allowedLogits(logits[logits.size(0) - 1], stop, position + i)));
        }
        out.draftSeconds += secondsSince(proposing);
        const SteadyClock::time_point verifying = SteadyClock::now();
        const torch::Tensor logits = target.catchUp(proposal); // [drafted + 1, V]
        int accepted = 0;
        for (bool stands = true; stands && !ended;) {
            const torch::Tensor row = allowedLogits(logits[logits.size(0) - drafted - 1 + accepted],
                                                    stop, position + accepted);
            const Verdict verdict = accepted < drafted ? chooser->verify(row, accepted)
                                                       : Verdict{chooser->bonus(row), false};
            text.push_back(verdict.token);
            out.ids.push_back(verdict.token);
            ended = stop.isEos(verdict.token);
            stands = verdict.drafted;
            accepted += stands;
        }
        out.verifySeconds += secondsSince(verifying);
        // What lies behind the last certain token but one is void in both caches.
        target.rollback(static_cast<std::int64_t>(text.size()) - 1);
        draft.rollback(static_cast<std::int64_t>(text.size()) - 1);
        begun.push_back({position, accepted});
    }
    AlignedCounts counts = alignedSteps(begun, static_cast<int>(out.ids.size()), k, 0);
    out.steps = std::move(counts.steps);
    out.plainSteps = counts.plainSteps;
    return out;
}

Result<SpeculativeResult> speculate(JobContext& job, const Decoder& target, const Decoder& draft,
                                    const std::vector<int>& prompt, int newTokens, int k,
                                    const StopRule& stop, const SamplingRule& rule,
                                    torch::Generator* generator)
{
    const std::int64_t total = static_cast<std::int64_t>(prompt.size()) + newTokens;
    MLA_CHECK(checkIds(target.config(), prompt, total));
    MLA_CHECK(checkIds(draft.config(), prompt, total));
    const torch::NoGradGuard noGrad;
    CachedModel verifier(target, total), proposer(draft, total);
    verifier.prefill(prompt);
    proposer.prefill(prompt);
    return speculate(job, verifier, proposer, prompt, newTokens, k, stop, rule, generator);
}

} // namespace mla
