// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/figure_painter.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "widgets/plots/axis_setup.h"

namespace mla::ui
{
namespace
{

constexpr int kMostMarkers = 40;   // a curve of more points goes without markers
constexpr int kLayerScaleFrom = 7; // from so many layers on, a colour scale replaces the legend
constexpr int kPointsPerUnit = 32; // points handed to the plot per drawing unit of width
constexpr int kSmallestBudget = 20'000; // never thin out below this
constexpr double kGroupWidth = 0.8;     // of the distance between two groups of bars

QPen penOf(const QColor& color, double width, Qt::PenStyle dash = Qt::SolidLine)
{
    QPen pen(color, width, dash, Qt::FlatCap, Qt::RoundJoin);
    return pen;
}

QColor withAlpha(QColor color, int alpha)
{
    color.setAlpha(alpha);
    return color;
}

} // namespace

FigurePainter::FigurePainter(QCustomPlot* plot) : m_plot(plot)
{
    m_plot->setAutoAddPlottableToLegend(false);
    m_plot->setNoAntialiasingOnDrag(true);
}

QFont FigurePainter::scaledFont(double factor, bool bold) const
{
    QFont font = m_style.font;
    font.setPixelSize(std::max(1, static_cast<int>(std::lround(font.pixelSize() * factor))));
    font.setWeight(bold ? QFont::DemiBold : QFont::Normal);
    return font;
}

void FigurePainter::reset()
{
    m_plot->clearItems();
    m_plot->clearPlottables();
    m_drawn.clear();
    m_map = nullptr;
    m_scale = nullptr;
    m_title = m_note = nullptr;
    m_legend = nullptr;
    m_selection = nullptr;
    m_plot->plotLayout()->clear();
    auto* rect = new QCPAxisRect(m_plot, true);
    rect->setLayer(QStringLiteral("background"));
    m_plot->plotLayout()->addElement(0, 0, rect);
    m_plot->xAxis = rect->axis(QCPAxis::atBottom);
    m_plot->yAxis = rect->axis(QCPAxis::atLeft);
    m_plot->xAxis2 = rect->axis(QCPAxis::atTop);
    m_plot->yAxis2 = rect->axis(QCPAxis::atRight);
    for (QCPAxis* axis : rect->axes()) {
        axis->setLayer(QStringLiteral("axes"));
        axis->grid()->setLayer(QStringLiteral("grid"));
    }
}

void FigurePainter::build(const Figure& figure, const PaintStyle& style)
{
    m_figure = figure;
    m_style = style;
    reset();
    styleFrame();
    chooseColors();
    if (m_figure.heatmap)
        addHeatmap();
    for (int i = 0; i < static_cast<int>(m_figure.series.size()); ++i)
        addSeries(i);
    if (m_layerScale)
        addLayerScale();
    addMark();
    addNote();
    addLegend();
    addTitle();
    setFullRange();
    setSmoothing(m_smoothing);
    setSelectedLayer(m_selectedLayer);
}

void FigurePainter::styleFrame()
{
    const PlotTheme& theme = m_style.theme;
    m_plot->setBackground(QBrush(theme.background));
    m_plot->plotLayout()->setRowSpacing(static_cast<int>(std::lround(pt(3))));
    m_plot->plotLayout()->setColumnSpacing(static_cast<int>(std::lround(pt(4))));
    QCPAxisRect* rect = m_plot->axisRect();
    const int margin = static_cast<int>(std::lround(pt(4)));
    m_plot->plotLayout()->setMargins(QMargins(margin, margin, margin, margin));
    rect->setMinimumMargins(QMargins(0, margin, margin, 0));
    rect->setupFullAxesBox(false);
    for (QCPAxis* axis : rect->axes()) {
        const bool framed = axis == m_plot->xAxis || axis == m_plot->yAxis;
        axis->setVisible(framed);
        axis->setBasePen(penOf(theme.axis, pt(0.6)));
        axis->setTickPen(penOf(theme.axis, pt(0.6)));
        axis->setSubTickPen(penOf(theme.axis, pt(0.4)));
        axis->setTickLabelColor(theme.text);
        axis->setLabelColor(theme.text);
        axis->setTickLabelFont(scaledFont(1, false));
        axis->setLabelFont(scaledFont(1, false));
        axis->setTickLengthOut(0);
        axis->setTickLength(0, static_cast<int>(std::lround(pt(3))));
        axis->setSubTickLength(0, static_cast<int>(std::lround(pt(1.6))));
        axis->setTickLabelPadding(static_cast<int>(std::lround(pt(2.5))));
        axis->setLabelPadding(static_cast<int>(std::lround(pt(2.5))));
        axis->grid()->setPen(penOf(theme.grid, pt(0.5)));
        axis->grid()->setSubGridPen(penOf(theme.subGrid, pt(0.4)));
        axis->grid()->setZeroLinePen(penOf(theme.axis, pt(0.5)));
        axis->grid()->setSubGridVisible(false);
        axis->setPadding(0);
    }
    const bool bars = std::any_of(m_figure.series.begin(), m_figure.series.end(),
                                  [](const auto& s) { return s.kind == Series::Kind::Bars; });
    setUpAxis(m_plot->xAxis, m_figure.x, hasIntegerX(m_figure));
    setUpAxis(m_plot->yAxis, m_figure.y, m_figure.heatmap.has_value());
    m_plot->xAxis->grid()->setVisible(!bars && !m_figure.heatmap);
    m_plot->yAxis->grid()->setVisible(!m_figure.heatmap);
    m_plot->yAxis->grid()->setSubGridVisible(m_figure.y.logarithmic);
}

void FigurePainter::chooseColors()
{
    int layers = 0;
    for (const Series& series : m_figure.series)
        layers += series.layer && series.role.empty() && series.kind == Series::Kind::Line ? 1 : 0;
    m_layerScale = layers >= kLayerScaleFrom;
    int unnamed = 0, highest = 1;
    for (const Series& series : m_figure.series)
        highest = std::max(highest, series.layer.value_or(0));
    std::map<std::string, int> uses;
    constexpr std::array kDashes{Qt::SolidLine, Qt::DashLine, Qt::DotLine, Qt::DashDotLine};
    for (const Series& series : m_figure.series) {
        Drawn drawn;
        drawn.color = roleColor(QString::fromStdString(series.role), m_style.theme.dark);
        if (drawn.color.isValid()) {
            const int use = uses[series.role]++;
            drawn.dash = kDashes[static_cast<std::size_t>(use) % kDashes.size()];
        } else if (m_layerScale && series.layer) {
            drawn.color =
                layerColor(static_cast<double>(*series.layer) / highest, m_style.theme.dark);
        } else {
            drawn.color = seriesColor(unnamed++, m_style.theme.dark);
        }
        m_drawn.push_back(std::move(drawn));
    }
}

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
    addErrors(series, drawn.bars, m_style.theme.text);
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
    const QCPScatterStyle marker(QCPScatterStyle::ssDisc, color, color, disc);
    const bool points = series.kind == Series::Kind::Points;
    const bool marked = points || (!smooth && !m_layerScale && drawn.data->size() <= kMostMarkers);
    drawn.graph->setScatterStyle(marked ? marker : QCPScatterStyle::ssNone);
    drawn.isolated->setScatterStyle(marker);
    drawn.isolated->setVisible(!marked);
    if (chosen)
        drawn.graph->setLayer(m_plot->layer(QStringLiteral("main")));
}

void FigurePainter::append(int index, double x, double y)
{
    if (index < 0 || index >= static_cast<int>(m_drawn.size()))
        return;
    Series& series = m_figure.series[static_cast<std::size_t>(index)];
    Drawn& drawn = m_drawn[static_cast<std::size_t>(index)];
    if (!drawn.graph)
        return;
    series.x.push_back(x);
    series.y.push_back(y);
    const bool follows = drawn.graph->data() == drawn.data->raw();
    drawn.data->append(x, y);
    if (!follows)
        drawn.graph->setData(drawn.data->raw());
    if (drawn.smoother)
        drawn.smoothData->add(QCPGraphData(x, drawn.smoother->next(y)));
    if (drawn.data->size() == kMostMarkers + 1)
        styleSeries(index);
}

void FigurePainter::setSmoothing(double weight)
{
    m_smoothing = std::clamp(weight, 0.0, 0.999);
    for (int i = 0; i < static_cast<int>(m_drawn.size()); ++i) {
        Drawn& drawn = m_drawn[static_cast<std::size_t>(i)];
        if (!drawn.graph || m_figure.series[static_cast<std::size_t>(i)].kind != Series::Kind::Line)
            continue;
        if (m_smoothing > 0)
            fillSmooth(drawn);
        else if (drawn.smooth) {
            m_plot->removeGraph(drawn.smooth);
            drawn.smooth = nullptr;
            drawn.smoother.reset();
        }
        styleSeries(i);
    }
}

void FigurePainter::fillSmooth(Drawn& drawn)
{
    drawn.smoother = std::make_unique<Smoother>(m_smoothing);
    drawn.smoothData.reset(new QCPGraphDataContainer);
    for (auto it = drawn.data->raw()->constBegin(); it != drawn.data->raw()->constEnd(); ++it)
        drawn.smoothData->add(QCPGraphData(it->key, drawn.smoother->next(it->value)));
    if (!drawn.smooth)
        drawn.smooth = m_plot->addGraph();
    drawn.smooth->setData(drawn.smoothData);
}

void FigurePainter::setSelectedLayer(std::optional<int> layer)
{
    m_selectedLayer = layer;
    for (int i = 0; i < static_cast<int>(m_drawn.size()); ++i)
        styleSeries(i);
    placeSelection();
}

void FigurePainter::placeSelection()
{
    if (m_selection) {
        m_plot->removeItem(m_selection);
        m_selection = nullptr;
    }
    const bool alongX = isLayerAxis(m_figure.x);
    const bool alongY = m_figure.heatmap && isLayerAxis(m_figure.y);
    if (!m_selectedLayer || (!alongX && !alongY))
        return;
    m_selection = new QCPItemRect(m_plot);
    const bool map = m_figure.heatmap.has_value();
    m_selection->setLayer(map ? QStringLiteral("overlay") : QStringLiteral("background"));
    m_selection->setBrush(
        map ? QBrush(Qt::NoBrush)
            : QBrush(withAlpha(m_style.theme.highlight, m_style.theme.dark ? 60 : 90)));
    m_selection->setPen(map ? penOf(m_style.theme.highlight, pt(1.4)) : QPen(Qt::NoPen));
    const double low = *m_selectedLayer - 0.5, high = *m_selectedLayer + 0.5;
    for (QCPItemPosition* corner : {m_selection->topLeft, m_selection->bottomRight}) {
        corner->setTypeX(alongX ? QCPItemPosition::ptPlotCoords : QCPItemPosition::ptAxisRectRatio);
        corner->setTypeY(alongX ? QCPItemPosition::ptAxisRectRatio : QCPItemPosition::ptPlotCoords);
    }
    m_selection->topLeft->setCoords(alongX ? low : 0, alongX ? 0 : high);
    m_selection->bottomRight->setCoords(alongX ? high : 1, alongX ? 1 : low);
}

void FigurePainter::setFullRange()
{
    const DataExtent extent = dataExtent(m_figure);
    m_plot->xAxis->setRange(fullRangeX(m_figure, extent));
    m_plot->yAxis->setRange(fullRangeY(m_figure, extent));
    for (const Drawn& drawn : m_drawn)
        if (drawn.bars && m_figure.y.logarithmic)
            drawn.bars->setBaseValue(m_plot->yAxis->range().lower);
}

void FigurePainter::updateDetail()
{
    const QCPRange range = m_plot->xAxis->range();
    const int budget =
        std::max(kSmallestBudget, kPointsPerUnit * std::max(1, m_plot->axisRect()->width()));
    for (Drawn& drawn : m_drawn) {
        if (!drawn.graph)
            continue;
        const GraphData level = drawn.data->forRange(range.lower, range.upper, budget);
        if (drawn.graph->data() != level)
            drawn.graph->setData(level);
    }
    const QString text = note();
    if (text != m_note->text()) {
        m_note->setText(text);
        m_note->setVisible(!text.isEmpty());
    }
}

QColor FigurePainter::colorOf(int series) const
{
    return series >= 0 && series < static_cast<int>(m_drawn.size())
               ? m_drawn[static_cast<std::size_t>(series)].color
               : QColor();
}

QCPGraph* FigurePainter::graphOf(int series) const
{
    return series >= 0 && series < static_cast<int>(m_drawn.size())
               ? m_drawn[static_cast<std::size_t>(series)].graph
               : nullptr;
}

QCPBars* FigurePainter::barsOf(int series) const
{
    return series >= 0 && series < static_cast<int>(m_drawn.size())
               ? m_drawn[static_cast<std::size_t>(series)].bars
               : nullptr;
}

} // namespace mla::ui
