// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluate/bootstrap.h"
#include "core/evaluate/matched_cells.h"

#include <QTest>

using namespace mla;

namespace
{

const CellKey key = {"a>b", "llama", "transmla", "native", "qa", "k4 replay"};

/// One step of `drafted` tokens a prompt, of which accepted[i] stand.
MeasuredVariant measured(const std::string& variant, const std::vector<int>& accepted,
                         int drafted = 1000)
{
    MeasuredVariant out{key, variant, static_cast<int>(accepted.size()), {}, {}};
    for (std::size_t i = 0; i < accepted.size(); ++i)
        out.steps.push_back({static_cast<int>(i), drafted, accepted[i]});
    return out;
}

MatchedCell only(const std::vector<MeasuredVariant>& variants)
{
    const std::vector<MatchedCell> cells = matchedCells(variants);
    return cells.size() == 1 ? cells.front() : MatchedCell{};
}

bool near(double a, double b)
{
    return std::abs(a - b) < 1e-9;
}

} // namespace

class MatchedCellsTest : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void materialBeyondHalfAPoint_data();
    void materialBeyondHalfAPoint();
    void recovery();
    void theIntervalIsPairedByPrompt();
    void throughput();
    void onlyEqualCellsAreCompared();
    void promptsWithoutAStepCount();
    void summary();
    void groupVerdicts_data();
    void groupVerdicts();
    void thePapersCountsAreWhole();
};

void MatchedCellsTest::materialBeyondHalfAPoint_data()
{
    QTest::addColumn<int>("functional");
    QTest::addColumn<QString>("verdict");
    QTest::newRow("+0.5") << 505 << "unchanged";
    QTest::newRow("+0.6") << 506 << "gain";
    QTest::newRow("0") << 500 << "unchanged";
    QTest::newRow("-0.5") << 495 << "unchanged";
    QTest::newRow("-0.6") << 494 << "decline";
}

void MatchedCellsTest::materialBeyondHalfAPoint()
{
    QFETCH(int, functional);
    QFETCH(QString, verdict);
    const MatchedCell cell =
        only({measured("partial-rope", {500}), measured("functional", {functional})});
    QVERIFY(near(cell.deltaPp, (functional - 500) / 10.0));
    QCOMPARE(QString::fromStdString(std::string(verdictName(cell.verdict))), verdict);
}

void MatchedCellsTest::recovery()
{
    const auto cell = [](int original, int converted, int functional) {
        return only({measured("original", {original}), measured("converted", {converted}),
                     measured("partial-rope", {converted}), measured("functional", {functional})});
    };
    QVERIFY(near(*cell(1000, 200, 600).recovery, 0.5));
    QVERIFY(near(*cell(800, 400, 300).recovery, -0.25));
    QVERIFY(!cell(400, 400, 500).recovery); // nothing was lost
    QVERIFY(!cell(300, 400, 500).recovery);
    QVERIFY(!only({measured("partial-rope", {1}), measured("functional", {2})}).recovery);
}

/// Every prompt gains the same, whatever its own level: drawn together, the difference has no
/// spread; drawn apart it would have one.
void MatchedCellsTest::theIntervalIsPairedByPrompt()
{
    const MatchedCell cell = only(
        {measured("partial-rope", {0, 5, 9, 2}, 10), measured("functional", {1, 6, 10, 3}, 10)});
    QVERIFY(near(cell.deltaPp, 10) && near(cell.deltaLow, 10) && near(cell.deltaHigh, 10));
    const MatchedCell mixed =
        only({measured("partial-rope", {5, 5, 5}, 10), measured("functional", {5, 5, 8}, 10)});
    QVERIFY(near(mixed.deltaPp, 10));
    QVERIFY(near(mixed.deltaLow, 0) && near(mixed.deltaHigh, 30)); // all ties, all the third
}

void MatchedCellsTest::throughput()
{
    const auto cell = [](std::vector<double> base, std::vector<double> own) {
        MeasuredVariant baseline = measured("partial-rope", {500}),
                        functional = measured("functional", {600});
        baseline.tokensPerSecond = std::move(base);
        functional.tokensPerSecond = std::move(own);
        return only({baseline, functional});
    };
    QVERIFY(!cell({}, {}).throughputPercent);
    QVERIFY(near(*cell({10}, {12}).throughputPercent, 20));
    QVERIFY(!cell({10}, {12}).throughputMaterial); // one run says nothing of its spread
    QVERIFY(*cell({9, 10, 11}, {12, 13, 11.5}).throughputMaterial);
    QVERIFY(!*cell({9, 10, 11}, {12, 13, 10.5}).throughputMaterial);
    QVERIFY(*cell({9, 10}, {7, 8}).throughputMaterial);
}

void MatchedCellsTest::onlyEqualCellsAreCompared()
{
    MeasuredVariant other = measured("functional", {600});
    other.cell.protocol = "k5 replay";
    QVERIFY(matchedCells({measured("partial-rope", {500}), other}).empty());
    std::vector<CellKey> unmatched;
    QVERIFY(matchedCells({measured("partial-rope", {500}), measured("functional", {600, 700})},
                         "partial-rope", 0, &unmatched)
                .empty());
    QCOMPARE(unmatched.size(), std::size_t(1));
    QVERIFY(unmatched.front() == key);
    QCOMPARE(
        matchedCells({measured("converted", {1}), measured("functional", {2})}, "converted").size(),
        std::size_t(1));
}

/// A continuation of one token has no counted step; the prompt still takes part.
void MatchedCellsTest::promptsWithoutAStepCount()
{
    MeasuredVariant base = measured("partial-rope", {500}), own = measured("functional", {600});
    base.prompts = own.prompts = 2;
    QVERIFY(near(only({base, own}).deltaPp, 10));
}

void MatchedCellsTest::summary()
{
    const auto cell = [](const std::string& family, Verdict verdict, std::optional<bool> material,
                         double percent) {
        MatchedCell out;
        out.key.family = family;
        out.key.converter = "transmla";
        out.verdict = verdict;
        out.throughputMaterial = material;
        out.throughputPercent = percent;
        return out;
    };
    const MatchedSummary result =
        summarize({cell("llama", Verdict::Gain, true, 12), cell("llama", Verdict::Gain, true, -12),
                   cell("llama", Verdict::Gain, {}, 12), cell("llama", Verdict::Unchanged, true, 9),
                   cell("qwen", Verdict::Decline, false, 0)});
    QCOMPARE(result.all, (VerdictCounts{3, 1, 1, 1}));
    QCOMPARE(result.crossover.at({"llama", "transmla"}), (VerdictCounts{3, 1, 0, 1}));
    QCOMPARE(result.crossover.at({"qwen", "transmla"}), (VerdictCounts{0, 0, 1, 0}));
}

void MatchedCellsTest::groupVerdicts_data()
{
    QTest::addColumn<int>("gain");
    QTest::addColumn<int>("unchanged");
    QTest::addColumn<int>("decline");
    QTest::addColumn<QString>("verdict");
    QTest::newRow("none") << 0 << 0 << 0 << "no cells";
    QTest::newRow("all gain") << 16 << 0 << 0 << "gains";
    QTest::newRow("two thirds") << 2 << 1 << 0 << "gains";
    QTest::newRow("half") << 8 << 8 << 0 << "mixed";
    QTest::newRow("unchanged") << 2 << 14 << 0 << "mostly unchanged";
    QTest::newRow("declines") << 1 << 0 << 2 << "declines";
}

void MatchedCellsTest::groupVerdicts()
{
    QFETCH(int, gain);
    QFETCH(int, unchanged);
    QFETCH(int, decline);
    QFETCH(QString, verdict);
    QCOMPARE(QString::fromStdString(std::string(groupVerdict({gain, unchanged, decline, 0}))),
             verdict);
}

/// 4 pairs x 2 converters x 2 backends x 4 tasks.
void MatchedCellsTest::thePapersCountsAreWhole()
{
    QCOMPARE(paperCounts.cells(), 4 * 2 * 2 * 4);
    QVERIFY(paperCounts.gainWithThroughput <= paperCounts.gain);
}

QTEST_APPLESS_MAIN(MatchedCellsTest)
#include "tst_matched_cells.moc"
