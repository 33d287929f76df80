// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/axis_setup.h"

#include <algorithm>
#include <cmath>

namespace mla::ui
{
namespace
{

class IntegerTicker : public QCPAxisTicker
{
protected:
    double getTickStep(const QCPRange& range) override
    {
        return std::max(1.0, std::round(QCPAxisTicker::getTickStep(range)));
    }
    int getSubTickCount(double tickStep) override
    {
        const int between = QCPAxisTicker::getSubTickCount(tickStep);
        return std::fmod(tickStep, between + 1) == 0 ? between : 0;
    }
};

/// Powers of ten over wide ranges; 1, 2, 5 steps where fewer than two decades are in sight.
class LogTicker : public QCPAxisTickerLog
{
protected:
    QVector<double> createTickVector(double tickStep, const QCPRange& range) override
    {
        if (range.lower <= 0 || range.upper / range.lower >= 100)
            return QCPAxisTickerLog::createTickVector(tickStep, range);
        QVector<double> ticks;
        for (double decade = std::pow(10, std::floor(std::log10(range.lower)));
             decade <= range.upper; decade *= 10)
            for (const double step : {1.0, 2.0, 5.0})
                ticks << decade * step;
        return ticks;
    }
    QString getTickLabel(double tick, const QLocale& locale, QChar format, int precision) override
    {
        // 0.1, 1, 10 read better than powers; 10^4 and 10^-3 do not.
        if (tick >= 0.001 && tick < 9999)
            return valueText(tick, 3);
        return QCPAxisTickerLog::getTickLabel(tick, locale, format, precision);
    }
};

void widen(std::optional<double>& low, std::optional<double>& high, double value, bool logarithmic)
{
    if (!std::isfinite(value) || (logarithmic && value <= 0))
        return;
    low = low ? std::min(*low, value) : value;
    high = high ? std::max(*high, value) : value;
}

QCPRange padded(double low, double high, bool logarithmic, double share)
{
    if (logarithmic) {
        const double factor = low < high ? std::pow(high / low, share) : 2;
        return {low / factor, high * factor};
    }
    const double size = high - low;
    const double margin = size > 0 ? size * share : std::max(std::abs(low) * 0.1, 0.5);
    return {low - margin, high + margin};
}

bool hasBars(const Figure& figure)
{
    return std::any_of(figure.series.begin(), figure.series.end(),
                       [](const Series& s) { return s.kind == Series::Kind::Bars; });
}

} // namespace

QString axisTitle(const Axis& axis)
{
    const QString label = QString::fromStdString(axis.label);
    return axis.unit.empty()
               ? label
               : QStringLiteral("%1 (%2)").arg(label, QString::fromStdString(axis.unit));
}

bool hasIntegerX(const Figure& figure)
{
    if (figure.heatmap)
        return true;
    bool any = false;
    for (const Series& series : figure.series)
        for (const double x : series.x) {
            if (std::isfinite(x) && x != std::round(x))
                return false;
            any = true;
        }
    return any;
}

bool isLayerAxis(const Axis& axis)
{
    return QString::fromStdString(axis.label)
        .startsWith(QLatin1String("layer"), Qt::CaseInsensitive);
}

QString valueText(double value, int digits)
{
    if (std::isnan(value))
        return QStringLiteral("–");
    const double size = std::abs(value);
    if (value == std::round(value) && size < 1e7)
        return QString::number(value, 'f', 0).replace(QLatin1Char('-'), QChar(0x2212));
    QString text = QString::number(value, 'g', digits);
    return text.replace(QLatin1Char('-'), QChar(0x2212));
}

void setUpAxis(QCPAxis* axis, const Axis& description, bool integer)
{
    axis->setScaleType(description.logarithmic ? QCPAxis::stLogarithmic : QCPAxis::stLinear);
    axis->setSubTicks(true);
    axis->setNumberFormat(QStringLiteral("gb"));
    axis->setNumberPrecision(6);
    if (!description.categories.empty()) {
        QSharedPointer<QCPAxisTickerText> ticker(new QCPAxisTickerText);
        const std::size_t count = description.categories.size();
        const std::size_t most = axis->orientation() == Qt::Horizontal ? 16 : 32;
        const std::size_t step = (count + most - 1) / most; // more labels would overlap
        for (std::size_t i = 0; i < count; i += step)
            ticker->addTick(static_cast<double>(i),
                            QString::fromStdString(description.categories[i]));
        axis->setTicker(ticker);
        axis->setSubTicks(false);
        axis->setTickLength(0);
    } else if (description.logarithmic) {
        QSharedPointer<LogTicker> ticker(new LogTicker);
        ticker->setSubTickCount(8);
        axis->setTicker(ticker);
        axis->setNumberFormat(QStringLiteral("eb"));
        axis->setNumberPrecision(0);
    } else if (integer) {
        axis->setTicker(QSharedPointer<QCPAxisTicker>(new IntegerTicker));
    } else {
        axis->setTicker(QSharedPointer<QCPAxisTicker>(new QCPAxisTicker));
    }
    axis->setLabel(axisTitle(description));
}

DataExtent dataExtent(const Figure& figure)
{
    DataExtent extent;
    for (const Series& series : figure.series) {
        for (std::size_t i = 0; i < std::min(series.x.size(), series.y.size()); ++i) {
            if (!std::isfinite(series.y[i]) || (figure.y.logarithmic && series.y[i] <= 0))
                continue;
            widen(extent.xLow, extent.xHigh, series.x[i], figure.x.logarithmic);
            widen(extent.yLow, extent.yHigh, series.y[i], figure.y.logarithmic);
        }
        for (const auto* bound : {&series.low, &series.high})
            for (const double y : *bound)
                widen(extent.yLow, extent.yHigh, y, figure.y.logarithmic);
    }
    if (figure.horizontalBand)
        for (const double y : {figure.horizontalBand->low, figure.horizontalBand->high})
            widen(extent.yLow, extent.yHigh, y, figure.y.logarithmic);
    return extent;
}

QCPRange fullRangeX(const Figure& figure, const DataExtent& extent)
{
    if (figure.heatmap)
        return {-0.5, figure.heatmap->columns - 0.5};
    if (!figure.x.categories.empty())
        return {-0.5, static_cast<double>(figure.x.categories.size()) - 0.5};
    double low = extent.xLow.value_or(figure.x.logarithmic ? 1 : 0);
    double high = extent.xHigh.value_or(figure.x.logarithmic ? 10 : 1);
    if (figure.verticalMark && (!figure.x.logarithmic || *figure.verticalMark > 0)) {
        low = std::min(low, *figure.verticalMark);
        high = std::max(high, *figure.verticalMark);
    }
    if (hasBars(figure) && !figure.x.logarithmic)
        return {low - 0.6, high + 0.6};
    return padded(low, high, figure.x.logarithmic, 0.025);
}

QCPRange fullRangeY(const Figure& figure, const DataExtent& extent)
{
    if (figure.heatmap)
        return {-0.5, figure.heatmap->rows - 0.5};
    if (!figure.y.categories.empty())
        return {-0.5, static_cast<double>(figure.y.categories.size()) - 0.5};
    const double low = extent.yLow.value_or(figure.y.logarithmic ? 1 : 0);
    const double high = extent.yHigh.value_or(figure.y.logarithmic ? 10 : 1);
    QCPRange range = padded(low, high, figure.y.logarithmic, 0.06);
    if (figure.y.logarithmic)
        return range;
    if (low >= 0 && (hasBars(figure) || low <= 0.5 * high))
        range.lower = 0;
    if (high <= 0 && hasBars(figure))
        range.upper = 0;
    if (figure.y.unit == "%" && low >= 0 && high <= 100)
        range.upper = std::min(range.upper, 102.0);
    return range;
}

} // namespace mla::ui
