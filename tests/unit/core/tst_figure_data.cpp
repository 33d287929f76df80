// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>
#include <set>

#include "core/report/figure_data.h"
#include "core/report/study_cells.h"
#include "core/report/tables.h"
#include "tests/support/matched_study.h"
#include "tests/support/sample_study.h"

#include <QTest>

using namespace mla;

namespace
{

bool contains(const std::string& text, const char* part)
{
    return text.find(part) != std::string::npos;
}

bool close(double a, double b)
{
    return std::abs(a - b) < 1e-9;
}

} // namespace

class TestFigureData : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void lossOfOneLayer();
    void lossOfAllLayers();
    void errorsPerLayer();
    void errorComparisonKeepsGaps();
    void sourcesPerLayer();
    void positionsAlongTheText();
    void attentionMapsShareTheirScale();
    void spectrumIsNormalisedAndMarked();
    void retained();
    void ropeMap();
    void ropeMapOfWrongSizeIsLeftOut();
    void ropeAgainstDistance();
    void acceptanceTasks();
    void protocolsAreNotPooled();
    void acceptancePositions();
    void acceptedLengthsAreShares();
    void stagesOfTheLastDrafts();
    void fidelityMeetsAcceptance();
    void speedMeetsAcceptance();
    void matchedDifferences();
    void crossover();
    void wholeReport();
    void emptyStudy();

private:
    const RunRecord m_run = test::sampleRun("transmla-4+2/functional", "functional");
};

void TestFigureData::lossOfOneLayer()
{
    const Figure figure = lossCurves(m_run, LayerIndex(1));
    QCOMPARE(figure.id, std::string("loss-transmla-4+2-functional-layer1"));
    QVERIFY(figure.y.logarithmic && !figure.x.logarithmic);
    QCOMPARE(figure.series.size(), std::size_t{2});
    QCOMPARE(figure.series[0].role, std::string("train"));
    QCOMPARE(figure.series[0].x, (std::vector<double>{1, 2, 3}));
    // Held-out loss is drawn through the steps where it was evaluated.
    QCOMPARE(figure.series[1].role, std::string("heldout"));
    QCOMPARE(figure.series[1].x, (std::vector<double>{0, 2, 3}));
    QCOMPARE(figure.series[1].y, (std::vector<double>{1, .6, .5}));
    QCOMPARE(figure.series[1].layer, std::optional(1));
    QVERIFY2(contains(figure.caption, "from 1 to 0.5 (-50.0 %), best at step 3"),
             figure.caption.c_str());
    QVERIFY(lossCurves(m_run, LayerIndex(9)).series.empty());
}

void TestFigureData::lossOfAllLayers()
{
    RunRecord run = m_run;
    run.layers[1].keptConverted = true;
    const Figure figure = lossCurves(run, std::nullopt);
    QCOMPARE(figure.series.size(), std::size_t{2});
    QCOMPARE(figure.series[1].name, std::string("layer 1"));
    QCOMPARE(figure.series[1].layer, std::optional(1));
    QVERIFY2(contains(figure.caption, "2 layers") && contains(figure.caption, "0.50") &&
                 contains(figure.caption, "1 layer keeps"),
             figure.caption.c_str());
}

void TestFigureData::errorsPerLayer()
{
    const Figure figure = layerErrors(m_run);
    QCOMPARE(figure.series.size(), std::size_t{2});
    QCOMPARE(figure.series[0].role, std::string("converted"));
    QCOMPARE(figure.series[1].role, std::string("functional"));
    QVERIFY(close(figure.series[0].y[1], .6) && close(figure.series[1].y[1], .35));
    QVERIFY2(contains(figure.caption, "0.300") && contains(figure.caption, "0.550"),
             figure.caption.c_str());
    RunRecord converted = test::sampleRun("c", "converted");
    for (LayerRecord& layer : converted.layers)
        layer.before.reset();
    QCOMPARE(layerErrors(converted).series.size(), std::size_t{1});
    QCOMPARE(layerErrors(converted).series[0].name, std::string("converted"));
}

void TestFigureData::errorComparisonKeepsGaps()
{
    RunRecord partial = test::sampleRun("p", "partial-rope");
    partial.layers[0].after.reset();
    std::swap(partial.layers[0], partial.layers[1]); // parts arrive in any order
    const RunRecord empty;
    const Figure figure = layerErrorComparison({&m_run, &partial, &empty});
    QCOMPARE(figure.series.size(), std::size_t{2});
    QCOMPARE(figure.series[1].role, std::string("partial-rope"));
    QCOMPARE(figure.series[1].x, (std::vector<double>{0, 1}));
    QVERIFY(std::isnan(figure.series[1].y[0]) && close(figure.series[1].y[1], .35));
}

void TestFigureData::sourcesPerLayer()
{
    RunRecord run = test::withDiagnostics(m_run);
    std::swap(run.layers[0], run.layers[1]);
    const Figure figure = errorSources(run);
    std::vector<std::string> names;
    for (const Series& series : figure.series) {
        names.push_back(series.name);
        QCOMPARE(series.x, (std::vector<double>{0, 1}));
    }
    QCOMPARE(names, (std::vector<std::string>{"rotary alone", "low rank alone", "both",
                                              "after refinement"}));
    QCOMPARE(figure.series[0].y, (std::vector<double>{.125, .125}));
    QCOMPARE(figure.series[1].y, (std::vector<double>{.375, .375}));
    QCOMPARE(figure.series[3].role, std::string("functional"));
    QVERIFY2(contains(figure.caption, "low rank alone 0.375"), figure.caption.c_str());
    const Table table = figureTable(figure);
    QCOMPARE(table.columns.size(), std::size_t{5});
    QCOMPARE(std::get<double>(table.rows[1][3]), .5);
    for (LayerRecord& layer : run.layers)
        layer.sources.rankOnly.reset();
    run.errorSources->noConversion = "why";
    QCOMPARE(errorSources(run).series.size(), std::size_t{3});
    QVERIFY(contains(errorSources(run).caption, "absent: why."));
    QVERIFY(errorSources(m_run).series.empty());
}

void TestFigureData::positionsAlongTheText()
{
    const RunRecord run = test::withDiagnostics(m_run);
    const Figure kl = positionKl(run), perplexity = positionPerplexity(run);
    QCOMPARE(kl.x.categories, (std::vector<std::string>{"0–31", "32–63"}));
    QCOMPARE(kl.series[0].y, (std::vector<double>{.5, .25}));
    QVERIFY2(contains(kl.caption, "64, 9"), kl.caption.c_str());
    QVERIFY(!perplexity.y.logarithmic); // bars begin at zero
    QCOMPARE(perplexity.series[0].y, (std::vector<double>{8, 4}));
    QCOMPARE(perplexity.series[1].y, (std::vector<double>{16, 5}));
    QCOMPARE(std::get<std::string>(figureTable(kl).rows[1][0]), std::string("32–63"));
    QVERIFY(positionKl(m_run).series.empty() && positionPerplexity(m_run).series.empty());
}

/// The first query stands at the top: the last row.
void TestFigureData::attentionMapsShareTheirScale()
{
    const RunRecord run = test::withDiagnostics(m_run);
    const std::vector<Figure> figures = attentionMaps(run, run.attentionMaps[0]);
    QCOMPARE(figures.size(), std::size_t{3});
    QCOMPARE(figures[0].heatmap->values, (std::vector<double>{.5, .5, 1, 0}));
    QCOMPARE(figures[1].heatmap->values, (std::vector<double>{.75, .25, 1, 0}));
    QCOMPARE(figures[2].heatmap->values, (std::vector<double>{.25, -.25, 0, 0}));
    for (const int i : {0, 1})
        QCOMPARE(figures[static_cast<std::size_t>(i)].heatmap->range->high, 1.0);
    QVERIFY(figures[2].heatmap->diverging && !figures[2].heatmap->range);
    QCOMPARE(figures[0].x.categories, (std::vector<std::string>{"0 <s>", "1  é"}));
    QCOMPARE(figures[0].y.categories, (std::vector<std::string>{"1  é", "0 <s>"}));
    // Half of (0.25 + 0.25) over two queries.
    QVERIFY2(contains(figures[2].caption, "12.5 %"), figures[2].caption.c_str());
    AttentionMapRecord broken = run.attentionMaps[0];
    broken.draft.pop_back();
    QVERIFY(attentionMaps(run, broken).empty());
}

void TestFigureData::spectrumIsNormalisedAndMarked()
{
    const Figure figure = rankSpectrum(m_run, LayerIndex(0));
    QVERIFY(figure.y.logarithmic);
    QCOMPARE(figure.verticalMark, std::optional(2.0));
    QCOMPARE(figure.series.size(), std::size_t{2});
    QCOMPARE(figure.series[0].x, (std::vector<double>{1, 2, 3, 4}));
    QCOMPARE(figure.series[0].y, (std::vector<double>{1, .5, .25, .125}));
    QVERIFY(close(figure.series[1].y[2], .1) && std::isnan(figure.series[1].y[3]));
    QVERIFY2(contains(figure.caption, "Rank 2 keeps 99.2 %") && contains(figure.caption, "0.0894"),
             figure.caption.c_str());
    QCOMPARE(rankSpectrum(m_run, std::nullopt).series.size(), std::size_t{2});
    QVERIFY(rankSpectrum(m_run, LayerIndex(5)).series.empty());
}

void TestFigureData::retained()
{
    const Figure figure = retainedEnergy(m_run);
    QCOMPARE(figure.y.unit, std::string("%"));
    QVERIFY(close(figure.series[0].y[0], 99.2));
    QVERIFY(retainedEnergy(RunRecord{}).series.empty());
}

void TestFigureData::ropeMap()
{
    const Figure figure = ropeHeatmap(m_run, LayerIndex(0));
    QVERIFY(figure.heatmap.has_value());
    QCOMPARE(figure.heatmap->rows, 2);
    QCOMPARE(figure.heatmap->columns, 3);
    const std::vector<double> lost = {0, 10, 30, 0, 20, 0};
    for (std::size_t i = 0; i < lost.size(); ++i)
        QVERIFY(close(figure.heatmap->values[i], lost[i]));
    QVERIFY2(contains(figure.caption, "60.0 %"), figure.caption.c_str());
}

void TestFigureData::ropeMapOfWrongSizeIsLeftOut()
{
    RunRecord run = m_run;
    run.layers[0].rope->heads = 1'000'000;
    run.layers[0].rope->pairs = 1'000'000;
    QVERIFY(!ropeHeatmap(run, LayerIndex(0)).heatmap);
}

void TestFigureData::ropeAgainstDistance()
{
    const Figure figure = ropeDistance(m_run, std::nullopt);
    QVERIFY(figure.x.logarithmic);
    QCOMPARE(figure.x.unit, std::string("tokens"));
    QCOMPARE(figure.series.size(), std::size_t{2});
    QVERIFY2(contains(figure.caption, "0.2, layer 0 at a distance of 4 tokens"),
             figure.caption.c_str());
    QCOMPARE(ropeDistance(m_run, LayerIndex(1)).series.size(), std::size_t{1});
}

void TestFigureData::acceptanceTasks()
{
    const std::vector<Figure> figures = acceptanceByTask(test::greedySampleStudy());
    QCOMPARE(figures.size(), std::size_t{1});
    const Figure& figure = figures[0];
    QCOMPARE(figure.id, std::string("acceptance-transmla-k3"));
    QCOMPARE(figure.x.categories, (std::vector<std::string>{"math", "code"}));
    QCOMPARE(figure.series.size(), std::size_t{3});
    QCOMPARE(figure.series[0].role, std::string("original"));
    QCOMPARE(figure.series[0].y, std::vector<double>{100});
    QCOMPARE(figure.series[2].role, std::string("functional"));
    QCOMPARE(figure.series[2].y, (std::vector<double>{50, 100}));
    QCOMPARE(figure.series[2].low.size(), std::size_t{2});
    QVERIFY2(contains(figure.caption, "functional 75.0 %"), figure.caption.c_str());
}

void TestFigureData::protocolsAreNotPooled()
{
    StudyData study = test::greedySampleStudy();
    AcceptanceRecord longer = test::sampleRow("transmla-4+2/functional", "math", {3});
    longer.id = "k5";
    longer.k = 5;
    study.put(longer);
    AcceptanceRecord sampled = test::sampleRow("transmla-4+2/functional", "math", {0});
    sampled.id = "T";
    sampled.temperature = 0.7;
    study.put(sampled);
    const std::vector<Figure> figures = acceptanceByTask(study);
    QCOMPARE(figures.size(), std::size_t{3});
    std::set<std::string> ids;
    for (const Figure& figure : figures)
        ids.insert(figure.id);
    QCOMPARE(ids.size(), std::size_t{3});
    QVERIFY(ids.contains("acceptance-transmla-k5"));
}

void TestFigureData::acceptancePositions()
{
    StudyData study = test::greedySampleStudy();
    std::erase_if(study.acceptance, [](const auto& row) { return row.task == "code"; });
    const std::vector<Figure> figures = acceptanceByPosition(study);
    QCOMPARE(figures.size(), std::size_t{2});
    QCOMPARE(figures[0].series[2].y, (std::vector<double>{75, 50, 25}));
    QCOMPARE(figures[0].series[2].x, (std::vector<double>{1, 2, 3}));
    QVERIFY(contains(figures[1].id, "conditional"));
    QVERIFY(close(figures[1].series[2].y[1], 200.0 / 3));
    // `converted` accepts [1, 0]: position 2 is never reached.
    QVERIFY(std::isnan(figures[1].series[1].y[2]));
}

void TestFigureData::stagesOfTheLastDrafts()
{
    StudyData study = test::greedySampleStudy();
    study.runs[0].stages = {{"original", {20, 0}}, {"low_rank", {40, .7}}};
    study.runs[1].stages = {{"original", {20, 0}},
                            {"rope_removed", {30, .3}},
                            {"low_rank", {40, .7}},
                            {"refined", {25, .2}}};
    const Figure figure = stagePerplexities(study);
    // The conversion has a refinement; a run without stages has nothing to show.
    QCOMPARE(figure.series.size(), std::size_t(1));
    QCOMPARE(figure.series[0].x, std::vector<double>({0, 1, 2, 3}));
    QCOMPARE(figure.series[0].y, std::vector<double>({20, 30, 40, 25}));
    QVERIFY(figure.y.logarithmic);
}

void TestFigureData::acceptedLengthsAreShares()
{
    const std::vector<Figure> figures = acceptedLengths(test::greedySampleStudy());
    QCOMPARE(figures.size(), std::size_t{1});
    QCOMPARE(figures.front().id, std::string("lengths-transmla-k3"));
    // Of the functional draft's six steps [3,0,1,2] and [3,3].
    const Series& functional = figures.front().series.at(2);
    QCOMPARE(functional.role, std::string("functional"));
    QCOMPARE(functional.x, (std::vector<double>{0, 1, 2, 3}));
    QVERIFY(close(functional.y[0], 100.0 / 6) && close(functional.y[3], 50));
    QVERIFY(contains(figures.front().caption, "functional 3.00"));
}

void TestFigureData::fidelityMeetsAcceptance()
{
    StudyData study = test::greedySampleStudy();
    const std::vector<Figure> figures = acceptanceAgainstFidelity(study);
    QCOMPARE(figures.size(), std::size_t{1});
    const Figure& figure = figures.front();
    QCOMPARE(figure.series.size(), std::size_t{3});
    QCOMPARE(figure.series[0].x, std::vector<double>{0}); // the original's error, by definition
    QCOMPARE(figure.series[2].name, std::string("functional, TransMLA"));
    QVERIFY(figure.series[2].kind == Series::Kind::Points);
    // Mean of .25 and .35; 6 of 12 tokens on one task, 6 of 6 on the other.
    QVERIFY(close(figure.series[2].x[0], .3) && close(figure.series[2].x[1], .3));
    QCOMPARE(figure.series[2].y, (std::vector<double>{50, 100}));
    std::erase_if(study.acceptance, [](const auto& row) { return row.run != "original"; });
    QVERIFY(acceptanceAgainstFidelity(study).empty());
}

void TestFigureData::speedMeetsAcceptance()
{
    const std::vector<Figure> figures = speedAgainstAcceptance(test::greedySampleStudy());
    QCOMPARE(figures.size(), std::size_t{1});
    QCOMPARE(figures.front().series.size(), std::size_t{1});
    QCOMPARE(figures.front().series[0].x, std::vector<double>{100});
    QCOMPARE(figures.front().series[0].y, std::vector<double>{10.5});
    QVERIFY(speedAgainstAcceptance(test::matchedStudy()).empty());
}

void TestFigureData::matchedDifferences()
{
    const std::vector<Figure> figures = matchedDeltas(studyCells(test::matchedStudy()));
    QCOMPARE(figures.size(), std::size_t{1});
    const Figure& figure = figures.front();
    QCOMPARE(figure.id, std::string("matched-small-large"));
    QCOMPARE(figure.x.categories, (std::vector<std::string>{"chat", "code"}));
    QVERIFY(figure.horizontalBand && figure.horizontalBand->low == -.5 &&
            figure.horizontalBand->high == .5);
    QCOMPARE(figure.series.size(), std::size_t{2});
    QCOMPARE(figure.series[0].name, std::string("MHA2MLA 4+2"));
    QVERIFY(close(figure.series[0].y[0], 10) && close(figure.series[0].y[1], -10));
    QVERIFY(close(figure.series[1].y[0], 0) && close(figure.series[1].y[1], 20));
    QVERIFY(close(figure.series[1].low[1], 20) && close(figure.series[1].high[1], 20));
    QVERIFY(contains(figure.caption, "4 matched cells: 2 gain, 1 unchanged, 1 decline"));
    StudyData twice = test::matchedStudy();
    for (AcceptanceRecord row : test::matchedStudy().acceptance) {
        row.id += "|hf";
        row.backend = "hf";
        twice.put(row);
    }
    const std::vector<Figure> both = matchedDeltas(studyCells(twice));
    QCOMPARE(both.front().series.size(), std::size_t{4});
    QCOMPARE(both.front().series[0].name, std::string("MHA2MLA 4+2, hf"));
}

void TestFigureData::crossover()
{
    const Figure figure = crossoverGrid(studyCells(test::matchedStudy()));
    QVERIFY(figure.heatmap && figure.heatmap->diverging);
    QCOMPARE(figure.x.categories, (std::vector<std::string>{"MHA2MLA", "TransMLA"}));
    QCOMPARE(figure.y.categories, (std::vector<std::string>{"qwen"}));
    QVERIFY(close(figure.heatmap->values[0], 0) && close(figure.heatmap->values[1], 10));
    QCOMPARE(figure.heatmap->texts[0], std::string("mixed\n+1  =0  −1\nmean 0.0 pp"));
    QCOMPARE(figure.heatmap->texts[1], std::string("mixed\n+1  =1  −0\nmean +10.0 pp"));
    QVERIFY(contains(figure.caption, "The paper published 37, 26 and 1 of 64"));
    QVERIFY(!crossoverGrid(StudyCells{}).heatmap);
}

void TestFigureData::wholeReport()
{
    const std::vector<Figure> figures = allFigures(test::greedySampleStudy());
    std::set<std::string> ids;
    for (const Figure& figure : figures) {
        QVERIFY2(ids.insert(figure.id).second, figure.id.c_str());
        QVERIFY(figure.id.find('/') == std::string::npos);
        QVERIFY2(!figure.title.empty() && !figure.caption.empty(), figure.id.c_str());
        QVERIFY2(!figure.x.label.empty() && !figure.y.label.empty(), figure.id.c_str());
        for (const Series& series : figure.series) {
            QVERIFY2(!series.name.empty(), figure.id.c_str());
            QCOMPARE(series.x.size(), series.y.size());
            QVERIFY(series.low.empty() || series.low.size() == series.x.size());
        }
    }
    for (const char* id :
         {"acceptance-transmla-k3", "position-transmla-k3", "position-conditional-transmla-k3",
          "error-comparison-transmla", "error-transmla-4+2-functional",
          "loss-transmla-4+2-functional", "spectrum-transmla-4+2-converted",
          "energy-transmla-4+2-converted", "rope-transmla-4+2-converted-layer0",
          "distance-transmla-4+2-converted", "sources-transmla-4+2-functional",
          "positions-kl-transmla-4+2-functional", "positions-perplexity-transmla-4+2-functional",
          "attention-transmla-4+2-functional-layer1-head3-original",
          "attention-transmla-4+2-functional-layer1-head3-draft",
          "attention-transmla-4+2-functional-layer1-head3-difference"})
        QVERIFY2(ids.contains(id), id);
    QVERIFY(contains(figures.front().id, "acceptance"));
}

void TestFigureData::emptyStudy()
{
    QVERIFY(allFigures(StudyData{}).empty());
    StudyData bare;
    bare.put(RunRecord{});
    QVERIFY(allFigures(bare).empty());
}

QTEST_APPLESS_MAIN(TestFigureData)
#include "tst_figure_data.moc"
