// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>

#include <QTabWidget>
#include <QtTest>
#include <qcustomplot.h>

#include "widgets/common/theme.h"
#include "widgets/plots/axis_setup.h"
#include "widgets/plots/figure_painter.h"
#include "widgets/plots/hover.h"
#include "widgets/plots/plot_view.h"

using namespace mla;
using namespace mla::ui;

namespace
{

Series line(const std::vector<double>& x, const std::vector<double>& y)
{
    Series series;
    series.x = x;
    series.y = y;
    return series;
}

Figure errorBars()
{
    Figure figure;
    figure.id = "layer-error";
    figure.title = "Functional error";
    figure.x.label = "Layer";
    figure.y.label = "Relative error";
    for (const char* role : {"converted", "functional"}) {
        Series series = line({0, 1, 2, 3}, {0.5, 0.6, 0.4, 0.7});
        series.kind = Series::Kind::Bars;
        series.role = series.name = role;
        figure.series.push_back(series);
    }
    return figure;
}

Figure curve(const std::vector<double>& y, bool logarithmic)
{
    Figure figure;
    figure.id = "curve";
    figure.x.label = "Step";
    figure.y.label = "Loss";
    figure.y.logarithmic = logarithmic;
    std::vector<double> x;
    for (std::size_t i = 0; i < y.size(); ++i)
        x.push_back(static_cast<double>(i));
    figure.series = {line(x, y)};
    return figure;
}

void show(PlotView& view, const Figure& figure)
{
    view.resize(600, 400);
    view.setFigure(figure);
    view.show();
    QVERIFY(QTest::qWaitForWindowExposed(&view));
    view.plot()->replot();
}

QPoint pixel(const PlotView& view, double x, double y)
{
    return {static_cast<int>(std::lround(view.plot()->xAxis->coordToPixel(x))),
            static_cast<int>(std::lround(view.plot()->yAxis->coordToPixel(y)))};
}

} // namespace

class TestPlotView : public QObject
{
    Q_OBJECT

private slots:
    void appendedPointsAreDrawn();
    void clickOnABarActivatesItsLayer();
    void clickOnACurveActivatesItsLayer();
    void clickOnACellActivatesItsLayer();
    void selectedLayerIsMarked();
    void gapsStayGaps();
    void logAxisCountsWhatItCannotShow();
    void decimationKeepsExtremesAndGaps();
    void longCurvesAreThinnedOut();
    void lonePointsAreSeen();
    void sameFigureKeepsTheZoom();
    void resetShowsEverything();
    void smoothingKeepsTheRawCurve();
    void cursorsAreLinkedWithoutEcho();
    void barsOnALogAxisEndAtTheirValue();
    void hoverNamesValuesAndUnits();
    void layersHaveWholeTicks();
    void axisTitlesCarryUnits();
    void emptyStateSaysWhatToDo();
    void onlyWhatIsSeenIsDrawn();
    void followsThePalette();
};

void TestPlotView::appendedPointsAreDrawn()
{
    PlotView view;
    show(view, curve({3, 2}, false));
    QSignalSpy drawn(view.plot(), &QCustomPlot::afterReplot);
    for (int i = 2; i < 200; ++i)
        view.appendPoint(0, i, 5.0 + i);
    QCOMPARE(view.figure().series[0].y.size(), std::size_t(200));
    QVERIFY(drawn.wait(1000));
    QTest::qWait(20);
    QVERIFY2(drawn.size() <= 2, "points are drawn together");
    QCOMPARE(view.plot()->graph(0)->data()->size(), 200);
    QVERIFY(view.plot()->yAxis->range().contains(204));
    QVERIFY(view.plot()->xAxis->range().contains(199));
    view.appendPoint(7, 0, 0); // no such series: nothing happens
    QCOMPARE(view.figure().series.size(), std::size_t(1));
}

void TestPlotView::clickOnABarActivatesItsLayer()
{
    PlotView view;
    show(view, errorBars());
    QSignalSpy activated(&view, &PlotView::layerActivated);
    QTest::mouseClick(view.plot(), Qt::LeftButton, {}, pixel(view, 2.2, 0.2));
    QCOMPARE(activated.size(), 1);
    QCOMPARE(activated[0][0].toInt(), 2);
    QTest::mouseClick(view.plot(), Qt::LeftButton, {}, QPoint(2, 2)); // outside the axes
    QCOMPARE(activated.size(), 1);
}

void TestPlotView::clickOnACurveActivatesItsLayer()
{
    Figure figure = curve({1, 1, 1, 1}, false);
    figure.series.push_back(line({0, 1, 2, 3}, {4, 4, 4, 4}));
    figure.series[0].layer = 3;
    figure.series[1].layer = 9;
    PlotView view;
    show(view, figure);
    QSignalSpy activated(&view, &PlotView::layerActivated);
    QTest::mouseClick(view.plot(), Qt::LeftButton, {}, pixel(view, 1.5, 4));
    QCOMPARE(activated.size(), 1);
    QCOMPARE(activated[0][0].toInt(), 9);
    QTest::mouseClick(view.plot(), Qt::LeftButton, {}, pixel(view, 1.5, 2.5)); // between the curves
    QCOMPARE(activated.size(), 1);
}

void TestPlotView::clickOnACellActivatesItsLayer()
{
    Figure figure;
    figure.id = "map";
    figure.x.label = "Rank";
    figure.y.label = "Layer";
    figure.heatmap = Heatmap{3, 4, std::vector<double>(12, 1.0), "Energy", "", false};
    PlotView view;
    show(view, figure);
    QSignalSpy activated(&view, &PlotView::layerActivated);
    QTest::mouseClick(view.plot(), Qt::LeftButton, {}, pixel(view, 1, 2));
    QCOMPARE(activated.size(), 1);
    QCOMPARE(activated[0][0].toInt(), 2);
}

void TestPlotView::selectedLayerIsMarked()
{
    PlotView view;
    show(view, errorBars());
    const int items = view.plot()->itemCount();
    view.setSelectedLayer(2);
    QCOMPARE(view.plot()->itemCount(), items + 1);
    QCOMPARE(view.selectedLayer(), std::optional<int>(2));
    view.setFigure(errorBars());
    QCOMPARE(view.plot()->itemCount(), items + 1);
    view.setSelectedLayer(std::nullopt);
    QCOMPARE(view.plot()->itemCount(), items);
}

void TestPlotView::gapsStayGaps()
{
    PlotView view;
    show(view, curve({1, 2, NAN, 4, INFINITY, 6}, false));
    const auto data = view.plot()->graph(0)->data();
    QCOMPARE(data->size(), 6);
    QVERIFY(std::isnan(data->at(2)->value));
    QVERIFY(std::isnan(data->at(4)->value));
    QVERIFY(view.plot()->yAxis->range().upper < 10);
}

void TestPlotView::logAxisCountsWhatItCannotShow()
{
    QCustomPlot plot;
    FigurePainter painter(&plot);
    PaintStyle style;
    style.font.setPixelSize(12);
    painter.build(curve({1, 0, 0.1, -2, NAN, 0.01}, true), style);
    QCOMPARE(plot.yAxis->scaleType(), QCPAxis::stLogarithmic);
    QCOMPARE(painter.note(),
             QString("Values not drawn: 2 not positive (logarithmic axis), 1 missing"));
    QVERIFY(plot.yAxis->range().lower > 0.001);
    const auto data = plot.graph(0)->data();
    for (const int gap : {1, 3, 4})
        QVERIFY(std::isnan(data->at(gap)->value));
    painter.build(curve({1, 0, 2}, false), style);
    QCOMPARE(painter.note(), QString());
}

void TestPlotView::decimationKeepsExtremesAndGaps()
{
    QCPGraphDataContainer data;
    for (int i = 0; i < 1000; ++i)
        data.add(QCPGraphData(i, std::sin(i * 0.1)));
    (data.begin() + 137)->value = 50;
    (data.begin() + 805)->value = -70;
    (data.begin() + 400)->value = NAN;
    for (int i = 912; i < 928; ++i)
        (data.begin() + i)->value = NAN;
    const auto points = decimateMinMax(data.constBegin(), data.constEnd(), 16);
    QVERIFY(points.size() <= 3 * 63);
    double low = 0, high = 0;
    int gaps = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
        QVERIFY(i == 0 || points[i - 1].key <= points[i].key);
        if (std::isnan(points[i].value)) {
            ++gaps;
            continue;
        }
        low = std::min(low, points[i].value);
        high = std::max(high, points[i].value);
    }
    QCOMPARE(high, 50.0);
    QCOMPARE(low, -70.0);
    QCOMPARE(gaps, 2); // one single gap, one bucket (912 = 57 x 16) of nothing else
}

void TestPlotView::longCurvesAreThinnedOut()
{
    CurveData curve;
    for (int i = 0; i < 500'000; ++i)
        curve.append(i, i == 333'333 ? 9 : std::cos(i));
    const GraphData whole = curve.forRange(0, 500'000, 20'000);
    QVERIFY(whole->size() <= 20'000);
    bool peak = false;
    for (auto it = whole->constBegin(); it != whole->constEnd(); ++it)
        peak = peak || it->value == 9;
    QVERIFY(peak);
    // A narrow view shows what was measured.
    QCOMPARE(curve.forRange(1000, 2000, 20'000), curve.raw());
    // Points that arrive later are in the coarse copy too.
    curve.append(500'000, -40);
    const GraphData later = curve.forRange(0, 500'000, 20'000);
    QCOMPARE((later->constEnd() - 1)->value, -40.0);
}

void TestPlotView::lonePointsAreSeen()
{
    CurveData curve;
    constexpr double gap = std::numeric_limits<double>::quiet_NaN();
    for (const double y : {1.0, gap, 2.0, gap, 3.0, 4.0})
        curve.append(curve.size(), y);
    QCOMPARE(curve.isolated()->size(), 2);
    QCOMPARE(curve.isolated()->at(1)->value, 2.0);
}

void TestPlotView::sameFigureKeepsTheZoom()
{
    PlotView view;
    show(view, curve({1, 2, 3, 4, 5, 6}, false));
    QVERIFY(!view.isZoomed());
    view.plot()->xAxis->setRange(1, 2);
    QVERIFY(view.isZoomed());
    view.setFigure(curve({1, 2, 3, 4, 5, 60}, false));
    QCOMPARE(view.plot()->xAxis->range().upper, 2.0);
    view.appendPoint(0, 6, 100);
    QTest::qWait(120);
    QCOMPARE(view.plot()->xAxis->range().upper, 2.0);
    Figure other = curve({1, 2, 3, 4, 5, 6}, false);
    other.id = "other";
    view.setFigure(other);
    QVERIFY(view.plot()->xAxis->range().upper > 4);
    QVERIFY(!view.isZoomed());
}

void TestPlotView::resetShowsEverything()
{
    PlotView view;
    show(view, curve({1, 2, 3, 4, 5, 6}, false));
    const QCPRange full = view.plot()->xAxis->range();
    const QPoint centre = pixel(view, 2.5, 3);
    QWheelEvent wheel(centre, view.plot()->mapToGlobal(centre), {}, {0, 240}, Qt::NoButton, {},
                      Qt::NoScrollPhase, false);
    QApplication::sendEvent(view.plot(), &wheel);
    QVERIFY(view.plot()->xAxis->range().size() < full.size());
    QVERIFY(view.isZoomed());
    QTest::mouseDClick(view.plot(), Qt::LeftButton, {}, centre);
    QVERIFY(!view.isZoomed());
    QCOMPARE(view.plot()->xAxis->range(), full);
}

void TestPlotView::smoothingKeepsTheRawCurve()
{
    PlotView view;
    show(view, curve({4, 0, 4, 0}, false));
    const int graphs = view.plot()->graphCount();
    view.setSmoothing(0.5);
    QCOMPARE(view.plot()->graphCount(), graphs + 1);
    QCOMPARE(view.plot()->graph(0)->data()->at(1)->value, 0.0);
    QVERIFY(view.plot()->graph(0)->pen().color().alpha() < 128);
    // Debiased average with weight 1/2: 4, (0 + 4/2)/(1 + 1/2) = 4/3, ...
    const auto smooth = view.plot()->graph(graphs)->data();
    QCOMPARE(smooth->at(0)->value, 4.0);
    QVERIFY(std::abs(smooth->at(1)->value - 4.0 / 3) < 1e-12);
    view.appendPoint(0, 4, 4);
    QCOMPARE(view.plot()->graph(graphs)->data()->size(), 5);
    view.setSmoothing(0);
    QCOMPARE(view.plot()->graphCount(), graphs);
    QCOMPARE(view.plot()->graph(0)->pen().color().alpha(), 255);
}

void TestPlotView::cursorsAreLinkedWithoutEcho()
{
    PlotView view;
    show(view, curve({1, 2, 3}, false));
    QSignalSpy moved(&view, &PlotView::cursorMoved);
    view.setCursor(1.5);
    QCOMPARE(moved.size(), 0);
    const QPointF at = pixel(view, 1, 2);
    QMouseEvent move(QEvent::MouseMove, at, view.plot()->mapToGlobal(at), Qt::NoButton, {}, {});
    QApplication::sendEvent(view.plot(), &move);
    QCOMPARE(moved.size(), 1);
    QVERIFY(std::abs(moved.last()[0].toDouble() - 1) < 0.05);
}

void TestPlotView::barsOnALogAxisEndAtTheirValue()
{
    Figure figure = errorBars();
    figure.y.logarithmic = true;
    figure.series[0].y = {9.5, 8.5, 150, 20};
    figure.series[1].y = {45, 30, 15, 20};
    PlotView view;
    show(view, figure);
    for (int again = 0; again < 2; ++again) {
        for (int i = 0; i < 2; ++i) {
            const auto* bars = qobject_cast<QCPBars*>(view.plot()->plottable(i));
            QVERIFY(bars);
            for (int at = 0; at < bars->dataCount(); ++at) {
                const double value =
                    figure.series[static_cast<std::size_t>(i)].y[static_cast<std::size_t>(at)];
                QVERIFY(std::abs(bars->dataPixelPosition(at).y() -
                                 view.plot()->yAxis->coordToPixel(value)) < 0.5);
            }
        }
        view.resetView(); // sets the range, and what they stand on, once more
    }
}

void TestPlotView::hoverNamesValuesAndUnits()
{
    QCustomPlot plot;
    FigurePainter painter(&plot);
    PaintStyle style;
    style.font.setPixelSize(12);
    Figure figure = errorBars();
    figure.y.unit = "%";
    painter.build(figure, style);
    QCOMPARE(hoverText(painter, 1.2, 0.3), QString("Layer 1\nconverted: 0.6 %\nfunctional: 0.6 %"));
    Figure map;
    map.x.label = "Pair";
    map.y.label = "Head";
    map.heatmap = Heatmap{2, 2, {1, 2, 3, 4}, "Energy", "%", false};
    painter.build(map, style);
    QCOMPARE(hoverText(painter, 1, 1), QString("Head 1\nPair 1\nEnergy: 4 %"));
    QCOMPARE(hoverText(painter, 5, 1), QString());
}

void TestPlotView::layersHaveWholeTicks()
{
    PlotView view;
    show(view, errorBars());
    for (const QCPRange range : {QCPRange(-0.6, 3.6), QCPRange(0.8, 2.2), QCPRange(0, 29)}) {
        view.plot()->xAxis->setRange(range);
        view.plot()->replot();
        const QVector<double> ticks = view.plot()->xAxis->tickVector();
        QVERIFY(!ticks.isEmpty());
        for (const double tick : ticks)
            QCOMPARE(tick, std::round(tick));
    }
}

void TestPlotView::axisTitlesCarryUnits()
{
    Axis axis;
    axis.label = "Acceptance rate";
    QCOMPARE(axisTitle(axis), QString("Acceptance rate"));
    axis.unit = "%";
    QCOMPARE(axisTitle(axis), QString("Acceptance rate (%)"));
}

void TestPlotView::emptyStateSaysWhatToDo()
{
    PlotView view;
    view.clear("Open a study to see its figures.");
    view.resize(300, 200);
    view.show();
    QVERIFY(QTest::qWaitForWindowExposed(&view));
    QVERIFY(view.isEmpty());
    const auto labels = view.findChildren<QLabel*>();
    QVERIFY(std::any_of(labels.begin(), labels.end(), [](const QLabel* label) {
        return label->isVisible() && label->text() == "Open a study to see its figures.";
    }));
    view.appendPoint(0, 1, 1);
    view.setCursor(1);
    view.resetView();
    view.setFigure(errorBars());
    QVERIFY(!view.isEmpty());
    QVERIFY(view.plot()->isVisible());
}

void TestPlotView::onlyWhatIsSeenIsDrawn()
{
    QTabWidget tabs;
    auto* view = new PlotView;
    tabs.addTab(view, "plot");
    tabs.addTab(new QWidget, "other");
    tabs.resize(500, 400);
    tabs.show();
    QVERIFY(QTest::qWaitForWindowExposed(&tabs));
    QSignalSpy drawn(view->plot(), &QCustomPlot::afterReplot);
    view->setFigure(errorBars());
    QTRY_VERIFY(!drawn.isEmpty());
    tabs.setCurrentIndex(1);
    QTest::qWait(100);
    drawn.clear();
    view->setSelectedLayer(1);
    view->setFigure(curve({1, 4, 2, 8}, false));
    QTest::qWait(200);
    QCOMPARE(drawn.size(), 0);
    tabs.setCurrentIndex(0);
    QTRY_VERIFY(!drawn.isEmpty());
    QTest::qWait(100);
    const QImage shown = view->grab().toImage();
    view->plot()->replot();
    QCOMPARE(view->grab().toImage(), shown); // there was nothing left to draw
}

void TestPlotView::followsThePalette()
{
    PlotView view;
    view.setPalette(lightPalette());
    show(view, errorBars());
    view.appendPoint(0, 4, 1);
    const QColor light = view.plot()->toPixmap(60, 60).toImage().pixelColor(1, 1);
    view.setPalette(darkPalette());
    const QColor dark = view.plot()->toPixmap(60, 60).toImage().pixelColor(1, 1);
    QCOMPARE(light, lightPlotTheme().background);
    QCOMPARE(dark, darkPlotTheme().background);
}

QTEST_MAIN(TestPlotView)
#include "tst_plot_view.moc"
