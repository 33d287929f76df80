// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>
#include <numeric>
#include <random>

#include "core/evaluate/acceptance.h"

#include <QTest>

using namespace mla;

namespace
{

/// One prompt, k drafted tokens a step.
std::vector<StepCount> stepsOf(const std::vector<int>& accepted, int k)
{
    std::vector<StepCount> steps;
    for (const int a : accepted)
        steps.push_back({0, k, a});
    return steps;
}

bool close(double a, double b)
{
    return std::abs(a - b) < 1e-12;
}

} // namespace

class TestAcceptance : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void vllmHistogram();
    void acceptedPrefixes();
    void conditionalIsGivenReachedAndDrafted();
    void matchesAfterARejectionDoNotCount();
    void pooledAndPerPrompt();
    void noSteps();
    void bootstrapIsSeededAndCoversTheRate();
    void alignedCountsByHand();
    void alignedCountsIdentity();
};

void TestAcceptance::vllmHistogram()
{
    // k = 3, 43 steps: 39 accept nothing, one accepts 1, three accept 3: 10 of 129 tokens.
    std::vector<int> accepted(39, 0);
    accepted.insert(accepted.end(), {1, 3, 3, 3});
    const AcceptanceMetrics metrics = acceptanceMetrics(stepsOf(accepted, 3), 3);
    QCOMPARE(metrics.histogram, (std::vector<double>{39, 1, 0, 3}));
    QCOMPARE(metrics.acceptedTokens, 10.0);
    QCOMPARE(metrics.draftTokens, 129.0);
    QCOMPARE(std::round(metrics.meanAcceptanceLength * 1e4), 12326.0);
    QCOMPARE(std::round(metrics.acceptanceRate * 1e4), 775.0);
}

void TestAcceptance::acceptedPrefixes()
{
    const AcceptanceMetrics metrics = acceptanceMetrics(stepsOf({3, 0, 1, 2}, 3), 3);
    QVERIFY(close(metrics.acceptanceRate, 0.5));
    QVERIFY(close(metrics.meanAcceptanceLength, 2.5));
    QCOMPARE(metrics.perPosition, (std::vector<double>{.75, .5, .25}));
    QVERIFY(close(metrics.conditional[0], 3.0 / 4));
    QVERIFY(close(metrics.conditional[1], 2.0 / 3));
    QVERIFY(close(metrics.conditional[2], 1.0 / 2));
}

void TestAcceptance::conditionalIsGivenReachedAndDrafted()
{
    // The second step drafted one token only: it says nothing about position 1.
    const std::vector<StepCount> steps = {{0, 2, 2}, {0, 1, 1}, {0, 2, 0}};
    const AcceptanceMetrics metrics = acceptanceMetrics(steps, 3);
    QVERIFY(close(metrics.conditional[0], 2.0 / 3));
    QVERIFY(close(metrics.conditional[1], 1.0));
    QVERIFY(std::isnan(metrics.conditional[2]));
    QVERIFY(close(metrics.perPosition[1], 1.0 / 3));
    QVERIFY(close(metrics.acceptanceRate, 3.0 / 5));
}

void TestAcceptance::matchesAfterARejectionDoNotCount()
{
    // Matches [1,0,1,0] and the token after them: one step of four, one accepted.
    const AlignedCounts counts = alignedCounts({true, false, true, false, false}, 4, 0);
    const AcceptanceMetrics metrics = acceptanceMetrics({counts.steps.data(), 1}, 4);
    QCOMPARE(counts.steps.front().drafted, 4);
    QVERIFY(close(metrics.acceptanceRate, 0.25));
    QVERIFY(close(metrics.meanAcceptanceLength, 2));
}

void TestAcceptance::pooledAndPerPrompt()
{
    std::vector<StepCount> steps = {{0, 3, 3}};
    for (int i = 0; i < 9; ++i)
        steps.push_back({1, 3, 0});
    const AcceptanceMetrics metrics = acceptanceMetrics(steps, 3);
    QVERIFY(close(metrics.meanAcceptanceLength, 1.3));
    QVERIFY(close(metrics.perPromptMeanLength, 2.5));
    QVERIFY(close(metrics.acceptanceRate, 0.1));
    QVERIFY(close(metrics.perPromptMeanRate, 0.5));
}

void TestAcceptance::noSteps()
{
    const AcceptanceMetrics metrics = acceptanceMetrics({}, 2);
    QCOMPARE(metrics.acceptanceRate, 0.0);
    QCOMPARE(metrics.meanAcceptanceLength, 0.0);
    QCOMPARE(metrics.histogram, (std::vector<double>{0, 0, 0}));
    QVERIFY(std::isnan(metrics.conditional[0]));
}

void TestAcceptance::bootstrapIsSeededAndCoversTheRate()
{
    std::mt19937 random(1);
    std::vector<StepCount> steps;
    for (int prompt = 0; prompt < 40; ++prompt)
        for (int i = 0; i < 10; ++i)
            steps.push_back({prompt, 4, static_cast<int>(random() % 5)});
    const AcceptanceMetrics first = acceptanceMetrics(steps, 4, 7);
    const AcceptanceMetrics second = acceptanceMetrics(steps, 4, 7);
    QCOMPARE(first.rateLow, second.rateLow);
    QCOMPARE(first.rateHigh, second.rateHigh);
    QVERIFY(first.rateLow < first.acceptanceRate && first.acceptanceRate < first.rateHigh);
    // 400 steps of a uniform 0..4: standard error of the rate sqrt(2)/4/20 = .0177.
    const double width = first.rateHigh - first.rateLow;
    QVERIFY2(width > 2 * .0177 && width < 6 * .0177, qPrintable(QString::number(width)));
    // A single prompt has no spread over prompts.
    const AcceptanceMetrics one = acceptanceMetrics(stepsOf({1, 2}, 4), 4);
    QCOMPARE(one.rateLow, one.acceptanceRate);
    QCOMPARE(one.rateHigh, one.acceptanceRate);
}

void TestAcceptance::alignedCountsByHand()
{
    // n = 6, k = 2: step at 0 accepts 0 and 1 (next 3); step at 3 drafts 2, accepts none (next 4);
    // step at 4 drafts 1, accepts it (next 6).
    const AlignedCounts counts = alignedCounts({true, true, false, false, true, true}, 2, 5);
    QCOMPARE(counts.steps.size(), std::size_t{3});
    const int drafted[] = {2, 2, 1}, accepted[] = {2, 0, 1};
    for (std::size_t i = 0; i < 3; ++i) {
        QCOMPARE(counts.steps[i].prompt, 5);
        QCOMPARE(counts.steps[i].drafted, drafted[i]);
        QCOMPARE(counts.steps[i].accepted, accepted[i]);
    }
    QCOMPARE(counts.plainSteps, 0.0);
    // A single EOS: nothing to draft.
    const AlignedCounts single = alignedCounts({true}, 4, 0);
    QVERIFY(single.steps.empty());
    QCOMPARE(single.plainSteps, 1.0);
    QVERIFY(alignedCounts({}, 4, 0).steps.empty());
    QCOMPARE(alignedCounts({}, 4, 0).plainSteps, 0.0);
    // k = 0 never drafts.
    QCOMPARE(alignedCounts({true, true, true}, 0, 0).plainSteps, 3.0);
}

void TestAcceptance::alignedCountsIdentity()
{
    std::mt19937 random(3);
    for (int trial = 0; trial < 2000; ++trial) {
        std::vector<bool> matches(random() % 80);
        const unsigned percent = random() % 101;
        for (std::size_t i = 0; i < matches.size(); ++i)
            matches[i] = random() % 100 < percent;
        const int k = static_cast<int>(random() % 9);
        const AlignedCounts counts = alignedCounts(matches, k, 0);
        double total = counts.plainSteps + static_cast<double>(counts.steps.size());
        for (const StepCount& step : counts.steps) {
            QVERIFY(step.drafted > 0 && step.drafted <= k);
            QVERIFY(step.accepted >= 0 && step.accepted <= step.drafted);
            total += step.accepted;
        }
        QCOMPARE(total, static_cast<double>(matches.size()));
    }
}

QTEST_APPLESS_MAIN(TestAcceptance)
#include "tst_acceptance.moc"
