// SPDX-License-Identifier: GPL-3.0-or-later
// The tables themselves; their text forms are in table_text.cpp.
#include "core/report/tables.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "core/report/acceptance_groups.h"
#include "core/report/report_text.h"

namespace mla
{

namespace
{

constexpr double percent = 100;
constexpr auto original = "original";

Cell cellOf(const std::optional<double>& value)
{
    return value ? Cell(*value) : Cell();
}
Cell cellOf(const std::string& text)
{
    return text.empty() ? Cell() : Cell(text);
}

/// What all rows of a table share is left out of its columns.
bool severalMethods(const StudyData& study)
{
    std::set<std::pair<std::string, std::string>> methods;
    for (const AcceptanceRecord& row : study.acceptance) {
        const Protocol protocol = protocolOf(row);
        methods.emplace(protocol.target, protocol.method);
    }
    return methods.size() > 1;
}

/// A draft of the variant table: a run, or the unconverted draft without a run of its own.
struct Draft {
    const RunRecord* run = nullptr;
    std::string id;
    std::string converter, variant, size;
    std::optional<double> error, perplexity;
    std::optional<std::int64_t> cacheElements;
};

Draft draftOf(const RunRecord& run)
{
    Draft draft{&run,
                run.id,
                {},
                run.variant,
                {},
                run.meanRelativeError(),
                finalPerplexity(run),
                run.cacheElements};
    if (run.variant == original) {
        draft.error = draft.error.value_or(0); // by definition
        draft.cacheElements = run.originalCacheElements;
        return draft;
    }
    draft.converter = converterLabel(run.converter);
    draft.size = draftLabel(run);
    return draft;
}

/// The unconverted draft as the conversions know it, if they all come from one checkpoint.
std::optional<Draft> impliedOriginal(const StudyData& study)
{
    if (std::ranges::find(study.runs, original, &RunRecord::variant) != study.runs.end())
        return std::nullopt;
    std::set<std::string> sources;
    for (const RunRecord& run : study.runs)
        sources.insert(run.checkpoint);
    if (study.runs.empty() && rowsOf(study, original).empty())
        return std::nullopt;
    Draft draft;
    draft.id = draft.variant = original;
    draft.error = 0; // by definition
    if (sources.size() != 1)
        return draft;
    draft.cacheElements = study.runs.front().originalCacheElements;
    for (const RunRecord& run : study.runs)
        if (const auto stage = run.stages.find(original);
            !draft.perplexity && stage != run.stages.end())
            draft.perplexity = stage->second.perplexity;
    return draft;
}

std::vector<Draft> draftsOf(const StudyData& study)
{
    std::vector<Draft> drafts;
    if (auto implied = impliedOriginal(study))
        drafts.push_back(std::move(*implied));
    for (const bool wanted : {true, false})
        for (const RunRecord& run : study.runs)
            if ((run.variant == original) == wanted)
                drafts.push_back(draftOf(run));
    return drafts;
}

/// `rows` empty: not measured. All rows are of one protocol.
std::vector<Cell> variantRow(const Draft& draft, const AcceptanceRows& rows, bool withMethod)
{
    std::vector<Cell> cells = {cellOf(draft.converter), draft.variant, cellOf(draft.size),
                               cellOf(draft.error), cellOf(draft.perplexity)};
    if (rows.empty()) {
        cells.insert(cells.end(), {Cell(), Cell(), Cell(), Cell()});
    } else {
        const AcceptanceMetrics pooled = pooledMetrics(rows);
        cells.insert(cells.end(),
                     {Cell(std::int64_t{rows.front()->k}), Cell(percent * pooled.acceptanceRate),
                      Cell(percent * meanTaskRate(rows)), Cell(pooled.meanAcceptanceLength)});
    }
    cells.push_back(draft.cacheElements ? Cell(*draft.cacheElements) : Cell());
    if (withMethod)
        cells.push_back(rows.empty() ? Cell()
                                     : Cell(protocolOf(*rows.front()).target + ", " +
                                            protocolOf(*rows.front()).method));
    return cells;
}

bool sharesX(const Figure& figure)
{
    return std::ranges::all_of(figure.series, [&figure](const Series& series) {
        return series.x == figure.series.front().x && series.low.empty() && series.high.empty();
    });
}

Cell positionCell(const Axis& axis, double x)
{
    if (axis.categories.empty()) {
        const auto whole = static_cast<std::int64_t>(x);
        return static_cast<double>(whole) == x ? Cell(whole) : Cell(x);
    }
    const auto index = static_cast<std::size_t>(x);
    return index < axis.categories.size() ? Cell(axis.categories[index]) : Cell(x);
}

constexpr int figureDecimals = 6;

/// One column per series; they stand at the same positions.
void wideTable(Table& table, const Figure& figure)
{
    table.columns = {{figure.x.label, figure.x.unit, figureDecimals}};
    for (const Series& series : figure.series)
        table.columns.push_back({series.name, figure.y.unit, figureDecimals});
    for (std::size_t i = 0; i < figure.series.front().x.size(); ++i) {
        std::vector<Cell> row = {positionCell(figure.x, figure.series.front().x[i])};
        for (const Series& series : figure.series)
            row.emplace_back(series.y[i]);
        table.rows.push_back(std::move(row));
    }
}

/// One row per point.
void longTable(Table& table, const Figure& figure)
{
    table.columns = {{"Series", "", 0},
                     {figure.x.label, figure.x.unit, figureDecimals},
                     {figure.y.label, figure.y.unit, figureDecimals}};
    const bool intervals = std::ranges::any_of(
        figure.series, [](const Series& series) { return !series.low.empty(); });
    if (intervals)
        table.columns.insert(table.columns.end(), {{"From", figure.y.unit, figureDecimals},
                                                   {"To", figure.y.unit, figureDecimals}});
    for (const Series& series : figure.series)
        for (std::size_t i = 0; i < series.x.size(); ++i) {
            std::vector<Cell> row = {series.name, positionCell(figure.x, series.x[i]), series.y[i]};
            if (intervals) {
                row.push_back(i < series.low.size() ? Cell(series.low[i]) : Cell());
                row.push_back(i < series.high.size() ? Cell(series.high[i]) : Cell());
            }
            table.rows.push_back(std::move(row));
        }
}

void heatmapTable(Table& table, const Figure& figure)
{
    const Heatmap& map = *figure.heatmap;
    table.columns = {{figure.y.label, figure.y.unit, 0},
                     {figure.x.label, figure.x.unit, 0},
                     {map.valueLabel, map.valueUnit, figureDecimals}};
    for (std::size_t i = 0; i < map.values.size(); ++i) {
        const auto cell = static_cast<int>(i);
        table.rows.push_back({positionCell(figure.y, cell / map.columns),
                              positionCell(figure.x, cell % map.columns), map.values[i]});
    }
}

} // namespace

Table variantTable(const StudyData& study)
{
    const bool withMethod = severalMethods(study);
    Table table{"variants", "What each draft keeps of the original", {}, {}};
    table.columns = {{"Converter", "", 0},
                     {"Variant", "", 0},
                     {"Draft", "", 0},
                     {"Mean relative error", "", 3},
                     {"Perplexity", "", 1},
                     {"k", "", 0},
                     {"Acceptance rate", "%", 1},
                     {"Mean of task rates", "%", 1},
                     {"Mean acceptance length", "tokens", 2},
                     {"Cache elements", "per token and layer", 0}};
    if (withMethod)
        table.columns.push_back({"Measured with", "", 0});
    for (const Draft& draft : draftsOf(study)) {
        const AcceptanceRows rows = rowsOf(study, draft.id);
        if (rows.empty())
            table.rows.push_back(variantRow(draft, rows, withMethod));
        for (const Protocol& protocol : protocolsOf(rows)) {
            AcceptanceRows chosen;
            std::ranges::copy_if(rows, std::back_inserter(chosen), [&protocol](const auto* row) {
                return protocolOf(*row) == protocol;
            });
            table.rows.push_back(variantRow(draft, chosen, withMethod));
        }
    }
    return table;
}

Table acceptanceTable(const StudyData& study)
{
    Table table{"acceptance", "Acceptance, one row per measurement", {}, {}};
    table.columns = {{"Target", "", 0},
                     {"Converter", "", 0},
                     {"Variant", "", 0},
                     {"Draft", "", 0},
                     {"Task", "", 0},
                     {"Backend", "", 0},
                     {"Method", "", 0},
                     {"Temperature", "", 2},
                     {"k", "", 0},
                     {"Steps", "", 0},
                     {"Drafted", "tokens", 0},
                     {"Accepted", "tokens", 0},
                     {"Acceptance rate", "%", 1},
                     {"95 % from", "%", 1},
                     {"95 % to", "%", 1},
                     {"Mean acceptance length", "tokens", 3},
                     {"Mean length per prompt", "tokens", 3},
                     {"Speed", "tokens/s", 1},
                     {"Equal to greedy", "", 0}};
    for (const AcceptanceRecord& row : study.acceptance) {
        const RunRecord* run = study.findRun(row.run);
        const AcceptanceMetrics metrics = pooledMetrics({&row});
        const std::optional<bool>& equal = row.identicalToGreedy;
        const bool converted = run && run->variant != original;
        table.rows.push_back(
            {row.target, converted ? cellOf(converterLabel(run->converter)) : Cell(),
             run ? run->variant : row.run, converted ? cellOf(draftLabel(*run)) : Cell(), row.task,
             row.backend, row.method, row.temperature, std::int64_t{row.k}, metrics.steps,
             metrics.draftTokens, metrics.acceptedTokens, percent * metrics.acceptanceRate,
             percent * metrics.rateLow, percent * metrics.rateHigh, metrics.meanAcceptanceLength,
             metrics.perPromptMeanLength, cellOf(row.tokensPerSecond),
             equal ? Cell(std::string(*equal ? "yes" : "no")) : Cell()});
    }
    return table;
}

Table layerTable(const RunRecord& run)
{
    Table table{"layers-" + fileStem(run.id), "Layers of " + runLabel(run), {}, {}};
    table.columns = {{"Layer", "", 0},
                     {"Loss before", "", 6},
                     {"Loss after", "", 6},
                     {"Relative error before", "", 4},
                     {"Relative error after", "", 4},
                     {"Cosine after", "", 4},
                     {"Attention KL after", "nats", 4},
                     {"Retained energy", "%", 1},
                     {"Effective rank", "", 1},
                     {"Converted weights kept", "", 0},
                     {"Time", "s", 2}};
    for (const LayerRecord& layer : run.layers) {
        const auto& [before, after] = std::tie(layer.before, layer.after);
        const auto& spectrum = layer.spectrum;
        table.rows.push_back(
            {std::int64_t{layer.layer.value}, cellOf(layer.lossBefore), cellOf(layer.lossAfter),
             before ? Cell(before->relativeError) : Cell(),
             after ? Cell(after->relativeError) : Cell(), after ? Cell(after->cosine) : Cell(),
             after ? Cell(after->attentionKl) : Cell(),
             spectrum ? Cell(percent * spectrum->retainedEnergy) : Cell(),
             spectrum ? Cell(spectrum->effectiveRank) : Cell(),
             std::string(layer.keptConverted ? "yes" : "no"), layer.seconds});
    }
    return table;
}

Table figureTable(const Figure& figure)
{
    Table table{figure.id, figure.title, {}, {}};
    if (figure.heatmap)
        heatmapTable(table, figure);
    else if (!figure.series.empty() && sharesX(figure))
        wideTable(table, figure);
    else
        longTable(table, figure);
    return table;
}

} // namespace mla
