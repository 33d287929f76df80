// SPDX-License-Identifier: GPL-3.0-or-later
// Figures of what `fidelity` measures on demand: error sources, positions, attention maps.
#include <algorithm>
#include <array>
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

using SourceMember = std::optional<FidelityRecord> ErrorSourcesRecord::*;

/// Relative errors of one source, layers in order; gaps where it is absent.
Series sourceSeries(const RunRecord& run, SourceMember member)
{
    std::vector<const LayerRecord*> layers;
    for (const LayerRecord& layer : run.layers)
        if (layer.sources.any())
            layers.push_back(&layer);
    std::ranges::sort(layers, {}, &LayerRecord::layer);
    Series series;
    series.kind = Series::Kind::Bars;
    for (const LayerRecord* layer : layers) {
        const auto& fidelity = layer->sources.*member;
        series.x.push_back(layer->layer.value);
        series.y.push_back(fidelity ? fidelity->relativeError : missing);
    }
    return series;
}

std::string bucketText(const PositionBucket& bucket)
{
    return std::to_string(bucket.first) + "–" + std::to_string(bucket.last);
}

/// A frame whose x axis has the run's buckets.
Figure positionFigure(const RunRecord& run, const std::string& stem, const std::string& title)
{
    Figure figure;
    figure.id = stem + "-" + fileStem(run.id);
    figure.title = title + runLabel(run);
    figure.x = {"Position in the text", "tokens", false, {}};
    if (run.positions)
        for (const PositionBucket& bucket : run.positions->buckets)
            figure.x.categories.push_back(bucketText(bucket));
    return figure;
}

Series bucketSeries(const PositionScores& scores, double PositionBucket::*member)
{
    Series series;
    series.kind = Series::Kind::Bars;
    for (std::size_t i = 0; i < scores.buckets.size(); ++i) {
        series.x.push_back(static_cast<double>(i));
        series.y.push_back(scores.buckets[i].*member);
    }
    return series;
}

std::string countsText(const PositionScores& scores)
{
    std::string text;
    for (const PositionBucket& bucket : scores.buckets)
        text += (text.empty() ? "" : ", ") + std::to_string(bucket.tokens);
    return "Predictions in each bucket: " + text + ".";
}

/// "3 the", with characters that break a line made visible.
std::string tokenLabel(std::size_t position, const std::string& token)
{
    std::string label = std::to_string(position) + " ";
    for (const char c : token) {
        if (c == '\n')
            label += "↵";
        else
            label += static_cast<unsigned char>(c) < ' ' ? '?' : c;
    }
    return label;
}

enum class MapPart { Original, Draft, Difference };

std::string partName(MapPart part)
{
    return part == MapPart::Original ? "original" : part == MapPart::Draft ? "draft" : "difference";
}

/// The first query at the top: rows of a heat map count from the bottom.
Heatmap heatmapOf(const std::vector<double>& values, std::size_t length)
{
    Heatmap map;
    map.rows = map.columns = static_cast<int>(length);
    for (std::size_t row = length; row-- > 0;) {
        const auto first = values.begin() + static_cast<std::ptrdiff_t>(row * length);
        map.values.insert(map.values.end(), first, first + static_cast<std::ptrdiff_t>(length));
    }
    return map;
}

bool fits(const AttentionMapRecord& map)
{
    const std::size_t cells = map.tokens.size() * map.tokens.size();
    return cells > 0 && map.original.size() == cells && map.draft.size() == cells;
}

double largest(const std::vector<double>& values)
{
    return *std::ranges::max_element(values);
}

/// Half the mean over queries of sum |difference|: 0 = the same, 1 = nothing in common.
double totalVariation(const AttentionMapRecord& map)
{
    double sum = 0;
    for (const double value : map.difference())
        sum += std::abs(value);
    return sum / 2 / static_cast<double>(map.tokens.size());
}

std::string mapTitle(MapPart part, const AttentionMapRecord& map)
{
    const std::string what = part == MapPart::Original ? "Original's attention"
                             : part == MapPart::Draft  ? "Draft's attention"
                                                       : "Change of attention";
    return what + ", layer " + std::to_string(map.layer.value) + ", head " +
           std::to_string(map.head.value);
}

Figure mapFigure(const RunRecord& run, const AttentionMapRecord& map, MapPart part)
{
    Figure figure;
    figure.id = "attention-" + fileStem(run.id) + "-layer" + std::to_string(map.layer.value) +
                "-head" + std::to_string(map.head.value) + "-" + partName(part);
    figure.title = mapTitle(part, map) + ": " + runLabel(run);
    figure.x = {"Key", "", false, {}};
    figure.y = {"Query", "", false, {}};
    const std::size_t length = map.tokens.size();
    for (std::size_t i = 0; i < length; ++i) {
        figure.x.categories.push_back(tokenLabel(i, map.tokens[i]));
        figure.y.categories.push_back(tokenLabel(length - 1 - i, map.tokens[length - 1 - i]));
    }
    figure.caption = "In the mean over the queries " + fixedText(100 * totalVariation(map), 1) +
                     " % of the draft's attention goes elsewhere.";
    if (part == MapPart::Difference) {
        figure.heatmap = heatmapOf(map.difference(), length);
        figure.heatmap->valueLabel = "Probability, draft − original";
        figure.heatmap->diverging = true;
        return figure;
    }
    figure.heatmap = heatmapOf(part == MapPart::Original ? map.original : map.draft, length);
    figure.heatmap->valueLabel = "Attention probability";
    figure.heatmap->range = Band{0, std::max(largest(map.original), largest(map.draft))};
    return figure;
}

} // namespace

Figure errorSources(const RunRecord& run)
{
    Figure figure;
    figure.id = "sources-" + fileStem(run.id);
    figure.title = "Where the error of each attention block comes from: " + runLabel(run);
    figure.x = {"Layer", "", false, {}};
    figure.y = {"Relative error of the attention output", "", false, {}};
    struct Source {
        std::string name, role;
        SourceMember member;
    };
    // The first two take the tones that no variant of a draft has.
    for (const Source& source :
         {Source{"rotary alone", "train", &ErrorSourcesRecord::ropeOnly},
          Source{"low rank alone", "heldout", &ErrorSourcesRecord::rankOnly},
          Source{"both", "converted", &ErrorSourcesRecord::both},
          Source{"after refinement", run.variant, &ErrorSourcesRecord::refined}}) {
        Series series = sourceSeries(run, source.member);
        if (!std::isfinite(meanOfFinite(series.y)))
            continue;
        series.name = source.name;
        series.role = source.role;
        figure.caption += (figure.caption.empty() ? "Mean relative error: " : ", ") + series.name +
                          " " + fixedText(meanOfFinite(series.y), 3);
        figure.series.push_back(std::move(series));
    }
    if (figure.series.empty())
        return figure;
    figure.caption += ".";
    if (run.errorSources && !run.errorSources->noConversion.empty())
        figure.caption += " Parts are absent: " + run.errorSources->noConversion + ".";
    return figure;
}

Figure positionKl(const RunRecord& run)
{
    Figure figure =
        positionFigure(run, "positions-kl", "How far predictions are apart along the text: ");
    figure.y = {"KL(original ‖ draft) of the next token", "nats", false, {}};
    if (!run.positions || run.positions->buckets.empty())
        return figure;
    Series series = bucketSeries(*run.positions, &PositionBucket::kl);
    series.name = run.variant;
    series.role = run.variant;
    figure.series.push_back(std::move(series));
    figure.caption = countsText(*run.positions);
    return figure;
}

Figure positionPerplexity(const RunRecord& run)
{
    Figure figure = positionFigure(run, "positions-perplexity", "Perplexity along the text: ");
    figure.y = {"Perplexity", "", false, {}}; // bars show sizes: from zero
    if (!run.positions || run.positions->buckets.empty())
        return figure;
    Series original = bucketSeries(*run.positions, &PositionBucket::originalPerplexity);
    original.name = original.role = "original";
    Series draft = bucketSeries(*run.positions, &PositionBucket::perplexity);
    draft.name = draft.role = run.variant;
    figure.series = {std::move(original), std::move(draft)};
    figure.caption = countsText(*run.positions);
    return figure;
}

std::vector<Figure> attentionMaps(const RunRecord& run, const AttentionMapRecord& map)
{
    if (!fits(map))
        return {};
    std::vector<Figure> figures;
    for (const MapPart part : {MapPart::Original, MapPart::Draft, MapPart::Difference})
        figures.push_back(mapFigure(run, map, part));
    return figures;
}

} // namespace mla
