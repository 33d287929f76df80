// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/figure_painter.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "widgets/plots/axis_setup.h"
#include "widgets/plots/pens.h"

namespace mla::ui
{
namespace
{

constexpr int kLayerScaleFrom = 7;     // from so many layers on, a colour scale replaces the legend
constexpr int kPointsPerUnit = 8;      // points handed to the plot per drawing unit of width
constexpr int kManyPoints = 3'000;     // more are drawn fast where the style asks for it
constexpr int kSmallestBudget = 8'000; // never thin out below this

/// Bars are kept as heights above what they stand on; their tops stay where they are.
void standOn(QCPBars& bars, double base)
{
    for (QCPBarsData& bar : *bars.data())
        bar.value += bars.baseValue() - base;
    bars.setBaseValue(base);
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
    // In a fixed order: rect->axes() comes in hash order, and files must not depend on that.
    for (QCPAxis* axis : {m_plot->xAxis, m_plot->yAxis, m_plot->xAxis2, m_plot->yAxis2}) {
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
    addHorizontalBand();
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
        axis->grid()->setZeroLinePen(
            penOf(axis == m_plot->yAxis ? theme.axis : theme.grid, pt(0.5)));
        axis->grid()->setSubGridVisible(false);
        axis->setPadding(0);
    }
    const bool bars = std::any_of(m_figure.series.begin(), m_figure.series.end(),
                                  [](const auto& s) { return s.kind == Series::Kind::Bars; });
    m_integerX = hasIntegerX(m_figure);
    setUpAxis(m_plot->xAxis, m_figure.x, m_integerX);
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
            drawn.shape = use;
        } else if (m_layerScale && series.layer) {
            drawn.color =
                layerColor(static_cast<double>(*series.layer) / highest, m_style.theme.dark);
        } else {
            drawn.shape = unnamed;
            drawn.color = seriesColor(unnamed++, m_style.theme.dark);
        }
        m_drawn.push_back(std::move(drawn));
    }
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
    fillLegend();
}

void FigurePainter::fillSmooth(Drawn& drawn)
{
    drawn.smoother = std::make_unique<Smoother>(m_smoothing);
    drawn.smoothData.reset(new QCPGraphDataContainer);
    for (auto it = drawn.data->raw()->constBegin(); it != drawn.data->raw()->constEnd(); ++it)
        drawn.smoothData->add(QCPGraphData(it->key, drawn.smoother->next(it->value)));
    if (!drawn.smooth) {
        drawn.smooth = m_plot->addGraph();
        drawn.smooth->setName(drawn.graph->name());
    }
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
            standOn(*drawn.bars, m_plot->yAxis->range().lower);
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
        const bool many = m_style.fast && level->size() > kManyPoints;
        drawn.graph->setAntialiased(!many);
        if (many)
            drawn.graph->setPen(QPen(drawn.graph->pen().color(), 1));
    }
    const QString text = note();
    if (!text.isEmpty() && !m_note)
        addNote();
    if (m_note)
        m_note->setText(text);
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
