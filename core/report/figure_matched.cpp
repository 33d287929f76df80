// SPDX-License-Identifier: GPL-3.0-or-later
// Figures of matched cells: what functional reconstruction changed, and for which families.
#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "core/report/figure_data.h"
#include "core/report/report_text.h"
#include "core/report/study_cells.h"

namespace mla
{

namespace
{

using CellRefs = std::vector<const StudyCell*>;

/// Cells that share a series: all but pair and task.
struct SeriesKey {
    std::string converter, backend, protocol;
    auto operator<=>(const SeriesKey&) const = default;
};
SeriesKey seriesKey(const StudyCell& cell)
{
    return {cell.cell.key.converter, cell.cell.key.backend, cell.cell.key.protocol};
}

/// In order of first appearance.
template <typename Value, typename Function>
std::vector<Value> distinct(const CellRefs& cells, Function value)
{
    std::vector<Value> values;
    for (const StudyCell* cell : cells)
        if (Value one = value(*cell); std::ranges::find(values, one) == values.end())
            values.push_back(std::move(one));
    return values;
}

std::string taskOf(const StudyCell& cell)
{
    return cell.cell.key.task;
}

/// "k = 4, replay, greedy" in its parts.
std::vector<std::string> splitDetails(const std::string& protocol)
{
    const std::string comma = ", ";
    std::vector<std::string> details;
    for (std::size_t at = 0; at <= protocol.size();) {
        const std::size_t end = std::min(protocol.find(comma, at), protocol.size());
        details.push_back(protocol.substr(at, end - at));
        at = end + comma.size();
    }
    return details;
}

/// What tells the series of a figure apart.
std::string seriesName(const StudyCell& cell, const CellRefs& all)
{
    const auto backends =
        distinct<std::string>(all, [](const auto& c) { return c.cell.key.backend; });
    const auto protocols = distinct<std::string>(all, [](const auto& c) { return c.protocol; });
    std::vector<std::vector<std::string>> details;
    for (const std::string& protocol : protocols)
        details.push_back(splitDetails(protocol));
    std::string name = cell.draft + (backends.size() > 1 ? ", " + cell.cell.key.backend : "");
    for (const std::string& detail : splitDetails(cell.protocol)) {
        const bool shared = std::ranges::all_of(details, [&](const auto& other) {
            return std::ranges::find(other, detail) != other.end();
        });
        // The backend stands there already.
        if (!shared && detail != cell.cell.key.backend)
            name += ", " + detail;
    }
    return name;
}

std::string countsText(const VerdictCounts& counts)
{
    return "+" + std::to_string(counts.gain) + "  =" + std::to_string(counts.unchanged) + "  −" +
           std::to_string(counts.decline);
}

std::string sentence(const VerdictCounts& counts)
{
    return std::to_string(counts.cells()) + " matched cells: " + std::to_string(counts.gain) +
           " gain, " + std::to_string(counts.unchanged) + " unchanged, " +
           std::to_string(counts.decline) + " decline";
}

VerdictCounts countsOf(const CellRefs& cells)
{
    std::vector<MatchedCell> matched;
    for (const StudyCell* cell : cells)
        matched.push_back(cell->cell);
    return summarize(matched).all;
}

Figure deltaFigure(const std::string& pair, const CellRefs& cells)
{
    Figure figure;
    figure.id = "matched-" + fileStem(pair);
    figure.title = "What functional reconstruction changes against partial-rope: " + pair;
    figure.x = {"Task", "", false, distinct<std::string>(cells, taskOf)};
    figure.y = {"Change of acceptance", "pp", false, {}};
    figure.horizontalBand = Band{-materialPp, materialPp};
    std::set<std::string> names;
    for (const SeriesKey& key : distinct<SeriesKey>(cells, seriesKey)) {
        Series series;
        series.kind = Series::Kind::Bars;
        for (const StudyCell* cell : cells) {
            if (seriesKey(*cell) != key)
                continue;
            const auto task = std::ranges::find(figure.x.categories, taskOf(*cell));
            series.name = seriesName(*cell, cells);
            series.x.push_back(static_cast<double>(task - figure.x.categories.begin()));
            series.y.push_back(cell->cell.deltaPp);
            series.low.push_back(cell->cell.deltaLow);
            series.high.push_back(cell->cell.deltaHigh);
        }
        const std::string name = series.name;
        for (int number = 2; !names.insert(series.name).second; ++number)
            series.name = name + " #" + std::to_string(number);
        figure.series.push_back(std::move(series));
    }
    figure.caption = sentence(countsOf(cells)) + "; a change is material beyond the band of ±" +
                     fixedText(materialPp, 1) +
                     " pp. Whiskers show 95 % bootstrap intervals over prompts.";
    return figure;
}

double meanDelta(const CellRefs& cells)
{
    double sum = 0;
    for (const StudyCell* cell : cells)
        sum += cell->cell.deltaPp;
    return cells.empty() ? std::numeric_limits<double>::quiet_NaN()
                         : sum / static_cast<double>(cells.size());
}

std::string cellText(const CellRefs& cells)
{
    if (cells.empty())
        return "no cells";
    const VerdictCounts counts = countsOf(cells);
    return std::string(groupVerdict(counts)) + "\n" + countsText(counts) + "\nmean " +
           signedText(meanDelta(cells), 1) + " pp";
}

CellRefs refs(const StudyCells& cells)
{
    CellRefs all;
    for (const StudyCell& cell : cells.cells)
        all.push_back(&cell);
    return all;
}

} // namespace

std::vector<Figure> matchedDeltas(const StudyCells& cells)
{
    const CellRefs all = refs(cells);
    const auto pairOf = [](const StudyCell& cell) { return cell.cell.key.pair; };
    std::vector<Figure> figures;
    for (const std::string& pair : distinct<std::string>(all, pairOf)) {
        CellRefs own;
        std::ranges::copy_if(all, std::back_inserter(own),
                             [&](const StudyCell* cell) { return pairOf(*cell) == pair; });
        figures.push_back(deltaFigure(pair, own));
    }
    return figures;
}

Figure crossoverGrid(const StudyCells& cells)
{
    const CellRefs all = refs(cells);
    const auto families =
        distinct<std::string>(all, [](const auto& c) { return c.cell.key.family; });
    auto converters =
        distinct<std::string>(all, [](const auto& c) { return c.cell.key.converter; });
    std::ranges::sort(converters);
    Figure figure;
    figure.id = "crossover";
    figure.title = "Where functional reconstruction helps: family and converter";
    figure.x.label = "Converter";
    figure.y.label = "Family";
    if (all.empty())
        return figure;
    Heatmap map{static_cast<int>(families.size()),
                static_cast<int>(converters.size()),
                {},
                "Mean change of acceptance",
                "pp",
                /*diverging=*/true,
                {}};
    figure.y.categories = families;
    for (const std::string& converter : converters)
        figure.x.categories.push_back(converterLabel(converter));
    for (const std::string& family : families)
        for (const std::string& converter : converters) {
            CellRefs group;
            std::ranges::copy_if(all, std::back_inserter(group), [&](const StudyCell* cell) {
                return cell->cell.key.family == family && cell->cell.key.converter == converter;
            });
            map.values.push_back(meanDelta(group));
            map.texts.push_back(cellText(group));
        }
    figure.heatmap = std::move(map);
    figure.caption =
        sentence(countsOf(all)) + ". The paper published " + std::to_string(paperCounts.gain) +
        ", " + std::to_string(paperCounts.unchanged) + " and " +
        std::to_string(paperCounts.decline) + " of " + std::to_string(paperCounts.cells()) + ".";
    return figure;
}

} // namespace mla
