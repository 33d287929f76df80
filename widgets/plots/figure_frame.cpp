// SPDX-License-Identifier: GPL-3.0-or-later
// The parts of FigurePainter around the curves: heat map and scales, mark, legend, title, note, and
// how they share the space.
#include <algorithm>
#include <cmath>

#include "widgets/plots/axis_setup.h"
#include "widgets/plots/color_scale.h"
#include "widgets/plots/figure_painter.h"
#include "widgets/plots/pens.h"

namespace mla::ui
{
namespace
{

constexpr double kLayerScaleTop = 0.85;    // viridis' yellow end vanishes on white
constexpr double kLayerScaleBottom = 0.26; // and its dark end on a dark background
constexpr double kSideLabelAngle = -35;
constexpr double kUprightAngle = -90;
constexpr double kNoStretch = 1e-4; // the layout needs a positive factor

/// The part of viridis that stands out from the background.
QCPColorGradient layerGradient(bool dark)
{
    QCPColorGradient whole = viridisGradient(), part;
    const double low = dark ? kLayerScaleBottom : 0, high = dark ? 1 : kLayerScaleTop;
    part.clearColorStops();
    constexpr int kStops = 16;
    for (int i = 0; i <= kStops; ++i) {
        const double at = static_cast<double>(i) / kStops;
        part.setColorStopAt(at,
                            QColor::fromRgb(whole.color(low + (high - low) * at, QCPRange(0, 1))));
    }
    return part;
}

QString wrapped(const QString& text, const QFontMetrics& metrics, int width)
{
    QString result, line;
    for (const QString& word : text.split(QLatin1Char(' '), Qt::SkipEmptyParts)) {
        const QString longer = line.isEmpty() ? word : line + QLatin1Char(' ') + word;
        if (line.isEmpty() || metrics.horizontalAdvance(longer) <= width) {
            line = longer;
            continue;
        }
        result += line + QLatin1Char('\n');
        line = word;
    }
    return result + line;
}

QCPRange valueRange(const Heatmap& map)
{
    if (map.range)
        return {map.range->low, map.range->high};
    double low = 0, high = 0;
    bool any = false;
    for (const double value : map.values) {
        if (!std::isfinite(value))
            continue;
        low = any ? std::min(low, value) : value;
        high = any ? std::max(high, value) : value;
        any = true;
    }
    if (map.diverging) {
        const double bound = std::max({std::abs(low), std::abs(high), 1e-12});
        return {-bound, bound};
    }
    if (low > 0 && low < 0.5 * high)
        low = 0;
    return low < high ? QCPRange(low, high) : QCPRange(low, low + std::max(std::abs(low), 1e-12));
}

/// Names on `axis` that is `length` pixels long, only each n-th where lines would overlap.
void thinCategories(const QCPAxis& axis, const Axis& named, int length)
{
    const auto ticker = axis.ticker().dynamicCast<QCPAxisTickerText>();
    const auto count = static_cast<int>(named.categories.size());
    if (!ticker || count == 0)
        return;
    const int line = QFontMetrics(axis.tickLabelFont()).height();
    const int step = std::max(1, (line * count + length - 1) / std::max(1, length));
    ticker->clear();
    for (int i = 0; i < count; i += step)
        ticker->addTick(i, QString::fromStdString(named.categories[static_cast<std::size_t>(i)]));
}

} // namespace

QColor layerColor(double position, bool dark)
{
    QCPColorGradient gradient = layerGradient(dark);
    return QColor::fromRgb(gradient.color(position, QCPRange(0, 1)));
}

void FigurePainter::addScale(const QCPRange& range, const QCPColorGradient& gradient,
                             const Axis& axis, bool integer)
{
    const PlotTheme& theme = m_style.theme;
    m_scale = new QCPColorScale(m_plot);
    const auto position = m_plot->plotLayout()->rowCount() - 1;
    m_plot->plotLayout()->addElement(position, 1, m_scale);
    m_scale->setType(QCPAxis::atRight);
    m_scale->setGradient(gradient);
    m_scale->setDataRange(range);
    m_scale->setBarWidth(static_cast<int>(std::lround(pt(8))));
    m_scale->setRangeDrag(false);
    m_scale->setRangeZoom(false);
    QCPAxis* scaleAxis = m_scale->axis();
    setUpAxis(scaleAxis, axis, integer);
    m_scaleTitle = axisTitle(axis);
    scaleAxis->setTickLabelFont(scaledFont(1, false));
    scaleAxis->setLabelFont(scaledFont(1, false));
    scaleAxis->setTickLabelColor(theme.text);
    scaleAxis->setLabelColor(theme.text);
    scaleAxis->setTickPen(QPen(theme.axis, pt(0.6)));
    scaleAxis->setSubTickPen(QPen(theme.axis, pt(0.4)));
    scaleAxis->setBasePen(QPen(theme.axis, pt(0.6)));
    scaleAxis->setTickLength(0, static_cast<int>(std::lround(pt(2.5))));
    scaleAxis->setSubTickLength(0, static_cast<int>(std::lround(pt(1.4))));
    scaleAxis->setTickLabelPadding(static_cast<int>(std::lround(pt(2.5))));
    scaleAxis->setLabelPadding(static_cast<int>(std::lround(pt(3))));
    auto* group = new QCPMarginGroup(m_plot);
    m_plot->axisRect()->setMarginGroup(QCP::msTop | QCP::msBottom, group);
    m_scale->setMarginGroup(QCP::msTop | QCP::msBottom, group);
}

void FigurePainter::addHeatmap()
{
    const Heatmap& map = *m_figure.heatmap;
    m_map = new QCPColorMap(m_plot->xAxis, m_plot->yAxis);
    m_map->setInterpolate(false);
    m_map->setTightBoundary(false);
    // A single row or column has no spacing from which its extent could follow: it is given here.
    const auto extent = [](int count) {
        return count > 1 ? QCPRange(0, count - 1) : QCPRange(-0.5, 0.5);
    };
    m_map->data()->setSize(map.columns, map.rows);
    m_map->data()->setRange(extent(map.columns), extent(map.rows));
    for (int row = 0; row < map.rows; ++row)
        for (int column = 0; column < map.columns; ++column) {
            const auto at = static_cast<std::size_t>(row) * static_cast<std::size_t>(map.columns) +
                            static_cast<std::size_t>(column);
            m_map->data()->setCell(column, row, at < map.values.size() ? map.values[at] : NAN);
        }
    const QCPRange range = valueRange(map);
    Axis axis;
    axis.label = map.valueLabel;
    axis.unit = map.valueUnit;
    const QCPColorGradient gradient = map.diverging ? divergingGradient() : viridisGradient();
    addScale(range, gradient, axis, false);
    m_map->setGradient(gradient);
    m_map->setDataRange(range);
    addCellTexts();
    m_plot->xAxis->setSubTicks(false);
    m_plot->yAxis->setSubTicks(false);
}

void FigurePainter::addLayerScale()
{
    int highest = 1;
    for (const Series& series : m_figure.series)
        highest = std::max(highest, series.layer.value_or(0));
    Axis axis;
    axis.label = "Layer";
    addScale(QCPRange(0, highest), layerGradient(m_style.theme.dark), axis, true);
}

void FigurePainter::addMark()
{
    if (!m_figure.verticalMark)
        return;
    const double x = *m_figure.verticalMark;
    auto* line = new QCPItemStraightLine(m_plot);
    line->setPen(QPen(m_style.theme.text, pt(0.8), Qt::DashLine));
    line->point1->setCoords(x, 1);
    line->point2->setTypeY(QCPItemPosition::ptAxisRectRatio);
    line->point1->setTypeY(QCPItemPosition::ptAxisRectRatio);
    line->point1->setCoords(x, 0);
    line->point2->setCoords(x, 1);
    auto* label = new QCPItemText(m_plot);
    label->setText(valueText(x));
    label->setFont(scaledFont(0.95, true));
    label->setColor(m_style.theme.text);
    const int gap = static_cast<int>(std::lround(pt(2)));
    label->setPadding(QMargins(gap, gap / 2, gap, gap / 2));
    label->position->setTypeY(QCPItemPosition::ptAxisRectRatio);
    // Spectra fall from left to right: below and left of the mark nothing is drawn.
    label->setPositionAlignment(Qt::AlignBottom | Qt::AlignRight);
    label->position->setCoords(x, 0.99);
}

void FigurePainter::addHorizontalBand()
{
    if (!m_figure.horizontalBand)
        return;
    auto* band = new QCPItemRect(m_plot);
    band->setLayer(QStringLiteral("background"));
    band->setPen(Qt::NoPen);
    band->setBrush(withAlpha(m_style.theme.mutedText, m_style.theme.dark ? 70 : 55));
    for (QCPItemPosition* corner : {band->topLeft, band->bottomRight}) {
        corner->setTypeX(QCPItemPosition::ptAxisRectRatio);
        corner->setTypeY(QCPItemPosition::ptPlotCoords);
    }
    band->topLeft->setCoords(0, m_figure.horizontalBand->high);
    band->bottomRight->setCoords(1, m_figure.horizontalBand->low);
}

/// Black or white, whichever the cell's colour sets off better.
void FigurePainter::addCellTexts()
{
    const Heatmap& map = *m_figure.heatmap;
    QCPColorGradient gradient = m_map->gradient();
    for (std::size_t i = 0; i < std::min(map.texts.size(), map.values.size()); ++i) {
        const auto cell = static_cast<int>(i);
        const QColor back = std::isfinite(map.values[i])
                                ? QColor::fromRgb(gradient.color(map.values[i], m_map->dataRange()))
                                : gradient.nanColor();
        auto* text = new QCPItemText(m_plot);
        text->setText(QString::fromStdString(map.texts[i]));
        text->setFont(scaledFont(1, false));
        text->setColor(contrastRatio(back, Qt::white) > contrastRatio(back, Qt::black) ? Qt::white
                                                                                       : Qt::black);
        text->position->setCoords(cell % map.columns, cell / map.columns);
    }
}

void FigurePainter::addLegend()
{
    int named = 0;
    for (const Series& series : m_figure.series)
        named += !series.name.empty() && !(m_layerScale && series.layer && series.role.empty());
    if (named < 2 && !(named == 1 && m_figure.series.size() > 1))
        return;
    m_plot->plotLayout()->insertRow(0);
    auto* row = new QCPLayoutGrid;
    m_plot->plotLayout()->addElement(0, 0, row);
    m_legend = new QCPLegend;
    row->addElement(0, 1, m_legend);
    row->addElement(0, 0, new QCPLayoutElement(m_plot));
    row->addElement(0, 2, new QCPLayoutElement(m_plot));
    row->setColumnStretchFactors({1000, 0.01, 1000});
    m_legend->setLayer(QStringLiteral("legend"));
    m_legend->setBrush(Qt::NoBrush);
    m_legend->setBorderPen(Qt::NoPen);
    m_legend->setFont(scaledFont(1, false));
    m_legend->setTextColor(m_style.theme.text);
    m_legend->setIconSize(static_cast<int>(std::lround(pt(14))), m_style.font.pixelSize());
    m_legend->setIconTextPadding(static_cast<int>(std::lround(pt(3))));
    m_legend->setMargins(QMargins(0, 0, 0, 0));
    m_legend->setColumnSpacing(static_cast<int>(std::lround(pt(9))));
    m_legend->setRowSpacing(static_cast<int>(std::lround(pt(1.5))));
    fillLegend();
}

void FigurePainter::fillLegend()
{
    if (!m_legend)
        return;
    m_legend->clearItems();
    for (std::size_t i = 0; i < m_drawn.size(); ++i) {
        const Series& series = m_figure.series[i];
        if (series.name.empty() || (m_layerScale && series.layer && series.role.empty()))
            continue;
        if (m_drawn[i].bars)
            m_drawn[i].bars->addToLegend(m_legend);
        else
            (m_drawn[i].smooth ? m_drawn[i].smooth : m_drawn[i].graph)->addToLegend(m_legend);
    }
}

void FigurePainter::addTitle()
{
    if (!m_style.showTitle || m_figure.title.empty())
        return;
    m_plot->plotLayout()->insertRow(0);
    m_title =
        new QCPTextElement(m_plot, QString::fromStdString(m_figure.title), scaledFont(1, true));
    m_title->setTextColor(m_style.theme.text);
    m_plot->plotLayout()->addElement(0, 0, m_title);
}

void FigurePainter::addNote()
{
    m_note = new QCPTextElement(m_plot, QString(), scaledFont(0.88, false));
    m_note->setTextColor(m_style.theme.mutedText);
    m_note->setTextFlags(Qt::AlignLeft | Qt::AlignVCenter);
    m_plot->plotLayout()->addElement(m_plot->plotLayout()->rowCount(), 0, m_note);
}

QString FigurePainter::note() const
{
    int hidden = 0, missing = 0;
    for (const Drawn& drawn : m_drawn)
        if (drawn.data) {
            hidden += drawn.data->hiddenByLog();
            missing += drawn.data->missing();
        }
    QStringList parts;
    if (hidden > 0)
        parts << QStringLiteral("%1 not positive (logarithmic axis)").arg(hidden);
    if (missing > 0)
        parts << QStringLiteral("%1 missing").arg(missing);
    return parts.isEmpty()
               ? QString()
               : QStringLiteral("Values not drawn: ") + parts.join(QStringLiteral(", "));
}

int FigurePainter::layoutLegend(int width)
{
    if (!m_legend)
        return 0;
    const QFontMetrics metrics(m_legend->font());
    int widest = 0;
    for (int i = 0; i < m_legend->itemCount(); ++i)
        if (auto* item = qobject_cast<QCPPlottableLegendItem*>(m_legend->item(i)))
            widest = std::max(widest, metrics.horizontalAdvance(item->plottable()->name()));
    const int cell = widest + m_legend->iconSize().width() + m_legend->iconTextPadding() +
                     m_legend->columnSpacing();
    const int columns = std::clamp((width + m_legend->columnSpacing()) / std::max(cell, 1), 1,
                                   m_legend->itemCount());
    // Even rows look calmer than a full row and a rest.
    const int rows = (m_legend->itemCount() + columns - 1) / columns;
    const int wrap = (m_legend->itemCount() + rows - 1) / rows;
    m_legend->setWrap(wrap);
    m_legend->setFillOrder(QCPLayoutGrid::foColumnsFirst, true);
    return rows * (metrics.height() + m_legend->rowSpacing());
}

void FigurePainter::layoutFor(const QSize& size)
{
    const int em = m_style.font.pixelSize();
    const int frame = m_plot->plotLayout()->margins().left() * 2;
    const int scale = m_scale ? 6 * em : 0;
    int height = size.height() - frame - 4 * em - layoutLegend(size.width() - frame - scale - em);
    if (m_title) {
        const QFontMetrics metrics(m_title->font());
        const QString text =
            wrapped(QString::fromStdString(m_figure.title), metrics, size.width() - frame - scale);
        m_title->setText(text);
        height -= metrics.height() * (1 + static_cast<int>(text.count(QLatin1Char('\n'))));
    }
    const int width = std::max(1, size.width() - frame - 5 * em - scale);
    height = std::max(1, height);
    m_plot->xAxis->ticker()->setTickCount(std::clamp(width / (6 * em), 2, 10));
    m_plot->yAxis->ticker()->setTickCount(std::clamp(height / (3 * em), 2, 8));
    const QFontMetrics metrics(m_plot->xAxis->labelFont());
    m_plot->xAxis->setLabel(wrapped(axisTitle(m_figure.x), metrics, width));
    m_plot->yAxis->setLabel(wrapped(axisTitle(m_figure.y), metrics, height));
    if (m_scale) {
        // A margin group only lets a colour scale's margins grow: without this, those of a smaller
        // size, where labels had more lines, would stay.
        m_scale->setMargins(QMargins());
        m_scale->axis()->ticker()->setTickCount(std::clamp(height / (3 * em), 2, 8));
        m_scale->axis()->setLabel(wrapped(m_scaleTitle, metrics, height));
    }
    layoutCategories(width, height);
    // Only the plot itself grows: everything else keeps the size of its text.
    QCPLayoutGrid* rows = m_plot->plotLayout();
    for (int row = 0; row < rows->rowCount(); ++row)
        rows->setRowStretchFactor(row,
                                  rows->element(row, 0) == m_plot->axisRect() ? 1 : kNoStretch);
}

/// Names beside each other, in several lines if need be; slanted where a single word is too wide,
/// upright where slanted ones would run into each other, and each n-th where those would.
void FigurePainter::layoutCategories(int width, int height)
{
    thinCategories(*m_plot->yAxis, m_figure.y, height);
    const auto ticker = m_plot->xAxis->ticker().dynamicCast<QCPAxisTickerText>();
    if (!ticker || m_figure.x.categories.empty())
        return;
    const QFontMetrics metrics(m_plot->xAxis->tickLabelFont());
    const int room =
        width / static_cast<int>(m_figure.x.categories.size()) - m_style.font.pixelSize() / 2;
    bool fits = true;
    QStringList names;
    for (const std::string& category : m_figure.x.categories) {
        names << wrapped(QString::fromStdString(category), metrics, room);
        for (const QString& line : names.last().split(QLatin1Char('\n')))
            fits = fits && metrics.horizontalAdvance(line) <= room;
    }
    ticker->clear();
    for (int i = 0; i < names.size(); ++i)
        ticker->addTick(i, fits ? names[i] : QString(names[i]).replace('\n', ' '));
    m_plot->xAxis->setTickLabelRotation(fits ? 0 : kSideLabelAngle);
    const double each = static_cast<double>(width) / static_cast<double>(names.size());
    if (fits || each >= metrics.height() / std::sin(-kSideLabelAngle * M_PI / 180))
        return;
    m_plot->xAxis->setTickLabelRotation(kUprightAngle);
    thinCategories(*m_plot->xAxis, m_figure.x, width);
}

} // namespace mla::ui
