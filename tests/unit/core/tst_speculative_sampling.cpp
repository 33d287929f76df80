// SPDX-License-Identifier: GPL-3.0-or-later
// The sampling engine over models that are tables: the next token's distribution depends on the
// last token alone, so that what should come out is known exactly.
#include "core/evaluate/expected_counts.h"
#include "core/evaluate/speculative.h"
#include "core/model/tensors.h"
#include "core/model/token_distribution.h"

#include <array>
#include <cmath>

#include <QTest>

using namespace mla;

namespace
{

constexpr int V = 5;
using Table = std::array<std::array<double, V>, V>; // [last token][next token]

class TableModel final : public TextModel
{
public:
    explicit TableModel(const Table& table)
        : m_logits(torch::empty({V, V}, torch::kFloat64)), m_known(0)
    {
        for (int i = 0; i < V; ++i)
            for (int j = 0; j < V; ++j)
                m_logits[i][j] =
                    std::log(table[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)]);
    }
    torch::Tensor catchUp(const std::vector<int>& text) override
    {
        const std::vector<int> fresh(text.begin() + m_known, text.end());
        m_known = static_cast<std::ptrdiff_t>(text.size());
        return m_logits.index_select(0, torch::tensor(fresh, torch::kInt64));
    }
    void rollback(std::int64_t length) override { m_known = std::min(m_known, length); }
    void restart() { m_known = 0; }

private:
    torch::Tensor m_logits;
    std::ptrdiff_t m_known;
};

constexpr Table target = {{{.50, .20, .15, .10, .05},
                           {.05, .60, .05, .05, .25},
                           {.30, .30, .30, .05, .05},
                           {.01, .09, .20, .30, .40},
                           {.24, .19, .19, .19, .19}}};
constexpr Table draft = {{{.20, .20, .20, .20, .20},
                          {.25, .30, .05, .20, .20},
                          {.10, .20, .60, .05, .05},
                          {.20, .09, .01, .30, .40},
                          {.05, .05, .05, .05, .80}}};
constexpr SamplingRule plainSampling{1.0, 0, 1.0};

SpeculativeResult run(TableModel& verifier, TableModel& proposer, int n, int k,
                      torch::Generator& generator, const SamplingRule& rule = plainSampling)
{
    JobContext job;
    verifier.restart();
    proposer.restart();
    Result<SpeculativeResult> result =
        speculate(job, verifier, proposer, {0}, n, k, {}, rule, &generator);
    if (!result)
        throw std::runtime_error(result.error().text());
    return std::move(result).value();
}

double chance(const Table& table, int last, int next)
{
    return table[static_cast<std::size_t>(last)][static_cast<std::size_t>(next)];
}

void compareAll(const torch::Tensor& actual, const std::vector<double>& expected)
{
    QCOMPARE(actual.numel(), static_cast<std::int64_t>(expected.size()));
    for (std::size_t i = 0; i < expected.size(); ++i)
        QVERIFY2(std::abs(actual[static_cast<std::int64_t>(i)].item<double>() - expected[i]) <
                     1e-12,
                 qPrintable(QString("entry %1 is %2, expected %3")
                                .arg(i)
                                .arg(actual[static_cast<std::int64_t>(i)].item<double>())
                                .arg(expected[i])));
}

} // namespace

class SpeculativeSamplingTest : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() { useOneThread(); }
    void outputHasTheTargetsDistribution();
    void acceptanceIsTheExactExpectation_data();
    void acceptanceIsTheExactExpectation();
    void equalModelsAcceptEverything();
    void theDraftsProbabilitiesCount();
    void samplingRules();
    void residual();
    void seedDecides();
    void endOfTextIsCountedToo();
};

/// Chi-square over the transitions of 200,000 tokens. V (V - 1) = 20 degrees of freedom: 52.4 is
/// exceeded once in 10,000 times.
void SpeculativeSamplingTest::outputHasTheTargetsDistribution()
{
    TableModel verifier(target), proposer(draft);
    torch::Generator generator = seededGenerator(1, 2, 3);
    std::array<std::array<double, V>, V> counts{};
    constexpr int length = 500, runs = 400;
    for (int i = 0; i < runs; ++i) {
        int last = 0;
        const SpeculativeResult result = run(verifier, proposer, length, 3, generator);
        QCOMPARE(result.ids.size(), std::size_t{length});
        for (const int token : result.ids) {
            ++counts[static_cast<std::size_t>(last)][static_cast<std::size_t>(token)];
            last = token;
        }
    }
    double chiSquare = 0;
    for (int last = 0; last < V; ++last) {
        double seen = 0;
        for (const double count : counts[static_cast<std::size_t>(last)])
            seen += count;
        for (int next = 0; next < V; ++next) {
            const double expected = seen * chance(target, last, next);
            const double difference =
                counts[static_cast<std::size_t>(last)][static_cast<std::size_t>(next)] - expected;
            chiSquare += difference * difference / expected;
        }
    }
    qInfo("chi-square %.1f of %d tokens", chiSquare, length * runs);
    QVERIFY(chiSquare < 52.4);
    QVERIFY(chiSquare > 4.0); // a fit this good (once in 10,000) would be no sample
}

void SpeculativeSamplingTest::acceptanceIsTheExactExpectation_data()
{
    QTest::addColumn<int>("k");
    for (const int k : {1, 2, 4, 7})
        QTest::newRow(qPrintable(QString("k = %1").arg(k))) << k;
}

/// Of each sampled text, what the engine counted less what is expected given that text: zero in the
/// mean, within four standard errors.
void SpeculativeSamplingTest::acceptanceIsTheExactExpectation()
{
    QFETCH(int, k);
    TableModel verifier(target), proposer(draft);
    torch::Generator generator = seededGenerator(5, 6, static_cast<std::uint64_t>(k));
    constexpr int runs = 400, length = 60;
    double sum = 0, squares = 0, accepted = 0, stepsOff = 0;
    for (int i = 0; i < runs; ++i) {
        const SpeculativeResult result = run(verifier, proposer, length, k, generator);
        std::vector<double> accept;
        int last = 0;
        for (const int token : result.ids) {
            accept.push_back(
                std::min(1.0, chance(draft, last, token) / chance(target, last, token)));
            last = token;
        }
        const AcceptanceMetrics expected =
            acceptanceMetrics(expectedCounts(accept, k, /*prompt=*/0).steps, k);
        double counted = 0;
        for (const StepCount& step : result.steps)
            counted += step.accepted;
        accepted += counted;
        const double difference = counted - expected.acceptedTokens;
        sum += difference;
        squares += difference * difference;
        stepsOff += static_cast<double>(result.steps.size()) - expected.steps;
    }
    const double standardError = std::sqrt(squares) / runs;
    qInfo("k %d: %.2f accepted a text, off by %.3f (standard error %.3f)", k, accepted / runs,
          sum / runs, standardError);
    QVERIFY(std::abs(sum / runs) < 4 * standardError);
    QVERIFY(standardError > 0);
    QVERIFY(std::abs(stepsOff / runs) < 4 * standardError);
}

/// p = q = (.5, .5, ...): rejection sampling accepts all of it, a draft that sends its most
/// probable token instead would be accepted half the time.
void SpeculativeSamplingTest::equalModelsAcceptEverything()
{
    TableModel verifier(target), proposer(target);
    torch::Generator generator = seededGenerator(1, 1, 1);
    const SpeculativeResult result = run(verifier, proposer, 200, 4, generator);
    QCOMPARE(acceptanceMetrics(result.steps, 4).acceptanceRate, 1.0);
    for (const double value : result.overlaps)
        QVERIFY(std::abs(value - 1) < 1e-12);
}

void SpeculativeSamplingTest::theDraftsProbabilitiesCount()
{
    constexpr double tiny = 1e-12;
    Table even{}, sure{};
    for (std::size_t i = 0; i < V; ++i) {
        even[i] = {.5 - 1.5 * tiny, .5 - 1.5 * tiny, tiny, tiny, tiny};
        sure[i] = {1 - 4 * tiny, tiny, tiny, tiny, tiny};
    }
    TableModel verifier(even), proposer(sure);
    torch::Generator generator = seededGenerator(9, 9, 9);
    std::vector<StepCount> steps;
    double overlaps = 0, verified = 0;
    for (int i = 0; i < 40; ++i) {
        const SpeculativeResult result = run(verifier, proposer, 200, 1, generator);
        steps.insert(steps.end(), result.steps.begin(), result.steps.end());
        for (const double value : result.overlaps)
            overlaps += value;
        verified += static_cast<double>(result.overlaps.size());
    }
    const AcceptanceMetrics metrics = acceptanceMetrics(steps, 1);
    const double error = 0.5 / std::sqrt(metrics.draftTokens);
    QVERIFY(std::abs(metrics.acceptanceRate - 0.5) < 4 * error);
    QVERIFY(std::abs(overlaps / verified - 0.5) < 1e-9);
}

void SpeculativeSamplingTest::samplingRules()
{
    const torch::Tensor logits = torch::tensor({.5, .3, .15, .05}, torch::kFloat64).log();
    compareAll(tokenProbabilities(logits, {1, 0, 1}), {.5, .3, .15, .05});
    compareAll(tokenProbabilities(logits, {1, 3, 1}), {.5 / .95, .3 / .95, .15 / .95, 0});
    compareAll(tokenProbabilities(logits, {1, 0, .8 - 1e-9}), {.625, .375, 0, 0});
    compareAll(tokenProbabilities(logits, {1, 0, .8 + 1e-9}), {.5 / .95, .3 / .95, .15 / .95, 0});
    compareAll(tokenProbabilities(logits, {1, 0, 1e-9}), {1, 0, 0, 0});
    compareAll(tokenProbabilities(logits, {1, 9, 1}), {.5, .3, .15, .05});
    // topK first: of the two left, the first alone reaches .6
    compareAll(tokenProbabilities(logits, {1, 2, .6}), {1, 0, 0, 0});
    // T = 1/2 squares the probabilities
    const double sum = .25 + .09 + .0225 + .0025;
    compareAll(tokenProbabilities(logits, {.5, 0, 1}),
               {.25 / sum, .09 / sum, .0225 / sum, .0025 / sum});
    const torch::Tensor unsorted = torch::tensor({.05, .5, .15, .3}, torch::kFloat64).log();
    compareAll(tokenProbabilities(unsorted, {1, 0, .75}), {0, .625, 0, .375});
}

void SpeculativeSamplingTest::residual()
{
    const torch::Tensor p = torch::tensor({.5, .5, 0.}, torch::kFloat64);
    const torch::Tensor q = torch::tensor({.1, .6, .3}, torch::kFloat64);
    torch::Generator generator = seededGenerator(4, 4, 4);
    for (int i = 0; i < 100; ++i) // (p - q)+ = (.4, 0, 0)
        QCOMPARE(drawResidual(p, q, generator), 0);
    QVERIFY(std::abs(overlap(p, q) - .6) < 1e-12);
    for (int i = 0; i < 100; ++i)
        QVERIFY(drawResidual(p, p, generator) < 2);
}

void SpeculativeSamplingTest::seedDecides()
{
    TableModel verifier(target), proposer(draft);
    torch::Generator first = seededGenerator(1, 2, 3), second = seededGenerator(1, 2, 3),
                     other = seededGenerator(2, 2, 3);
    const std::vector<int> ids = run(verifier, proposer, 100, 3, first).ids;
    QCOMPARE(run(verifier, proposer, 100, 3, second).ids, ids);
    QVERIFY(run(verifier, proposer, 100, 3, other).ids != ids);
}

void SpeculativeSamplingTest::endOfTextIsCountedToo()
{
    TableModel verifier(target), proposer(target);
    JobContext job;
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        torch::Generator generator = seededGenerator(seed, 0, 0);
        verifier.restart();
        proposer.restart();
        const Result<SpeculativeResult> result =
            speculate(job, verifier, proposer, {0}, 40, 4, {{4}, 0}, plainSampling, &generator);
        QVERIFY(result.ok());
        double tokens = static_cast<double>(result->steps.size()) + result->plainSteps;
        for (const StepCount& step : result->steps)
            tokens += step.accepted;
        QCOMPARE(tokens, static_cast<double>(result->ids.size())); // n = a + steps + plain
        for (std::size_t i = 0; i + 1 < result->ids.size(); ++i)
            QVERIFY(result->ids[i] != 4); // nothing follows the end
    }
}

QTEST_APPLESS_MAIN(SpeculativeSamplingTest)
#include "tst_speculative_sampling.moc"
