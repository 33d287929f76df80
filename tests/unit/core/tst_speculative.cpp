// SPDX-License-Identifier: GPL-3.0-or-later
// Greedy speculative decoding of the demo checkpoint with a converted draft: output, aligned
// counts, and the replay that must tell the same without generating.
#include "core/evaluate/acceptance.h"
#include "core/evaluate/replay.h"
#include "core/evaluate/speculative.h"
#include "tests/support/test_drafts.h"

#include <algorithm>
#include <optional>

#include <QTemporaryDir>
#include <QTest>

using namespace mla;
using namespace mla::test;

namespace
{
constexpr float kNearTie = 1e-3F; // below it numerics may choose either token
constexpr int kNewTokens = 64;
using Steps = std::vector<std::array<int, 2>>; // drafted, accepted

Steps plain(const std::vector<StepCount>& counts)
{
    Steps steps;
    for (const StepCount& count : counts)
        steps.push_back({count.drafted, count.accepted});
    return steps;
}
} // namespace

class TestSpeculative : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase();
    void engineAndReplay_data();
    void engineAndReplay();
    void targetAsDraft();
    void endInTheMiddle();
    void endProposedByDraft();
    void draftLongerThanRest_data();
    void draftLongerThanRest();
    void oneTokenPrompt();
    void endKeptOut();
    void marginsOfAllowedTokens();
    void refusesAndCancels();

private:
    [[nodiscard]] Continuation greedy(const std::vector<int>& prompt, const StopRule& stop,
                                      int newTokens = kNewTokens);
    /// Runs the engine and holds it against the target's own text and against the replay.
    SpeculativeResult check(const std::vector<int>& prompt, int k, const StopRule& stop,
                            int newTokens = kNewTokens);
    std::vector<std::vector<int>> m_prompts;
    std::optional<Decoder> m_target, m_draft;
    QTemporaryDir m_folder;
    JobContext m_job;
};

void TestSpeculative::initTestCase()
{
    useOneThread();
    const nlohmann::json facts = goldenJson("models.json").at("models").at("stories260K");
    for (const nlohmann::json& text : facts.at("greedy"))
        m_prompts.push_back(text.at("prompt_ids"));
    m_target = openModel(stories());
    m_draft = convertedStories(std::filesystem::path(m_folder.path().toStdString()) / "draft");
}

Continuation TestSpeculative::greedy(const std::vector<int>& prompt, const StopRule& stop,
                                     int newTokens)
{
    return must(continuePrompt(m_job, *m_target, prompt, newTokens, stop));
}

SpeculativeResult TestSpeculative::check(const std::vector<int>& prompt, int k,
                                         const StopRule& stop, int newTokens)
{
    const Continuation own = greedy(prompt, stop, newTokens);
    SpeculativeResult out = must(speculate(m_job, *m_target, *m_draft, prompt, newTokens, k, stop));
    const ReplayResult replayed = must(replay(*m_draft, prompt, own, stop));
    const float closest =
        std::min(*std::min_element(own.margins.begin(), own.margins.end()),
                 *std::min_element(replayed.margins.begin(), replayed.margins.end()));
    if (closest < kNearTie) // the prompts are chosen so that no choice is a matter of rounding
        throw std::runtime_error("a near-tie of " + std::to_string(closest));
    if (out.ids != own.ids)
        throw std::runtime_error("the text differs from the target's own");
    const AlignedCounts aligned = alignedCounts(replayed.matches, k, 0);
    if (plain(out.steps) != plain(aligned.steps) || out.plainSteps != aligned.plainSteps)
        throw std::runtime_error("replay differs from the engine");
    double tokens = static_cast<double>(out.steps.size()) + out.plainSteps;
    for (const StepCount& step : out.steps)
        tokens += step.accepted;
    if (tokens != static_cast<double>(out.ids.size()))
        throw std::runtime_error("n is not accepted + steps + plain");
    return out;
}

void TestSpeculative::engineAndReplay_data()
{
    QTest::addColumn<int>("prompt");
    QTest::addColumn<int>("k");
    for (int prompt = 0; prompt < 3; ++prompt)
        for (const int k : {1, 2, 4, 7})
            QTest::newRow(qPrintable(QString("prompt %1, k = %2").arg(prompt).arg(k)))
                << prompt << k;
}

void TestSpeculative::engineAndReplay()
{
    QFETCH(int, prompt);
    QFETCH(int, k);
    const SpeculativeResult out = check(m_prompts[static_cast<std::size_t>(prompt)], k, {});
    QCOMPARE(out.ids.size(), std::size_t{kNewTokens});
    const AcceptanceMetrics metrics = acceptanceMetrics(out.steps, k);
    qInfo("acceptance %.3f in %.0f steps", metrics.acceptanceRate, metrics.steps);
    QVERIFY(metrics.acceptanceRate < 1); // the draft is lossy: both branches were taken
    QVERIFY(metrics.acceptedTokens > 0 || k == 1);
}

void TestSpeculative::targetAsDraft()
{
    const Decoder again = openModel(stories());
    for (const std::vector<int>& prompt : m_prompts)
        for (const int k : {1, 4, 8}) {
            const SpeculativeResult out =
                must(speculate(m_job, *m_target, again, prompt, kNewTokens, k, {}));
            QCOMPARE(out.ids, greedy(prompt, {}).ids);
            QCOMPARE(acceptanceMetrics(out.steps, k).acceptanceRate, 1.0);
        }
}

void TestSpeculative::endInTheMiddle()
{
    for (const std::vector<int>& prompt : m_prompts) {
        const std::vector<int> whole = greedy(prompt, {}).ids;
        for (const std::size_t place : {std::size_t{0}, std::size_t{7}, std::size_t{21}}) {
            const StopRule stop{{whole[place]}, 0};
            const auto first = std::find(whole.begin(), whole.end(), whole[place]);
            for (const int k : {1, 4, 7}) {
                const SpeculativeResult out = check(prompt, k, stop);
                QCOMPARE(out.ids, std::vector<int>(whole.begin(), first + 1)); // EOS included
            }
        }
    }
}

/// What a draft emits after its own EOS counts like anything else, and the EOS ends nothing.
void TestSpeculative::endProposedByDraft()
{
    int met = 0;
    const torch::NoGradGuard noGrad;
    for (const std::vector<int>& prompt : m_prompts) {
        const std::vector<int> whole = greedy(prompt, {}).ids;
        std::vector<int> text = prompt;
        text.insert(text.end(), whole.begin(), whole.end());
        const torch::Tensor choices = m_draft->logits(idTensor(text, torch::kCPU))[0].argmax(-1);
        const Steps expected = plain(check(prompt, 4, {}).steps);
        for (std::size_t i = 0; i < whole.size(); ++i) {
            const int choice =
                choices[static_cast<std::int64_t>(prompt.size() + i) - 1].item<int>();
            if (std::find(whole.begin(), whole.end(), choice) != whole.end())
                continue;
            ++met; // the draft proposes a token that the target never emits
            const SpeculativeResult out = check(prompt, 4, {{choice}, 0});
            QCOMPARE(out.ids, whole);
            QCOMPARE(plain(out.steps), expected);
        }
    }
    QVERIFY(met > 0);
}

void TestSpeculative::draftLongerThanRest_data()
{
    QTest::addColumn<int>("newTokens");
    for (const int newTokens : {1, 2, 3, 9})
        QTest::newRow(qPrintable(QString::number(newTokens))) << newTokens;
}

void TestSpeculative::draftLongerThanRest()
{
    QFETCH(int, newTokens);
    constexpr int k = 8;
    const SpeculativeResult out = check(m_prompts[0], k, {}, newTokens);
    QCOMPARE(out.ids.size(), static_cast<std::size_t>(newTokens));
    int position = 0;
    for (const StepCount& step : out.steps) {
        QCOMPARE(step.drafted, std::min(k, newTokens - position - 1));
        position += step.accepted + 1;
    }
    if (newTokens == 1) {
        QVERIFY(out.steps.empty());
        QCOMPARE(out.plainSteps, 1.0);
    }
}

void TestSpeculative::oneTokenPrompt()
{
    for (const int k : {1, 4})
        QCOMPARE(check({1}, k, {}).ids.size(), std::size_t{kNewTokens});
}

void TestSpeculative::endKeptOut()
{
    constexpr int fewest = 20;
    for (const std::vector<int>& prompt : m_prompts) {
        const int end = greedy(prompt, {}).ids[5];
        const SpeculativeResult out = check(prompt, 4, {{end}, fewest});
        QVERIFY(out.ids.size() > fewest);
        QVERIFY(std::find(out.ids.begin(), out.ids.begin() + fewest, end) ==
                out.ids.begin() + fewest);
        QVERIFY(check(prompt, 4, {{end}, 0}).ids.size() < fewest);
    }
}

/// While EOS is kept out, a choice is as close as the two best of the other tokens are.
void TestSpeculative::marginsOfAllowedTokens()
{
    const std::vector<int>& prompt = m_prompts[0];
    const torch::NoGradGuard noGrad;
    const torch::Tensor logits = m_draft->logits(idTensor(prompt, torch::kCPU))[0][-1];
    const auto [values, order] = logits.topk(3);
    const StopRule stop{{order[0].item<int>()}, 1};
    const float expected = (values[1] - values[2]).item<float>();
    QVERIFY(std::abs(expected - (values[0] - values[1]).item<float>()) > 1e-2);
    const ReplayResult replayed = must(replay(*m_draft, prompt, Continuation{{order[1].item<int>()}, {}, {}, {}, {}}, stop));
    QVERIFY(replayed.matches[0]);
    QVERIFY(std::abs(replayed.margins[0] - expected) < 1e-4);
    const SpeculativeResult engine =
        must(speculate(m_job, *m_target, *m_draft, prompt, 4, 2, stop));
    QVERIFY(std::abs(engine.draftMargins[0] - expected) < 1e-4);
}

void TestSpeculative::refusesAndCancels()
{
    const auto outside = speculate(m_job, *m_target, *m_draft, {1, 512}, 4, 2, {});
    QVERIFY(!outside.ok());
    QCOMPARE(outside.error().code, ErrorCode::BadInput);
    const auto empty = speculate(m_job, *m_target, *m_draft, {}, 4, 2, {});
    QVERIFY(!empty.ok());
    const auto tooLong = speculate(m_job, *m_target, *m_draft, {1}, 512, 2, {});
    QVERIFY(!tooLong.ok()); // the context holds 512
    std::stop_source stop;
    stop.request_stop();
    JobContext stopped(stop.get_token(), {});
    const auto result = speculate(stopped, *m_target, *m_draft, {1}, 4, 2, {});
    QVERIFY(!result.ok());
    QCOMPARE(result.error().code, ErrorCode::Cancelled);
}

QTEST_GUILESS_MAIN(TestSpeculative)
#include "tst_speculative.moc"
