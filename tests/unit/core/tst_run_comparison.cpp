// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>

#include "core/report/run_comparison.h"
#include "tests/support/study_fixture.h"

using namespace mla;

namespace
{

constexpr double gap = std::numeric_limits<double>::quiet_NaN();

LayerRecord layer(int index, std::vector<double> heldout, double error)
{
    LayerRecord record;
    record.layer = LayerIndex(index);
    record.loss = LossCurve{{0, 1, 2}, {gap, 1, 1}, std::move(heldout), {0, 1, 1}};
    record.after = FidelityRecord{error, 0.9, 0.1};
    return record;
}

RunRecord run(const std::string& id, const std::string& variant)
{
    RunRecord made;
    made.id = id;
    made.variant = variant;
    made.converter = "transmla";
    made.kvLoraRank = 4;
    made.qkRopeHeadDim = 2;
    made.cacheElements = 6;
    return made;
}

/// Text of the cell, or "none".
std::string shown(const Table& table, std::size_t row, std::size_t column)
{
    const Cell& cell = table.rows.at(row).at(column);
    return std::holds_alternative<std::monostate>(cell) ? "none"
                                                        : cellText(cell, table.columns[column]);
}

} // namespace

class RunComparisonTest : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void losses();
    void energies();
    void measures();
    void layers();
    void settings();
};

/// Layer 0 falls to 1/2 and 1/4, layer 1 to 1 and 1/2 of its start: 3/4 and 3/8 in the mean.
void RunComparisonTest::losses()
{
    RunRecord a = run("a", "functional");
    a.layers = {layer(0, {8, 4, 2}, 0), layer(1, {0.2, 0.2, 0.1}, 0)};
    RunRecord empty = run("b", "converted");
    RunRecord sparse = run("c", "partial-rope");
    sparse.layers = {layer(0, {10, gap, 5}, 0)};
    const Figure mean = lossComparison({&a, &empty, &sparse}, {});
    QCOMPARE(mean.series.size(), std::size_t(2));
    QCOMPARE(mean.series[0].x, std::vector<double>({0, 1, 2}));
    QCOMPARE(mean.series[0].y, std::vector<double>({1, 0.75, 0.375}));
    QCOMPARE(mean.series[1].x, std::vector<double>({0, 2}));
    QCOMPARE(mean.series[1].y, std::vector<double>({1, 0.5}));
    const Figure second = lossComparison({&a}, LayerIndex(1));
    QCOMPARE(second.series[0].y, std::vector<double>({1, 1, 0.5}));
    QVERIFY(lossComparison({}, {}).series.empty());
}

void RunComparisonTest::energies()
{
    RunRecord a = run("a", "converted");
    for (const auto& [index, energy] : {std::pair(1, 0.9), std::pair(0, 0.7)}) {
        LayerRecord record;
        record.layer = LayerIndex(index);
        record.spectrum = SpectrumRecord{{1}, {1}, 1, energy, 1, 0};
        a.layers.push_back(record);
    }
    const RunRecord none = run("b", "functional");
    const Figure figure = retainedEnergyComparison({&a, &none});
    QCOMPARE(figure.series.size(), std::size_t(1));
    QCOMPARE(figure.series[0].x, std::vector<double>({0, 1}));
    QCOMPARE(figure.series[0].y, std::vector<double>({70, 90}));
    QVERIFY(figure.caption.find("80.00 %") != std::string::npos);
}

/// a accepts 2 of 8 drafted tokens, b 6 of 8: 25 and 75 %, 50 points apart.
void RunComparisonTest::measures()
{
    StudyData study;
    RunRecord a = run("a", "converted"), b = run("b", "functional"), c = run("c", "partial-rope");
    a.layers = {layer(0, {1, 1, 1}, 0.4), layer(1, {1, 1, 1}, 0.6)};
    b.layers = {layer(0, {1, 1, 1}, 0.2)};
    b.cacheElements = 8;
    a.stages["low_rank"] = {40, 0};
    study.acceptance = {test::measurement("a", "story", {2, 0}),
                        test::measurement("b", "story", {4, 2}),
                        test::measurement("b", "code", {4, 4}, 8)};
    const Table table = measureComparison(study, {&a, &b, &c});
    QCOMPARE(table.columns.size(), std::size_t(6));
    QVERIFY(table.columns[3].withSign && !table.columns[2].withSign);
    QCOMPARE(shown(table, 0, 0), std::string("Mean relative error"));
    QCOMPARE(shown(table, 0, 1), std::string("0.500"));
    QCOMPARE(shown(table, 0, 3), std::string("−0.300"));
    QCOMPARE(shown(table, 0, 4), std::string("none"));
    QCOMPARE(shown(table, 1, 1), std::string("40.000"));
    QCOMPARE(shown(table, 1, 3), std::string("none"));
    QCOMPARE(shown(table, 2, 2), std::string("8")); // a count
    QCOMPARE(shown(table, 2, 3), std::string("+2"));
    QCOMPARE(table.rows.size(), std::size_t(5));
    QVERIFY(shown(table, 3, 0).find("story") != std::string::npos);
    QCOMPARE(shown(table, 3, 1), std::string("25.000"));
    QCOMPARE(shown(table, 3, 3), std::string("+50.000"));
    QCOMPARE(shown(table, 3, 4), std::string("none"));
    // k = 8 is another way of measuring: never beside k = 4.
    QVERIFY(shown(table, 4, 0).find("code") != std::string::npos);
    QCOMPARE(shown(table, 4, 1), std::string("none"));
}

void RunComparisonTest::layers()
{
    RunRecord a = run("a", "converted"), b = run("b", "functional");
    a.layers = {layer(0, {1, 1, 1}, 0.4), layer(1, {1, 1, 1}, 0.6)};
    b.layers = {layer(1, {1, 1, 1}, 0.25)};
    const Table table = layerComparison({&b, &a});
    QCOMPARE(table.rows.size(), std::size_t(2));
    QCOMPARE(shown(table, 0, 1), std::string("none"));
    QCOMPARE(shown(table, 0, 2), std::string("0.4000"));
    QCOMPARE(shown(table, 0, 3), std::string("none"));
    QCOMPARE(shown(table, 1, 3), std::string("+0.3500"));
}

void RunComparisonTest::settings()
{
    StudyData study;
    RunRecord a = run("a", "converted"), b = run("b", "functional");
    a.settingsJson = R"({"refine": {"steps": 60, "lr": 0.002}, "same": "x"})";
    b.settingsJson = R"({"refine": {"steps": 80, "lr": 0.002}, "same": "x", "only": true})";
    const auto valuesOf = [](const Table& table, const std::string& name) {
        for (const auto& row : table.rows)
            if (std::get<std::string>(row[0]) == name) {
                const auto* second = std::get_if<std::string>(&row[2]);
                const auto* first = std::get_if<std::string>(&row[1]);
                return (first ? *first : "none") + "|" + (second ? *second : "none");
            }
        return std::string("absent");
    };
    const Table differing = settingsComparison(study, {&a, &b}, false);
    QCOMPARE(valuesOf(differing, "refine.steps"), std::string("60|80"));
    QCOMPARE(valuesOf(differing, "only"), std::string("none|true"));
    QCOMPARE(valuesOf(differing, "variant"), std::string("converted|functional"));
    QCOMPARE(valuesOf(differing, "same"), std::string("absent"));
    QCOMPARE(valuesOf(differing, "refine.lr"), std::string("absent"));
    QCOMPARE(valuesOf(settingsComparison(study, {&a, &b}, true), "same"), std::string("x|x"));
}

QTEST_APPLESS_MAIN(RunComparisonTest)
#include "tst_run_comparison.moc"
