// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluate/acceptance.h"
#include "core/evaluate/expected_counts.h"

#include <random>

#include <QTest>

using namespace mla;

namespace
{

bool near(double a, double b)
{
    return std::abs(a - b) < 1e-12 * std::max(1.0, std::abs(b));
}

/// Expectations: sums over the weighted steps.
struct Sums {
    double steps = 0, plainSteps = 0, draftTokens = 0, acceptedTokens = 0;
    std::vector<double> histogram, passed;
};
Sums expected(const std::vector<double>& accept, int k)
{
    const AlignedCounts counts = expectedCounts(accept, k, 0);
    Sums sums;
    sums.plainSteps = counts.plainSteps;
    sums.histogram.assign(static_cast<std::size_t>(k) + 1, 0.0);
    sums.passed.assign(static_cast<std::size_t>(k), 0.0);
    for (const StepCount& step : counts.steps) {
        sums.steps += step.weight;
        sums.draftTokens += step.weight * step.drafted;
        sums.acceptedTokens += step.weight * step.accepted;
        sums.histogram[static_cast<std::size_t>(step.accepted)] += step.weight;
        for (int i = 0; i < step.accepted; ++i)
            sums.passed[static_cast<std::size_t>(i)] += step.weight;
    }
    return sums;
}

} // namespace

class ExpectedCountsTest : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void byHand();
    void certainTokensGiveGreedyCounts();
    void equalsTheSumOverAllOutcomes();
    void emptyAndShort();
};

/// Three tokens, k = 1: a step at 0 drafts one token (accept .5); accepted, the next starts at 2
/// (plain), else at 1 (drafts one, accept .25).
void ExpectedCountsTest::byHand()
{
    const std::vector<double> accept = {0.5, 0.25, 0.9};
    const Sums counts = expected(accept, 1);
    QVERIFY(near(counts.steps, 1 + 0.5));
    QVERIFY(near(counts.draftTokens, 1.5));
    QVERIFY(near(counts.acceptedTokens, 0.5 + 0.5 * 0.25));
    QVERIFY(near(counts.plainSteps, 0.5 + 0.5 * 0.75));
    QVERIFY(near(counts.histogram[0], 0.5 + 0.5 * 0.75));
    QVERIFY(near(counts.histogram[1], 0.5 + 0.5 * 0.25));
}

void ExpectedCountsTest::certainTokensGiveGreedyCounts()
{
    std::mt19937 random(7);
    for (int round = 0; round < 200; ++round) {
        const int n = static_cast<int>(random() % 40), k = 1 + static_cast<int>(random() % 8);
        std::vector<bool> matches;
        std::vector<double> accept;
        for (int i = 0; i < n; ++i) {
            matches.push_back(random() % 3 > 0);
            accept.push_back(matches.back() ? 1 : 0);
        }
        const AlignedCounts greedy = alignedCounts(matches, k, 0);
        const Sums counts = expected(accept, k);
        double drafted = 0, accepted = 0;
        std::vector<double> histogram(static_cast<std::size_t>(k) + 1, 0.0);
        for (const StepCount& step : greedy.steps) {
            drafted += step.drafted;
            accepted += step.accepted;
            histogram[static_cast<std::size_t>(step.accepted)] += 1;
        }
        QCOMPARE(counts.steps, static_cast<double>(greedy.steps.size()));
        QCOMPARE(counts.plainSteps, static_cast<double>(greedy.plainSteps));
        QCOMPARE(counts.draftTokens, drafted);
        QCOMPARE(counts.acceptedTokens, accepted);
        QCOMPARE(counts.histogram, histogram);
    }
}

/// Every one of the 2^n patterns of accepted positions, weighted by its probability.
void ExpectedCountsTest::equalsTheSumOverAllOutcomes()
{
    const std::vector<double> accept = {0.3, 0.9, 0.5, 1.0, 0.1, 0.7, 0.6, 0.2};
    for (int k = 1; k <= 5; ++k) {
        double steps = 0, plain = 0, drafted = 0, accepted = 0;
        std::vector<double> passed(static_cast<std::size_t>(k), 0.0);
        for (unsigned pattern = 0; pattern < 1U << accept.size(); ++pattern) {
            double weight = 1;
            std::vector<bool> matches;
            for (std::size_t i = 0; i < accept.size(); ++i) {
                matches.push_back((pattern >> i & 1U) != 0);
                weight *= matches.back() ? accept[i] : 1 - accept[i];
            }
            const AlignedCounts counts = alignedCounts(matches, k, 0);
            steps += weight * static_cast<double>(counts.steps.size());
            plain += weight * static_cast<double>(counts.plainSteps);
            for (const StepCount& step : counts.steps) {
                drafted += weight * step.drafted;
                accepted += weight * step.accepted;
                for (int i = 0; i < step.accepted; ++i)
                    passed[static_cast<std::size_t>(i)] += weight;
            }
        }
        const Sums counts = expected(accept, k);
        QVERIFY(near(counts.steps, steps));
        QVERIFY(near(counts.plainSteps, plain));
        QVERIFY(near(counts.draftTokens, drafted));
        QVERIFY(near(counts.acceptedTokens, accepted));
        for (std::size_t i = 0; i < passed.size(); ++i)
            QVERIFY(near(counts.passed[i], passed[i]));
        // n = accepted + steps + plain
        QVERIFY(near(counts.acceptedTokens + counts.steps + counts.plainSteps,
                     static_cast<double>(accept.size())));
    }
}

void ExpectedCountsTest::emptyAndShort()
{
    QCOMPARE(expected({}, 4).steps, 0.0);
    QCOMPARE(expected({0.5}, 4).plainSteps, 1.0);
    QCOMPARE(expected({0.5}, 4).steps, 0.0);
}

QTEST_APPLESS_MAIN(ExpectedCountsTest)
#include "tst_expected_counts.moc"
