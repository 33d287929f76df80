// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>
#include <limits>

#include "core/report/report_text.h"
#include "core/report/tables.h"
#include "tests/support/sample_study.h"

#include <QTest>

using namespace mla;

namespace
{

std::string column(const Table& table, std::size_t row, const char* name)
{
    for (std::size_t i = 0; i < table.columns.size(); ++i)
        if (table.columns[i].name == name)
            return cellText(table.rows.at(row).at(i), table.columns[i]);
    return "no such column";
}

bool contains(const std::string& text, const std::string& part)
{
    return text.find(part) != std::string::npos;
}

const Table awkward = {"a_b/c",
                       "50 % of {x} & y",
                       {{"Name", "", 0}, {"Rate", "%", 1}, {"Count", "", 0}},
                       {{std::string("a,\"b\"\nc"), 12.345, std::int64_t{7}},
                        {std::string("p|q_~^\\<>"), Cell(), std::int64_t{-1}},
                        {std::string("2×3"), std::nan(""), Cell()}}};

} // namespace

class TestTables : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void numbers();
    void csv();
    void latex();
    void markdown();
    void variants();
    void variantsByProtocol();
    void acceptance();
    void layers();
    void figureTwins();
    void emptyStudy();
};

void TestTables::numbers()
{
    QCOMPARE(fixedText(2.0, 3), std::string("2.000"));
    QCOMPARE(fixedText(-0.0001, 2), std::string("0.00"));
    QCOMPARE(fixedText(1e300, 3), std::string("1e+300"));
    QCOMPARE(fixedText(std::nan(""), 3), std::string("–"));
    QCOMPARE(shortText(0.04321), std::string("0.0432"));
    QCOMPARE(exactText(0.1), std::string("0.1"));
    QCOMPARE(exactText(-std::nan("")), std::string("NaN"));
    QCOMPARE(std::stod(exactText(1.0 / 3)), 1.0 / 3);
}

void TestTables::csv()
{
    QCOMPARE(toCsv(awkward), std::string("Name,Rate (%),Count\r\n"
                                         "\"a,\"\"b\"\"\nc\",12.345,7\r\n"
                                         "p|q_~^\\<>,,-1\r\n"
                                         "2×3,NaN,\r\n"));
}

void TestTables::latex()
{
    const std::string text = toLatex(awkward);
    QVERIFY(contains(
        text, "\\begin{tabular}{lrr}\n\\toprule\nName & Rate (\\%) & Count \\\\\n\\midrule\n"));
    QVERIFY(contains(text, "\\caption{50 \\% of \\{x\\} \\& y}"));
    QVERIFY(contains(text, "\\label{tab:a_b-c}"));
    QVERIFY(contains(text, "p\\textbar{}q\\_\\textasciitilde{}\\textasciicircum{}\\textbackslash{}"
                           "\\textless{}\\textgreater{} & -- & -1 \\\\\n"));
    QVERIFY(
        contains(text, "2$\\times$3 & -- & -- \\\\\n\\bottomrule\n\\end{tabular}\n\\end{table}\n"));
    QVERIFY(contains(text, "& 12.3 & 7 \\\\\n"));
}

void TestTables::markdown()
{
    const std::string text = toMarkdown(awkward);
    QVERIFY(contains(text, "| Name | Rate (%) | Count |\n| --- | ---: | ---: |\n"));
    QVERIFY(contains(text, "| a,\"b\" c | 12.3 | 7 |\n"));
    QVERIFY(contains(text, "| p\\|q_~^\\\\&lt;> | – | -1 |\n"));
}

void TestTables::variants()
{
    const Table table = variantTable(test::greedySampleStudy());
    QCOMPARE(table.rows.size(), std::size_t{4}); // original, converted, functional, the bare run
    QCOMPARE(column(table, 0, "Variant"), std::string("original"));
    QCOMPARE(column(table, 0, "Acceptance rate"), std::string("100.0"));
    QCOMPARE(column(table, 0, "Mean relative error"), std::string("0.000"));
    QCOMPARE(column(table, 1, "Converter"), std::string("TransMLA"));
    QCOMPARE(column(table, 1, "Perplexity"), std::string("40.0"));
    // Two steps accept [1, 0] of 3 each; the second task has no steps.
    QCOMPARE(column(table, 1, "Acceptance rate"), std::string("16.7"));
    QCOMPARE(column(table, 2, "Variant"), std::string("functional"));
    QCOMPARE(column(table, 2, "Draft"), std::string("TransMLA 4+2"));
    QCOMPARE(column(table, 2, "Mean relative error"), std::string("0.300"));
    QCOMPARE(column(table, 2, "Perplexity"), std::string("25.0"));
    // [3,0,1,2] and [3,3] of 3: 12 of 18 pooled, (50 + 100) / 2 in the mean, 1 + 12/6.
    QCOMPARE(column(table, 2, "Acceptance rate"), std::string("66.7"));
    QCOMPARE(column(table, 2, "Mean of task rates"), std::string("75.0"));
    QCOMPARE(column(table, 2, "Mean acceptance length"), std::string("3.00"));
    QCOMPARE(column(table, 2, "Cache elements"), std::string("6"));
    QCOMPARE(column(table, 3, "Acceptance rate"), std::string("–"));
    StudyData oneSource = test::greedySampleStudy();
    std::erase_if(oneSource.runs, [](const RunRecord& run) { return run.checkpoint.empty(); });
    QCOMPARE(column(variantTable(oneSource), 0, "Cache elements"), std::string("16"));
    QCOMPARE(column(variantTable(oneSource), 0, "Perplexity"), std::string("20.0"));
}

void TestTables::variantsByProtocol()
{
    StudyData study = test::greedySampleStudy();
    AcceptanceRecord longer = test::sampleRow("transmla-4+2/functional", "math", {3});
    longer.id = "k5";
    longer.k = 5;
    longer.drafted = {5};
    study.put(longer);
    const Table table = variantTable(study);
    QCOMPARE(table.rows.size(), std::size_t{5});
    QCOMPARE(column(table, 2, "k"), std::string("3"));
    QCOMPARE(column(table, 2, "Acceptance rate"), std::string("66.7"));
    QCOMPARE(column(table, 3, "k"), std::string("5"));
    QCOMPARE(column(table, 3, "Acceptance rate"), std::string("60.0"));
}

void TestTables::acceptance()
{
    const Table table = acceptanceTable(test::greedySampleStudy());
    QCOMPARE(table.rows.size(), std::size_t{5});
    QCOMPARE(column(table, 0, "Variant"), std::string("original"));
    QCOMPARE(column(table, 2, "Steps"), std::string("4"));
    QCOMPARE(column(table, 2, "Acceptance rate"), std::string("50.0"));
    QCOMPARE(column(table, 2, "Mean acceptance length"), std::string("2.500"));
    QCOMPARE(column(table, 2, "Speed"), std::string("–"));
    QCOMPARE(column(table, 3, "Speed"), std::string("10.5"));
    QCOMPARE(column(table, 3, "Equal to greedy"), std::string("no"));
}

void TestTables::layers()
{
    RunRecord run = test::sampleRun("a/b", "functional");
    run.layers.push_back(LayerRecord{});
    const Table table = layerTable(run);
    QCOMPARE(table.id, std::string("layers-a-b"));
    QCOMPARE(table.rows.size(), std::size_t{3});
    QCOMPARE(column(table, 1, "Relative error after"), std::string("0.3500"));
    QCOMPARE(column(table, 1, "Retained energy"), std::string("99.2"));
    QCOMPARE(column(table, 2, "Loss before"), std::string("–"));
}

void TestTables::figureTwins()
{
    const RunRecord run = test::sampleRun("r", "functional");
    const Table wide = figureTable(layerErrors(run));
    QCOMPARE(wide.columns.size(), std::size_t{3});
    QCOMPARE(column(wide, 1, "after refinement"), std::string("0.350000"));
    QCOMPARE(column(wide, 1, "Layer"), std::string("1"));
    const Table points = figureTable(lossCurves(run, LayerIndex(0)));
    QCOMPARE(points.rows.size(), std::size_t{6});
    QCOMPARE(column(points, 3, "Series"), std::string("held-out"));
    const Table tasks = figureTable(acceptanceByTask(test::greedySampleStudy()).front());
    QCOMPARE(column(tasks, 0, "Task"), std::string("math"));
    QCOMPARE(column(tasks, 0, "To"), std::string("100.000000"));
    const Table map = figureTable(ropeHeatmap(run, LayerIndex(0)));
    QCOMPARE(map.rows.size(), std::size_t{6});
    QCOMPARE(column(map, 4, "Key head"), std::string("1"));
    QCOMPARE(column(map, 4, "Key energy leaving the rotary path"), std::string("20.000000"));
    QVERIFY(figureTable(Figure{}).rows.empty());
}

void TestTables::emptyStudy()
{
    QVERIFY(variantTable(StudyData{}).rows.empty());
    QVERIFY(acceptanceTable(StudyData{}).rows.empty());
    QVERIFY(contains(toLatex(variantTable(StudyData{})), "\\midrule\n\\bottomrule"));
}

QTEST_APPLESS_MAIN(TestTables)
#include "tst_tables.moc"
