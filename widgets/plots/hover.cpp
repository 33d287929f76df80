// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/hover.h"

#include <algorithm>
#include <cmath>

#include "widgets/plots/axis_setup.h"

namespace mla::ui
{
namespace
{

constexpr int kMostLines = 8;      // more series than that: the nearest only
constexpr double kClickPixels = 8; // a curve is hit within this distance

QString withUnit(double value, const Axis& axis)
{
    const QString number = valueText(value);
    return axis.unit.empty()
               ? number
               : QStringLiteral("%1 %2").arg(number, QString::fromStdString(axis.unit));
}

QString positionText(double x, const Axis& axis, bool integer)
{
    if (!axis.categories.empty()) {
        const auto index = static_cast<int>(std::lround(x));
        return index >= 0 && index < static_cast<int>(axis.categories.size())
                   ? QString::fromStdString(axis.categories[static_cast<std::size_t>(index)])
                   : QString();
    }
    return QStringLiteral("%1 %2").arg(QString::fromStdString(axis.label),
                                       withUnit(integer ? std::round(x) : x, axis));
}

struct Nearest {
    std::size_t series = 0;
    double x = 0, y = 0;
};

/// The finite point of a series nearest to x; series are sorted by x or short.
std::optional<Nearest> nearestPoint(const Figure& figure, std::size_t index, double x)
{
    const Series& series = figure.series[index];
    const std::size_t count = std::min(series.x.size(), series.y.size());
    if (count == 0)
        return std::nullopt;
    const auto end = series.x.begin() + static_cast<std::ptrdiff_t>(count);
    const auto at =
        static_cast<std::size_t>(std::lower_bound(series.x.begin(), end, x) - series.x.begin());
    std::optional<Nearest> best;
    for (std::size_t i = at > 0 ? at - 1 : 0; i < std::min(count, at + 2); ++i)
        if (std::isfinite(series.y[i]) &&
            (!best || std::abs(series.x[i] - x) < std::abs(best->x - x)))
            best = Nearest{index, series.x[i], series.y[i]};
    return best;
}

QString cellText(const Figure& figure, double x, double y)
{
    const Heatmap& map = *figure.heatmap;
    const auto column = static_cast<int>(std::lround(x)), row = static_cast<int>(std::lround(y));
    if (column < 0 || row < 0 || column >= map.columns || row >= map.rows)
        return {};
    const auto at = static_cast<std::size_t>(row) * static_cast<std::size_t>(map.columns) +
                    static_cast<std::size_t>(column);
    Axis value;
    value.unit = map.valueUnit;
    return QStringLiteral("%1\n%2\n%3: %4")
        .arg(positionText(y, figure.y, true), positionText(x, figure.x, true),
             QString::fromStdString(map.valueLabel),
             at < map.values.size() ? withUnit(map.values[at], value) : QStringLiteral("–"));
}

double pixelDistance(const QCustomPlot& plot, const Nearest& point, const QPointF& position)
{
    return std::hypot(plot.xAxis->coordToPixel(point.x) - position.x(),
                      plot.yAxis->coordToPixel(point.y) - position.y());
}

} // namespace

QString hoverText(const FigurePainter& painter, double x, double y)
{
    const Figure& figure = painter.figure();
    if (figure.heatmap)
        return cellText(figure, x, y);
    std::vector<Nearest> found;
    for (std::size_t i = 0; i < figure.series.size(); ++i)
        if (const auto point = nearestPoint(figure, i, x))
            found.push_back(*point);
    if (found.empty())
        return {};
    if (found.size() > kMostLines) {
        const auto distance = [y](const Nearest& p) { return std::abs(p.y - y); };
        std::nth_element(
            found.begin(), found.begin(), found.end(),
            [&](const Nearest& a, const Nearest& b) { return distance(a) < distance(b); });
        found.resize(1);
    }
    QStringList lines{positionText(found.front().x, figure.x, painter.integerX())};
    for (const Nearest& point : found) {
        const QString name = QString::fromStdString(figure.series[point.series].name);
        lines << QStringLiteral("%1: %2").arg(
            name.isEmpty() ? QString::fromStdString(figure.y.label) : name,
            withUnit(point.y, figure.y));
    }
    return lines.join(QLatin1Char('\n'));
}

std::optional<int> layerAt(const FigurePainter& painter, const QCustomPlot& plot,
                           const QPointF& position)
{
    const Figure& figure = painter.figure();
    const double x = plot.xAxis->pixelToCoord(position.x());
    const double y = plot.yAxis->pixelToCoord(position.y());
    if (!plot.axisRect()->rect().contains(position.toPoint()))
        return std::nullopt;
    if (figure.heatmap) {
        if (isLayerAxis(figure.x))
            return static_cast<int>(std::lround(x));
        return isLayerAxis(figure.y) ? std::optional(static_cast<int>(std::lround(y)))
                                     : std::nullopt;
    }
    std::optional<int> layer;
    double nearest = kClickPixels;
    for (std::size_t i = 0; i < figure.series.size(); ++i) {
        const Series& series = figure.series[i];
        if (!series.layer)
            continue;
        double distance = nearest + 1;
        if (const QCPGraph* graph = painter.graphOf(static_cast<int>(i)))
            distance = graph->selectTest(position, false);
        else if (const auto point = nearestPoint(figure, i, x))
            distance = pixelDistance(plot, *point, position);
        if (distance >= 0 && distance < nearest) {
            nearest = distance;
            layer = series.layer;
        }
    }
    if (layer || !isLayerAxis(figure.x))
        return layer;
    // Layers along x: anywhere in a layer's column counts.
    const DataExtent extent = dataExtent(figure);
    const double rounded = std::round(x);
    if (!extent.xLow || rounded < *extent.xLow || rounded > *extent.xHigh)
        return std::nullopt;
    return static_cast<int>(rounded);
}

void Crosshair::create(const PaintStyle& style)
{
    m_line = new QCPItemStraightLine(m_plot);
    m_line->setPen(QPen(style.theme.mutedText, 1, Qt::DotLine));
    m_line->setLayer(QStringLiteral("overlay"));
    m_line->setVisible(false);
    m_text = new QCPItemText(m_plot);
    m_text->setLayer(QStringLiteral("overlay"));
    m_text->setFont(style.font);
    m_text->setColor(style.theme.text);
    QColor backing = style.theme.background;
    backing.setAlpha(240);
    m_text->setBrush(backing);
    m_text->setPen(QPen(style.theme.axis, 1));
    m_text->setPadding(QMargins(7, 5, 7, 5));
    m_text->setTextAlignment(Qt::AlignLeft);
    m_text->setClipToAxisRect(false);
    m_text->position->setType(QCPItemPosition::ptAbsolute);
    m_text->setVisible(false);
}

void Crosshair::moveTo(double x)
{
    if (!m_line)
        return;
    m_line->setVisible(std::isfinite(x));
    m_line->point1->setTypeY(QCPItemPosition::ptAxisRectRatio);
    m_line->point2->setTypeY(QCPItemPosition::ptAxisRectRatio);
    m_line->point1->setCoords(x, 0);
    m_line->point2->setCoords(x, 1);
}

void Crosshair::showText(const QString& text, const QPointF& position)
{
    if (!m_text)
        return;
    m_text->setVisible(!text.isEmpty());
    if (text.isEmpty())
        return;
    m_text->setText(text);
    const QFontMetrics metrics(m_text->font());
    const QSize size = metrics.boundingRect(QRect(), Qt::TextDontClip, text).size() + QSize(14, 10);
    constexpr int kGap = 14;
    const QRect area = m_plot->viewport();
    const bool left = position.x() + kGap + size.width() > area.right();
    const double x = left ? position.x() - kGap - size.width() : position.x() + kGap;
    const double y =
        std::clamp<double>(position.y() - size.height() / 2.0, area.top() + 2,
                           std::max(area.top() + 2, area.bottom() - size.height() - 2));
    m_text->setPositionAlignment(Qt::AlignTop | Qt::AlignLeft);
    m_text->position->setCoords(std::max(2.0, x), y);
}

void Crosshair::hide()
{
    moveTo(std::numeric_limits<double>::quiet_NaN());
    showText({}, {});
}

} // namespace mla::ui
