// SPDX-License-Identifier: GPL-3.0-or-later
// Figures of a conversion: rank spectra, retained energy, RoPE residuals.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/report/figure_data.h"
#include "core/report/report_text.h"

namespace mla
{

namespace
{

constexpr double percent = 100;
constexpr double missing = std::numeric_limits<double>::quiet_NaN();

const LayerRecord* findLayer(const RunRecord& run, LayerIndex layer)
{
    const auto found = std::ranges::find(run.layers, layer, &LayerRecord::layer);
    return found == run.layers.end() ? nullptr : &*found;
}

/// Numbered from 1, relative to the largest. A zero has no place on a log axis: a gap.
Series spectrumSeries(std::string name, const std::vector<double>& values)
{
    Series series;
    series.name = std::move(name);
    const double largest = values.empty() ? 0 : *std::ranges::max_element(values);
    for (std::size_t i = 0; i < values.size() && largest > 0; ++i) {
        series.x.push_back(static_cast<double>(i + 1));
        series.y.push_back(values[i] > 0 ? values[i] / largest : missing);
    }
    return series;
}

std::string spectrumCaption(const SpectrumRecord& spectrum)
{
    return "Rank " + std::to_string(spectrum.rank) + " keeps " +
           fixedText(percent * spectrum.retainedEnergy, 1) +
           " % of the energy of the activations; effective rank " +
           fixedText(spectrum.effectiveRank, 1) + "; relative error of at least " +
           shortText(spectrum.tailBound) + " from the values right of the mark.";
}

/// Mean retained energy of the layers that have a spectrum, in percent.
double meanRetained(const RunRecord& run)
{
    double sum = 0;
    int count = 0;
    for (const LayerRecord& layer : run.layers)
        if (layer.spectrum) {
            sum += percent * layer.spectrum->retainedEnergy;
            ++count;
        }
    return count > 0 ? sum / count : missing;
}

void allSpectra(Figure& figure, const RunRecord& run)
{
    for (const LayerRecord& layer : run.layers) {
        if (!layer.spectrum)
            continue;
        const SpectrumRecord& spectrum = *layer.spectrum;
        Series series =
            spectrumSeries("layer " + std::to_string(layer.layer.value),
                           spectrum.activations.empty() ? spectrum.weights : spectrum.activations);
        series.layer = layer.layer.value;
        if (series.x.empty())
            continue;
        if (spectrum.rank > 0)
            figure.verticalMark = spectrum.rank;
        figure.series.push_back(std::move(series));
    }
    figure.caption = "Singular values of keys and values in " +
                     std::to_string(figure.series.size()) + " layers; the marked rank keeps " +
                     fixedText(meanRetained(run), 1) + " % of their energy in the mean.";
}

bool mapsFit(const RopeRecord& rope)
{
    if (rope.heads <= 0 || rope.pairs <= 0)
        return false;
    const auto cells = static_cast<std::size_t>(rope.heads) * static_cast<std::size_t>(rope.pairs);
    return rope.keyEnergy.size() == cells && rope.keptEnergy.size() == cells;
}

Series distanceSeries(const LayerRecord& layer)
{
    Series series;
    series.name = "layer " + std::to_string(layer.layer.value);
    series.layer = layer.layer.value;
    const RopeRecord& rope = *layer.rope;
    const std::size_t count = std::min(rope.distance.size(), rope.scoreResidual.size());
    for (std::size_t i = 0; i < count; ++i) {
        if (!(rope.distance[i] > 0))
            continue; // a token and itself: no place on a log axis
        series.x.push_back(rope.distance[i]);
        series.y.push_back(rope.scoreResidual[i]);
    }
    return series;
}

/// Largest finite value of all series and where it stands.
std::string largestResidual(const Figure& figure)
{
    double largest = -1, at = 0;
    std::string name;
    for (const Series& series : figure.series)
        for (std::size_t i = 0; i < series.y.size(); ++i)
            if (series.y[i] > largest) {
                largest = series.y[i];
                at = series.x[i];
                name = series.name;
            }
    if (largest < 0)
        return "";
    return "The largest mean change is " + shortText(largest) + ", " + name + " at a distance of " +
           fixedText(at, 0) + " tokens.";
}

} // namespace

Figure rankSpectrum(const RunRecord& run, std::optional<LayerIndex> layer)
{
    Figure figure;
    figure.id = "spectrum-" + fileStem(run.id);
    figure.x = {"Number of the singular value", "", false, {}};
    figure.y = {"Singular value relative to the largest", "", true, {}};
    if (!layer) {
        figure.title = "How many dimensions keys and values need: " + runLabel(run);
        allSpectra(figure, run);
        return figure;
    }
    const std::string number = std::to_string(layer->value);
    figure.id += "-layer" + number;
    figure.title =
        "How many dimensions keys and values need in layer " + number + ": " + runLabel(run);
    const LayerRecord* record = findLayer(run, *layer);
    if (!record || !record->spectrum)
        return figure;
    if (record->spectrum->rank > 0)
        figure.verticalMark = record->spectrum->rank;
    figure.caption = spectrumCaption(*record->spectrum);
    for (Series& series :
         std::array{spectrumSeries("weights", record->spectrum->weights),
                    spectrumSeries("activations", record->spectrum->activations)}) {
        series.layer = layer->value;
        series.role = series.name;
        if (!series.x.empty())
            figure.series.push_back(std::move(series));
    }
    return figure;
}

Figure retainedEnergy(const RunRecord& run)
{
    Figure figure;
    figure.id = "energy-" + fileStem(run.id);
    figure.title = "How much of keys and values the latent keeps: " + runLabel(run);
    figure.x = {"Layer", "", false, {}};
    figure.y = {"Retained energy", "%", false, {}};
    Series series;
    series.name = "retained energy";
    series.role = run.variant;
    series.kind = Series::Kind::Bars;
    int rank = 0;
    for (const LayerRecord& layer : run.layers) {
        if (!layer.spectrum)
            continue;
        series.x.push_back(layer.layer.value);
        series.y.push_back(percent * layer.spectrum->retainedEnergy);
        rank = std::max(rank, layer.spectrum->rank);
    }
    if (series.x.empty())
        return figure;
    figure.caption = "Rank " + std::to_string(rank) + " keeps " + fixedText(meanRetained(run), 1) +
                     " % in the mean, " + fixedText(*std::ranges::min_element(series.y), 1) +
                     " % in the worst layer.";
    figure.series.push_back(std::move(series));
    return figure;
}

Figure ropeHeatmap(const RunRecord& run, LayerIndex layer)
{
    Figure figure;
    const std::string number = std::to_string(layer.value);
    figure.id = "rope-" + fileStem(run.id) + "-layer" + number;
    figure.title = "What loses its position signal in layer " + number + ": " + runLabel(run);
    figure.x = {"Frequency pair (0 turns fastest)", "", false, {}};
    figure.y = {"Key head", "", false, {}};
    const LayerRecord* record = findLayer(run, layer);
    if (!record || !record->rope || !mapsFit(*record->rope))
        return figure;
    const RopeRecord& rope = *record->rope;
    Heatmap map;
    map.rows = rope.heads;
    map.columns = rope.pairs;
    map.valueLabel = "Key energy leaving the rotary path";
    map.valueUnit = "%";
    double lost = 0;
    for (std::size_t i = 0; i < rope.keyEnergy.size(); ++i) {
        const double share = rope.keyEnergy[i] - rope.keptEnergy[i];
        map.values.push_back(percent * std::max(share, 0.0));
        lost += map.values.back();
    }
    figure.caption = fixedText(lost, 1) + " % of the layer's key energy no longer rotates with the "
                                          "position; the cells add up to it.";
    figure.heatmap = std::move(map);
    return figure;
}

Figure ropeDistance(const RunRecord& run, std::optional<LayerIndex> layer)
{
    Figure figure;
    figure.id = "distance-" + fileStem(run.id);
    figure.title = "How attention changes with distance when positions are reduced: ";
    if (layer) {
        figure.id += "-layer" + std::to_string(layer->value);
        figure.title += "layer " + std::to_string(layer->value) + ", ";
    }
    figure.title += runLabel(run);
    figure.x = {"Distance between query and key", "tokens", true, {}};
    figure.y = {"Mean change of the attention logit", "", false, {}};
    for (const LayerRecord& record : run.layers) {
        if (!record.rope || (layer && record.layer != *layer))
            continue;
        Series series = distanceSeries(record);
        if (!series.x.empty())
            figure.series.push_back(std::move(series));
    }
    figure.caption = largestResidual(figure);
    return figure;
}

} // namespace mla
