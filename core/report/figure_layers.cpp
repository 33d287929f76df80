// SPDX-License-Identifier: GPL-3.0-or-later
// Figures of refinement: loss curves and functional error per layer.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/mean.h"
#include "core/report/figure_data.h"
#include "core/report/report_text.h"

namespace mla
{

namespace
{

constexpr double missing = std::numeric_limits<double>::quiet_NaN();

std::string lossLabel(const RunRecord& run)
{
    return run.variant == "partial-rope" ? "Key and value loss"
                                         : "Squared error of the attention output per token";
}

/// Points of a curve; a gap stays a gap if `keepGaps`, otherwise the steps beside it are joined.
void addPoints(Series& series, const LossCurve& curve, const std::vector<double>& values,
               bool keepGaps)
{
    const std::size_t count = std::min(curve.step.size(), values.size());
    for (std::size_t i = 0; i < count; ++i) {
        if (std::isnan(values[i]) && !(keepGaps && curve.step[i] > 0))
            continue; // step 0 has no training loss; held-out loss is evaluated now and then
        series.x.push_back(curve.step[i]);
        series.y.push_back(values[i]);
    }
}

Series heldoutSeries(const LossCurve& curve)
{
    Series series;
    series.name = "held-out";
    series.role = "heldout";
    addPoints(series, curve, curve.heldout, false);
    return series;
}

std::string change(double from, double to)
{
    if (!(from > 0))
        return "";
    constexpr double percent = 100;
    const double relative = percent * (to - from) / from;
    return " (" + std::string(relative > 0 ? "+" : "") + fixedText(relative, 1) + " %)";
}

std::string layerLossCaption(const LayerRecord& layer, const Series& heldout)
{
    if (heldout.y.empty())
        return "No held-out loss was recorded.";
    const auto best = std::ranges::min_element(heldout.y);
    const auto index = static_cast<std::size_t>(best - heldout.y.begin());
    std::string text = "Held-out loss goes from " + shortText(heldout.y.front()) + " to " +
                       shortText(*best) + change(heldout.y.front(), *best) + ", best at step " +
                       std::to_string(static_cast<int>(heldout.x[index]));
    if (layer.keptConverted)
        text += "; training did not help, the converted weights stay";
    return text + ".";
}

void oneLayerLoss(Figure& figure, const LayerRecord& layer)
{
    Series train;
    train.name = "training";
    train.role = "train";
    addPoints(train, *layer.loss, layer.loss->train, true);
    Series heldout = heldoutSeries(*layer.loss);
    figure.caption = layerLossCaption(layer, heldout);
    for (Series* series : {&train, &heldout}) {
        series->layer = layer.layer.value;
        if (!series->x.empty())
            figure.series.push_back(std::move(*series));
    }
}

void allLayersLoss(Figure& figure, const RunRecord& run)
{
    double ratios = 0;
    int kept = 0;
    for (const LayerRecord& layer : run.layers) {
        kept += layer.keptConverted;
        if (!layer.loss)
            continue;
        Series series = heldoutSeries(*layer.loss);
        if (series.x.empty())
            continue;
        series.name = "layer " + std::to_string(layer.layer.value);
        series.role.clear();
        series.layer = layer.layer.value;
        ratios += *std::ranges::min_element(series.y) / series.y.front();
        figure.series.push_back(std::move(series));
    }
    const auto count = figure.series.size();
    figure.caption = "Held-out loss of " + std::to_string(count) + " layers; the best is " +
                     fixedText(count > 0 ? ratios / static_cast<double>(count) : missing, 2) +
                     " of the start in the mean; " + std::to_string(kept) +
                     (kept == 1 ? " layer keeps" : " layers keep") + " the converted weights.";
}

Axis layerAxis()
{
    return {"Layer", "", false, {}};
}
Axis errorAxis()
{
    return {"Relative error of the attention output", "", false, {}};
}

/// Error per layer in layer order; layers without a value are gaps.
Series errorSeries(const RunRecord& run, std::optional<FidelityRecord> LayerRecord::*member)
{
    std::vector<std::pair<int, double>> points;
    for (const LayerRecord& layer : run.layers)
        points.emplace_back(layer.layer.value,
                            layer.*member ? (layer.*member)->relativeError : missing);
    std::ranges::sort(points, {}, [](const auto& point) { return point.first; });
    Series series;
    for (const auto& [layer, error] : points) {
        series.x.push_back(layer);
        series.y.push_back(error);
    }
    return series;
}

bool hasValues(const Series& series)
{
    return std::isfinite(meanOfFinite(series.y));
}

} // namespace

Figure lossCurves(const RunRecord& run, std::optional<LayerIndex> layer)
{
    Figure figure;
    figure.id = "loss-" + fileStem(run.id);
    figure.x = {"Optimizer step", "", false, {}};
    figure.y = {lossLabel(run), "", true, {}};
    if (!layer) {
        figure.title = "How the layers learn: held-out loss, " + runLabel(run);
        allLayersLoss(figure, run);
        return figure;
    }
    const std::string number = std::to_string(layer->value);
    figure.id += "-layer" + number;
    figure.title = "How layer " + number + " learns: " + runLabel(run);
    const auto found = std::ranges::find(run.layers, *layer, &LayerRecord::layer);
    if (found != run.layers.end() && found->loss)
        oneLayerLoss(figure, *found);
    return figure;
}

Figure layerErrors(const RunRecord& run)
{
    Figure figure;
    figure.id = "error-" + fileStem(run.id);
    figure.title = "How far each attention block is from the original: " + runLabel(run);
    figure.x = layerAxis();
    figure.y = errorAxis();
    Series before = errorSeries(run, &LayerRecord::before);
    Series after = errorSeries(run, &LayerRecord::after);
    before.name = "before refinement";
    before.role = "converted";
    after.name = hasValues(before) ? "after refinement" : run.variant;
    after.role = run.variant;
    figure.caption = "Mean relative error " + fixedText(meanOfFinite(after.y), 3);
    if (hasValues(before))
        figure.caption += ", before refinement " + fixedText(meanOfFinite(before.y), 3);
    figure.caption += "; 0 would be exact.";
    for (Series* series : {&before, &after}) {
        series->kind = Series::Kind::Bars;
        if (hasValues(*series))
            figure.series.push_back(std::move(*series));
    }
    return figure;
}

Figure layerErrorComparison(const std::vector<const RunRecord*>& runs)
{
    Figure figure;
    figure.id = "error-comparison";
    figure.title = "How far each attention block is from the original";
    figure.x = layerAxis();
    figure.y = errorAxis();
    for (const RunRecord* run : runs) {
        Series series = errorSeries(*run, &LayerRecord::after);
        if (!hasValues(series))
            continue;
        series.name = runLabel(*run);
        series.role = run->variant;
        figure.caption += figure.caption.empty() ? "Mean relative error: " : "; ";
        figure.caption += series.name + " " + fixedText(meanOfFinite(series.y), 3);
        figure.series.push_back(std::move(series));
    }
    if (!figure.caption.empty())
        figure.caption += ".";
    return figure;
}

} // namespace mla
