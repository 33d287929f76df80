// SPDX-License-Identifier: GPL-3.0-or-later
// Tables of matched cells: each cell, the crossover of families and converters, the paper's result.
#include <algorithm>
#include <set>

#include "core/report/report_text.h"
#include "core/report/study_cells.h"
#include "core/report/tables.h"

namespace mla
{

namespace
{

constexpr double percent = 100;
constexpr auto all = "all";

Cell cellOf(const std::optional<double>& value, double factor = 1)
{
    return value ? Cell(factor * *value) : Cell();
}

/// What all cells share is left out of the columns.
struct Extras {
    bool protocol = false, seeds = false;
};

Extras extrasOf(const StudyCells& cells)
{
    std::set<std::string> protocols;
    Extras extras;
    for (const StudyCell& cell : cells.cells) {
        protocols.insert(cell.protocol);
        extras.seeds = extras.seeds || cell.seeds > 1;
    }
    extras.protocol = protocols.size() > 1;
    return extras;
}

std::vector<Column> matchedColumns(const Extras& extras)
{
    std::vector<Column> columns = {{"Pair", "", 0},
                                   {"Converter", "", 0},
                                   {"Draft", "", 0},
                                   {"Backend", "", 0},
                                   {"Task", "", 0},
                                   {"Functional − partial-rope", "pp", 1, true},
                                   {"95 % from", "pp", 1, true},
                                   {"95 % to", "pp", 1, true},
                                   {"Verdict", "", 0},
                                   {"Original", "%", 1},
                                   {"Converted", "%", 1},
                                   {"Partial-rope", "%", 1},
                                   {"Functional", "%", 1},
                                   {"Functional − converted", "pp", 1, true},
                                   {"95 % from (converted)", "pp", 1, true},
                                   {"95 % to (converted)", "pp", 1, true},
                                   {"Recovery", "%", 1},
                                   {"Throughput", "%", 1, true},
                                   {"Beyond its spread", "", 0},
                                   {"Prompts", "", 0}};
    if (extras.seeds)
        columns.insert(columns.end(), {{"Seeds", "", 0}, {"Deviation over seeds", "pp", 2}});
    if (extras.protocol)
        columns.push_back({"Measured with", "", 0});
    return columns;
}

std::vector<Cell> matchedRow(const StudyCell& row, const Extras& extras)
{
    const MatchedCell& cell = row.cell;
    std::vector<Cell> cells = {cell.key.pair,
                               converterLabel(cell.key.converter),
                               row.draft,
                               cell.key.backend,
                               cell.key.task,
                               cell.deltaPp,
                               cell.deltaLow,
                               cell.deltaHigh,
                               std::string(verdictName(cell.verdict)),
                               cellOf(cell.originalRate, percent),
                               cellOf(cell.convertedRate, percent),
                               percent * cell.baselineRate,
                               percent * cell.functionalRate,
                               cellOf(row.overConverted),
                               cellOf(row.overConvertedLow),
                               cellOf(row.overConvertedHigh),
                               cellOf(cell.recovery, percent),
                               cellOf(cell.throughputPercent),
                               cell.throughputMaterial
                                   ? Cell(std::string(*cell.throughputMaterial ? "yes" : "no"))
                                   : Cell(),
                               std::int64_t{row.prompts}};
    if (extras.seeds)
        cells.insert(cells.end(), {Cell(std::int64_t{row.seeds}), cellOf(row.sd)});
    if (extras.protocol)
        cells.emplace_back(row.protocol);
    return cells;
}

std::vector<Column> countColumns()
{
    return {{"Family", "", 0}, {"Converter", "", 0}, {"Cells", "", 0},
            {"Gain", "", 0},   {"Unchanged", "", 0}, {"Decline", "", 0}};
}

std::vector<Cell> countRow(const std::string& family, const std::string& converter,
                           const VerdictCounts& counts)
{
    return {family,
            converter,
            std::int64_t{counts.cells()},
            std::int64_t{counts.gain},
            std::int64_t{counts.unchanged},
            std::int64_t{counts.decline},
            std::int64_t{counts.gainWithThroughput},
            std::string(groupVerdict(counts))};
}

Cell publishedVerdict(const std::string& family, const std::string& converter)
{
    for (const PublishedVerdict& published : paperCrossover)
        if (published.family == family && published.converter == converter)
            return std::string(published.verdict);
    return {};
}

std::string capitalized(std::string_view word)
{
    std::string text(word);
    if (!text.empty() && text.front() >= 'a' && text.front() <= 'z')
        text.front() = static_cast<char>(text.front() - 'a' + 'A');
    return text;
}

} // namespace

Table matchedTable(const StudyCells& cells)
{
    Table table{"matched", "Functional reconstruction in matched cells", {}, {}};
    const Extras extras = extrasOf(cells);
    table.columns = matchedColumns(extras);
    for (const StudyCell& cell : cells.cells)
        table.rows.push_back(matchedRow(cell, extras));
    return table;
}

Table crossoverTable(const StudyCells& cells)
{
    Table table{"crossover", "Matched cells by family and converter", countColumns(), {}};
    table.columns.insert(
        table.columns.end(),
        {{"Gain with throughput", "", 0}, {"Verdict", "", 0}, {"Published in the paper", "", 0}});
    const MatchedSummary summary = cells.summary();
    for (const auto& [group, counts] : summary.crossover) {
        const auto& [family, converter] = group;
        table.rows.push_back(countRow(capitalized(family), converterLabel(converter), counts));
        table.rows.back().push_back(publishedVerdict(family, converter));
    }
    table.rows.push_back(countRow(all, all, summary.all));
    table.rows.back().emplace_back();
    return table;
}

Table paperTable()
{
    Table table{"paper",
                "As published in the paper, for comparison; not measured here",
                countColumns(),
                {}};
    table.columns.insert(table.columns.end(),
                         {{"Gain with throughput", "", 0}, {"Verdict", "", 0}});
    for (const PublishedVerdict& published : paperCrossover)
        table.rows.push_back({capitalized(published.family),
                              converterLabel(std::string(published.converter)), Cell(), Cell(),
                              Cell(), Cell(), Cell(), std::string(published.verdict)});
    table.rows.push_back(countRow(all, all, paperCounts));
    table.rows.back().back() = Cell(); // the paper words no verdict on all cells
    return table;
}

std::vector<Table> allTables(const StudyData& study)
{
    std::vector<Table> tables = {variantTable(study), acceptanceTable(study)};
    if (const StudyCells cells = studyCells(study); !cells.cells.empty()) {
        tables.push_back(matchedTable(cells));
        tables.push_back(crossoverTable(cells));
        tables.push_back(paperTable());
    }
    for (const RunRecord& run : study.runs)
        tables.push_back(layerTable(run));
    return tables;
}

} // namespace mla
