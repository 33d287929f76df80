// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>

#include "core/report/study_cells.h"
#include "core/report/tables.h"
#include "tests/support/matched_study.h"

#include <QTest>

using namespace mla;

namespace
{

bool near(const std::optional<double>& a, double b)
{
    return a && std::abs(*a - b) < 1e-9;
}

const StudyCell* find(const StudyCells& cells, const std::string& converter,
                      const std::string& task)
{
    for (const StudyCell& cell : cells.cells)
        if (cell.cell.key.converter == converter && cell.cell.key.task == task)
            return &cell;
    return nullptr;
}

std::string column(const Table& table, std::size_t row, const char* name)
{
    for (std::size_t i = 0; i < table.columns.size(); ++i)
        if (table.columns[i].name == name)
            return cellText(table.rows.at(row).at(i), table.columns[i]);
    return "no such column";
}

/// A second refinement of the TransMLA draft, with another seed.
void addSeed(StudyData& study, std::uint64_t seed, std::vector<std::int32_t> baseline,
             std::vector<std::int32_t> functional)
{
    for (const char* variant : {"converted", "partial-rope", "functional"})
        study.put(test::matchedRun("transmla-4+2", variant, seed));
    const std::string tail = "-s" + std::to_string(seed);
    if (!baseline.empty())
        study.put(test::matchedRow("small/transmla-4+2/partial-rope" + tail, "code", baseline));
    if (!functional.empty())
        study.put(test::matchedRow("small/transmla-4+2/functional" + tail, "code", functional));
}

} // namespace

class StudyCellsTest : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void everyConverterMeetsTheOriginal();
    void rowsMeasuredDifferentlyAreApart();
    void conversionsAreApart();
    void budgetsAreApart();
    void severalSeedsAreOneCell();
    void seedsAreMatchedOneByOne();
    void anUnknownOriginalIsNotGuessed();
    void promptsWithoutAStepCount();
    void otherNumbersOfPromptsAreNoCell();
    void expectedStepsCountByTheirWeight();
    void repeatedRunsHaveASpread();
    void families_data();
    void families();
    void matched();
    void crossover();
    void paper();
    void optionalColumns();
    void nothingMeasured();
};

void StudyCellsTest::everyConverterMeetsTheOriginal()
{
    const StudyCells cells = studyCells(test::matchedStudy());
    QCOMPARE(cells.cells.size(), std::size_t(4));
    QVERIFY(cells.unmatched.empty());
    const StudyCell* code = find(cells, "transmla", "code");
    QVERIFY(code);
    QCOMPARE(code->cell.key.pair, std::string("small>large"));
    QCOMPARE(code->cell.key.family, std::string("qwen"));
    QCOMPARE(code->draft, std::string("TransMLA 4+2"));
    QCOMPARE(code->functionalRun, std::string("small/transmla-4+2/functional"));
    QCOMPARE(code->protocol, std::string("k = 10, replay, greedy, 64 new tokens"));
    QCOMPARE(code->prompts, 2);
    QCOMPARE(code->seeds, 1);
    QVERIFY(!code->sd);
    QVERIFY(near(code->cell.originalRate, .9) && near(code->cell.convertedRate, .3));
    QVERIFY(near(code->cell.deltaPp, 20));
    // Both prompts gain 2 tokens of 10: whatever prompts are drawn, the difference is the same.
    QVERIFY(near(code->cell.deltaLow, 20) && near(code->cell.deltaHigh, 20));
    QVERIFY(near(code->overConverted, 30) && near(code->overConvertedLow, 30));
    QVERIFY(near(code->cell.recovery, .5));                   // (60 - 30) / (90 - 30)
    QVERIFY(!find(cells, "transmla", "chat")->cell.recovery); // conversion lost nothing
    QVERIFY(near(find(cells, "mha2mla", "code")->cell.originalRate, .9));
    QVERIFY(near(find(cells, "mha2mla", "code")->cell.deltaPp, -10));
}

void StudyCellsTest::rowsMeasuredDifferentlyAreApart()
{
    const auto cellsWith = [](auto change) {
        StudyData study = test::matchedStudy();
        for (AcceptanceRecord& row : study.acceptance)
            if (row.run == "small/transmla-4+2/functional")
                change(row);
        return studyCells(study).cells.size();
    };
    QCOMPARE(cellsWith([](auto& row) { row.k = 5; }), std::size_t(2));
    QCOMPARE(cellsWith([](auto& row) { row.backend = "hf"; }), std::size_t(2));
    QCOMPARE(cellsWith([](auto& row) { row.method = "speculative"; }), std::size_t(2));
    QCOMPARE(cellsWith([](auto& row) { row.temperature = .5; }), std::size_t(2));
    QCOMPARE(cellsWith([](auto& row) { row.topK = 20; }), std::size_t(2));
    QCOMPARE(cellsWith([](auto& row) { row.topP = .9; }), std::size_t(2));
    QCOMPARE(cellsWith([](auto& row) { row.chatTemplate = true; }), std::size_t(2));
    QCOMPARE(cellsWith([](auto& row) { row.target = "huge"; }), std::size_t(2));
    for (const char* settings :
         {R"({"max_new_tokens": 32})", R"({"max_new_tokens": 64, "min_new_tokens": 16})",
          R"({"max_new_tokens": 64, "max_prompt_tokens": 256})"})
        QCOMPARE(cellsWith([settings](auto& row) { row.settingsJson = settings; }), std::size_t(2));
    QCOMPARE(cellsWith([](auto& row) { row.seed = 7; }), std::size_t(4)); // greedy has no chance
}

/// A second draft of the same converter and size, from other settings.
void StudyCellsTest::conversionsAreApart()
{
    StudyData study = test::matchedStudy();
    for (const char* variant : {"converted", "partial-rope", "functional"}) {
        study.put(test::matchedRun("transmla-4+2-f4", variant));
        study.put(test::matchedRow(std::string("small/transmla-4+2-f4/") + variant, "code",
                                   {variant[0] == 'f' ? 10 : 4}));
    }
    const StudyCells both = studyCells(study);
    QCOMPARE(both.cells.size(), std::size_t(5));
    int found = 0;
    for (const StudyCell& cell : both.cells)
        found += near(cell.cell.deltaPp, 60);
    QCOMPARE(found, 1);
}

void StudyCellsTest::budgetsAreApart()
{
    StudyData study = test::matchedStudy();
    for (RunRecord& run : study.runs)
        if (run.id == "small/transmla-4+2/functional")
            run.settingsJson = R"({"refine": {"steps": 200, "objective": "functional"}})";
    QCOMPARE(studyCells(study).cells.size(), std::size_t(2));
    for (RunRecord& run : study.runs) // a rate of its own is no other budget
        if (run.id == "small/transmla-4+2/functional")
            run.settingsJson =
                R"({"refine": {"steps": 45, "objective": "functional", "learning_rate": 0.01}})";
    QCOMPARE(studyCells(study).cells.size(), std::size_t(4));
    for (RunRecord& run : study.runs) // refined twice: more training than the baseline had
        if (run.id == "small/transmla-4+2/functional")
            run.parent = "small/transmla-4+2/partial-rope";
    QCOMPARE(studyCells(study).cells.size(), std::size_t(2));
}

void StudyCellsTest::severalSeedsAreOneCell()
{
    StudyData study = test::matchedStudy();
    addSeed(study, 1, {3, 5}, {4, 6}); // +10 pp; seed 0: +20 pp
    const StudyCells cells = studyCells(study);
    QCOMPARE(cells.cells.size(), std::size_t(4));
    const StudyCell* code = find(cells, "transmla", "code");
    QCOMPARE(code->seeds, 2);
    QCOMPARE(code->prompts, 2);
    QVERIFY(near(code->cell.deltaPp, 15));    // the mean of both
    QVERIFY(near(code->sd, std::sqrt(50.0))); // of 20 and 10
    QVERIFY(near(code->cell.deltaLow, 15));   // prompts are drawn with all their seeds
}

void StudyCellsTest::seedsAreMatchedOneByOne()
{
    StudyData study = test::matchedStudy();
    addSeed(study, 1, {}, {10, 10}); // its baseline was not measured
    const StudyCells cells = studyCells(study);
    QCOMPARE(find(cells, "transmla", "code")->seeds, 1);
    QVERIFY(near(find(cells, "transmla", "code")->cell.deltaPp, 20));
    for (RunRecord& run : study.runs)
        if (run.id == "small/transmla-4+2/functional")
            run.calibration = "other data";
    const StudyCells none = studyCells(study);
    QVERIFY(!find(none, "transmla", "code"));
    QCOMPARE(none.unmatched.size(), std::size_t(2));
}

void StudyCellsTest::anUnknownOriginalIsNotGuessed()
{
    StudyData study = test::matchedStudy();
    RunRecord other = test::matchedRun("transmla-4+2", "converted");
    other.id = "tiny/transmla-4+2/converted";
    other.checkpoint = "tiny";
    study.put(other);
    QVERIFY(!find(studyCells(study), "transmla", "code")->cell.originalRate);
    RunRecord own;
    own.id = own.variant = "original";
    own.checkpoint = "small";
    study.put(own);
    QVERIFY(near(find(studyCells(study), "transmla", "code")->cell.originalRate, .9));
}

/// The last prompt's text is one token in the functional draft's sampled run: no step to count.
void StudyCellsTest::promptsWithoutAStepCount()
{
    StudyData study = test::matchedStudy();
    for (AcceptanceRecord& row : study.acceptance)
        if (row.run == "small/transmla-4+2/functional" && row.task == "code") {
            row.accepted = {5};
            row.drafted = {10};
            row.prompt = {0};
        }
    const StudyCells cells = studyCells(study);
    QVERIFY(find(cells, "transmla", "code"));
    QCOMPARE(find(cells, "transmla", "code")->prompts, 2);
    QVERIFY(near(find(cells, "transmla", "code")->cell.deltaPp, 10));
}

void StudyCellsTest::otherNumbersOfPromptsAreNoCell()
{
    StudyData study = test::matchedStudy();
    for (AcceptanceRecord& row : study.acceptance)
        if (row.run == "small/transmla-4+2/functional" && row.task == "code") {
            row.settingsJson = R"({"max_new_tokens": 64, "limit": 1, "min_new_tokens": 0})";
            row.accepted = {5};
            row.drafted = {10};
            row.prompt = {0};
        }
    const StudyCells cells = studyCells(study);
    QVERIFY(!find(cells, "transmla", "code"));
    QCOMPARE(cells.unmatched.size(), std::size_t(1));
    QCOMPARE(cells.unmatched.front().task, std::string("code"));
}

void StudyCellsTest::expectedStepsCountByTheirWeight()
{
    StudyData study = test::matchedStudy();
    for (AcceptanceRecord& row : study.acceptance)
        if (row.run == "small/transmla-4+2/functional" && row.task == "code")
            row.weight = {3, 1}; // 5 of 10 three times, 7 of 10 once: 22 of 40
    QVERIFY(near(find(studyCells(study), "transmla", "code")->cell.functionalRate, .55));
}

void StudyCellsTest::repeatedRunsHaveASpread()
{
    StudyData study = test::matchedStudy();
    for (AcceptanceRecord& row : study.acceptance) {
        if (row.run == "small/transmla-4+2/functional")
            row.speeds = {12, 13};
        if (row.run == "small/transmla-4+2/partial-rope")
            row.speeds = {9, 11};
    }
    const StudyCells cells = studyCells(study);
    const StudyCell* cell = find(cells, "transmla", "code");
    QVERIFY(near(cell->cell.throughputPercent, 25));
    QCOMPARE(cell->cell.throughputMaterial, std::optional(true));
}

void StudyCellsTest::families_data()
{
    QTest::addColumn<QString>("config");
    QTest::addColumn<QString>("family");
    QTest::newRow("llama") << R"({"model_type": "llama"})"
                           << "llama";
    QTest::newRow("qwen2") << R"({"model_type": "qwen2"})"
                           << "qwen";
    QTest::newRow("qwen3") << R"({"model_type": "qwen3"})"
                           << "qwen";
    QTest::newRow("mixture") << R"({"model_type": "qwen2_moe"})"
                             << "qwen";
    QTest::newRow("no type") << "{}"
                             << "small";
    QTest::newRow("no config") << ""
                               << "small";
    QTest::newRow("no text") << R"({"model_type": 3})"
                             << "small";
}

void StudyCellsTest::families()
{
    QFETCH(QString, config);
    QFETCH(QString, family);
    StudyData study;
    study.put(CheckpointRecord{"small", "", "", config.toStdString()});
    QCOMPARE(QString::fromStdString(familyOf(study, "small")), family);
    QCOMPARE(familyOf(study, "unknown"), std::string("unknown"));
}

void StudyCellsTest::matched()
{
    const Table table = matchedTable(studyCells(test::matchedStudy()));
    QCOMPARE(table.rows.size(), std::size_t(4)); // mha2mla before transmla, chat before code
    QCOMPARE(column(table, 3, "Converter"), std::string("TransMLA"));
    QCOMPARE(column(table, 3, "Task"), std::string("code"));
    QCOMPARE(column(table, 3, "Original"), std::string("90.0"));
    QCOMPARE(column(table, 3, "Converted"), std::string("30.0"));
    QCOMPARE(column(table, 3, "Partial-rope"), std::string("40.0"));
    QCOMPARE(column(table, 3, "Functional"), std::string("60.0"));
    QCOMPARE(column(table, 3, "Functional − partial-rope"), std::string("+20.0"));
    QCOMPARE(column(table, 3, "Verdict"), std::string("gain"));
    QCOMPARE(column(table, 3, "Functional − converted"), std::string("+30.0"));
    QCOMPARE(column(table, 3, "Recovery"), std::string("50.0"));
    QCOMPARE(column(table, 3, "Throughput"), std::string("–"));
    QCOMPARE(column(table, 3, "Measured with"), std::string("no such column"));
    QCOMPARE(column(table, 2, "Functional − partial-rope"), std::string("0.0"));
    QCOMPARE(column(table, 2, "Verdict"), std::string("unchanged"));
    QCOMPARE(column(table, 2, "Recovery"), std::string("–"));
    QCOMPARE(column(table, 1, "Functional − partial-rope"), std::string("−10.0"));
    QCOMPARE(column(table, 1, "Verdict"), std::string("decline"));
}

void StudyCellsTest::crossover()
{
    const Table table = crossoverTable(studyCells(test::matchedStudy()));
    QCOMPARE(table.rows.size(), std::size_t(3));
    QCOMPARE(column(table, 0, "Family"), std::string("Qwen"));
    QCOMPARE(column(table, 0, "Converter"), std::string("MHA2MLA"));
    QCOMPARE(column(table, 0, "Gain"), std::string("1"));
    QCOMPARE(column(table, 0, "Decline"), std::string("1"));
    QCOMPARE(column(table, 0, "Verdict"), std::string("mixed"));
    QCOMPARE(column(table, 0, "Published in the paper"), std::string("gains"));
    QCOMPARE(column(table, 1, "Unchanged"), std::string("1"));
    QCOMPARE(column(table, 2, "Family"), std::string("all"));
    QCOMPARE(column(table, 2, "Cells"), std::string("4"));
    QCOMPARE(column(table, 2, "Gain"), std::string("2"));
}

void StudyCellsTest::paper()
{
    const Table table = paperTable();
    QCOMPARE(table.rows.size(), std::size_t(5));
    QVERIFY(table.title.find("published in the paper") != std::string::npos);
    QCOMPARE(column(table, 4, "Cells"), std::string("64"));
    QCOMPARE(column(table, 4, "Gain"), std::string("37"));
    QCOMPARE(column(table, 4, "Unchanged"), std::string("26"));
    QCOMPARE(column(table, 4, "Decline"), std::string("1"));
    QCOMPARE(column(table, 4, "Gain with throughput"), std::string("12"));
    QCOMPARE(column(table, 0, "Verdict"), std::string("gains"));
    QCOMPARE(column(table, 0, "Gain"), std::string("–"));
}

void StudyCellsTest::optionalColumns()
{
    StudyData study = test::matchedStudy();
    addSeed(study, 1, {3, 5}, {4, 6});
    for (AcceptanceRecord& row : study.acceptance) {
        if (row.run.find("mha2mla") != std::string::npos)
            row.k = 5;
        row.tokensPerSecond = row.run.find("functional") != std::string::npos ? 12 : 10;
    }
    const Table table = matchedTable(studyCells(study));
    QCOMPARE(column(table, 3, "Seeds"), std::string("2"));
    QCOMPARE(column(table, 3, "Deviation over seeds"), std::string("7.07"));
    QCOMPARE(column(table, 3, "Throughput"), std::string("+20.0"));
    QCOMPARE(column(table, 3, "Beyond its spread"), std::string("yes"));
    QCOMPARE(column(table, 2, "Beyond its spread"), std::string("–")); // one run each
    QCOMPARE(column(table, 0, "Measured with"),
             std::string("k = 5, replay, greedy, 64 new tokens"));
}

void StudyCellsTest::nothingMeasured()
{
    QVERIFY(studyCells({}).cells.empty());
    StudyData study = test::matchedStudy();
    std::erase_if(study.acceptance, [](const auto& row) { return row.run != "original"; });
    QVERIFY(studyCells(study).cells.empty());
    QVERIFY(matchedTable(studyCells(study)).rows.empty());
}

QTEST_APPLESS_MAIN(StudyCellsTest)
#include "tst_study_cells.moc"
