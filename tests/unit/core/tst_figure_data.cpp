// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>
#include <set>

#include "core/report/figure_data.h"
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
    void spectrumIsNormalisedAndMarked();
    void retained();
    void ropeMap();
    void ropeMapOfWrongSizeIsLeftOut();
    void ropeAgainstDistance();
    void acceptanceTasks();
    void protocolsAreNotPooled();
    void acceptancePositions();
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
    const std::vector<Figure> figures = acceptanceByTask(test::sampleStudy());
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
    StudyData study = test::sampleStudy();
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
    StudyData study = test::sampleStudy();
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

void TestFigureData::wholeReport()
{
    const std::vector<Figure> figures = allFigures(test::sampleStudy());
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
    for (const char* id : {"acceptance-transmla-k3", "position-transmla-k3",
                           "position-conditional-transmla-k3", "error-comparison-transmla",
                           "error-transmla-4+2-functional", "loss-transmla-4+2-functional",
                           "spectrum-transmla-4+2-converted", "energy-transmla-4+2-converted",
                           "rope-transmla-4+2-converted-layer0", "distance-transmla-4+2-converted"})
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
