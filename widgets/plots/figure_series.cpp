// SPDX-License-Identifier: GPL-3.0-or-later
// FigurePainter's series: curves, bars, intervals, and how each looks.
#include <algorithm>
#include <array>
#include <cmath>

#include "widgets/plots/figure_painter.h"
#include "widgets/plots/pens.h"

namespace mla::ui
{
namespace
{

constexpr double kGroupWidth = 0.8; // of the distance between two groups of bars

QCPScatterStyle::ScatterShape pointShape(int index)
{
    constexpr std::array shapes{QCPScatterStyle::ssDisc, QCPScatterStyle::ssSquare,
                                QCPScatterStyle::ssTriangle, QCPScatterStyle::ssDiamond,
                                QCPScatterStyle::ssTriangleInverted};
    return shapes[static_cast<std::size_t>(index) % shapes.size()];
}

/// Text stands out from the ground and from most bars; before a bar of its tone, what lies halfway
/// between the bar and the ground does.
QColor errorColor(const QColor& bar, const PlotTheme& theme)
{
    constexpr double leastContrast = 2;
    if (contrastRatio(bar, theme.text) >= leastContrast)
        return theme.text;
    const QColor& ground = theme.background;
    return {(bar.red() + ground.red()) / 2, (bar.green() + ground.green()) / 2,
            (bar.blue() + ground.blue()) / 2};
}

/// Points beside lines mark some of their places.
bool marksLines(const mla::Figure& figure)
{
    return std::ranges::any_of(
        figure.series, [](const Series& series) { return series.kind == Series::Kind::Line; });
}

} // namespace

void FigurePainter::addSeries(int index)
{
    const Series& series = m_figure.series[static_cast<std::size_t>(index)];
    if (series.kind != Series::Kind::Bars) {
        addLine(index);
        return;
    }
    QCPBarsGroup* group = nullptr;
    for (int i = 0; i < index && !group; ++i)
        if (const QCPBars* earlier = barsOf(i))
            group = earlier->barsGroup();
    if (!group) {
        group = new QCPBarsGroup(m_plot);
        group->setSpacingType(QCPBarsGroup::stPlotCoords);
        group->setSpacing(0);
    }
    addBars(index, group);
}

void FigurePainter::addLine(int index)
{
    const Series& series = m_figure.series[static_cast<std::size_t>(index)];
    Drawn& drawn = m_drawn[static_cast<std::size_t>(index)];
    drawn.data = std::make_unique<CurveData>(m_figure.x.logarithmic, m_figure.y.logarithmic);
    for (std::size_t i = 0; i < std::min(series.x.size(), series.y.size()); ++i)
        drawn.data->append(series.x[i], series.y[i]);
    if (!series.low.empty() && series.kind == Series::Kind::Line)
        addBand(series, drawn.color);
    drawn.graph = m_plot->addGraph();
    drawn.graph->setData(drawn.data->raw());
    drawn.graph->setName(QString::fromStdString(series.name));
    drawn.graph->setAdaptiveSampling(true);
    if (series.kind == Series::Kind::Points) {
        drawn.graph->setLineStyle(QCPGraph::lsNone);
        addErrors(series, drawn.graph, drawn.color);
    }
    drawn.isolated = m_plot->addGraph();
    drawn.isolated->setLineStyle(QCPGraph::lsNone);
    drawn.isolated->setData(drawn.data->isolated());
    styleSeries(index);
}

void FigurePainter::addBars(int index, QCPBarsGroup* group)
{
    const Series& series = m_figure.series[static_cast<std::size_t>(index)];
    Drawn& drawn = m_drawn[static_cast<std::size_t>(index)];
    const auto count = std::count_if(m_figure.series.begin(), m_figure.series.end(),
                                     [](const auto& s) { return s.kind == Series::Kind::Bars; });
    drawn.data = std::make_unique<CurveData>(m_figure.x.logarithmic, m_figure.y.logarithmic);
    drawn.bars = new QCPBars(m_plot->xAxis, m_plot->yAxis);
    drawn.bars->setName(QString::fromStdString(series.name));
    drawn.bars->setBarsGroup(group);
    drawn.bars->setWidthType(QCPBars::wtPlotCoords);
    drawn.bars->setWidth(kGroupWidth / static_cast<double>(count));
    for (std::size_t i = 0; i < std::min(series.x.size(), series.y.size()); ++i) {
        drawn.data->append(series.x[i], series.y[i]);
        const bool shown =
            std::isfinite(series.y[i]) && (!m_figure.y.logarithmic || series.y[i] > 0);
        if (shown)
            drawn.bars->addData(series.x[i], series.y[i]);
    }
    addErrors(series, drawn.bars, errorColor(drawn.color, m_style.theme));
    styleSeries(index);
}

void FigurePainter::addBand(const Series& series, const QColor& color)
{
    CurveData low(m_figure.x.logarithmic, m_figure.y.logarithmic);
    CurveData high(m_figure.x.logarithmic, m_figure.y.logarithmic);
    const std::size_t count = std::min({series.x.size(), series.low.size(), series.high.size()});
    for (std::size_t i = 0; i < count; ++i) {
        low.append(series.x[i], series.low[i]);
        high.append(series.x[i], series.high[i]);
    }
    QCPGraph* below = m_plot->addGraph();
    QCPGraph* above = m_plot->addGraph();
    below->setData(low.raw());
    above->setData(high.raw());
    below->setPen(Qt::NoPen);
    above->setPen(Qt::NoPen);
    above->setBrush(withAlpha(color, 50));
    above->setChannelFillGraph(below);
}

void FigurePainter::addErrors(const Series& series, QCPAbstractPlottable* plottable,
                              const QColor& color)
{
    if (series.low.empty() || series.high.empty())
        return;
    auto* errors = new QCPErrorBars(m_plot->xAxis, m_plot->yAxis);
    errors->setDataPlottable(plottable);
    errors->setPen(penOf(color, pt(0.7)));
    errors->setWhiskerWidth(pt(3));
    errors->setSymbolGap(0);
    // One entry per plotted point: bars leave undrawable values out, curves keep them as gaps.
    const bool bars = qobject_cast<QCPBars*>(plottable) != nullptr;
    for (std::size_t i = 0; i < std::min({series.y.size(), series.low.size(), series.high.size()});
         ++i) {
        const double y = series.y[i];
        if (bars && (!std::isfinite(y) || (m_figure.y.logarithmic && y <= 0)))
            continue;
        errors->addData(std::max(0.0, y - series.low[i]), std::max(0.0, series.high[i] - y));
    }
}

void FigurePainter::styleSeries(int index)
{
    Drawn& drawn = m_drawn[static_cast<std::size_t>(index)];
    const Series& series = m_figure.series[static_cast<std::size_t>(index)];
    const bool fades = m_selectedLayer && series.layer && *series.layer != *m_selectedLayer;
    const bool chosen = m_selectedLayer && series.layer && *series.layer == *m_selectedLayer;
    const QColor color = fades ? withAlpha(drawn.color, 70) : drawn.color;
    if (drawn.bars) {
        drawn.bars->setPen(Qt::NoPen);
        drawn.bars->setBrush(drawn.dash == Qt::SolidLine ? QBrush(color)
                                                         : QBrush(color, Qt::Dense3Pattern));
        return;
    }
    const double width = pt(m_style.linePt) * (chosen ? 2 : 1);
    const bool smooth = drawn.smooth != nullptr;
    drawn.graph->setPen(
        penOf(smooth ? withAlpha(color, fades ? 25 : 70) : color, width, drawn.dash));
    if (smooth)
        drawn.smooth->setPen(penOf(color, width * 1.3, drawn.dash));
    const double disc = pt(2.2 + m_style.linePt * 1.6);
    const bool points = series.kind == Series::Kind::Points;
    const bool marks = points && marksLines(m_figure);
    const QCPScatterStyle marker(marks    ? QCPScatterStyle::ssDiamond
                                 : points ? pointShape(drawn.shape)
                                          : QCPScatterStyle::ssDisc,
                                 color, color, marks ? 2 * disc : disc);
    const bool marked = points || (!smooth && !m_layerScale && drawn.data->size() <= kMostMarkers);
    drawn.graph->setScatterStyle(marked ? marker : QCPScatterStyle::ssNone);
    drawn.isolated->setScatterStyle(marker);
    drawn.isolated->setVisible(!marked);
    if (chosen)
        drawn.graph->setLayer(m_plot->layer(QStringLiteral("main")));
}

} // namespace mla::ui
