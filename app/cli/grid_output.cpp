// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/grid_output.h"

#include <algorithm>
#include <map>

#include "app/cli/json_report.h"
#include "app/cli/text.h"
#include "core/report/report_text.h"

using nlohmann::json;

namespace mla::cli
{
namespace
{

constexpr double percent = 100;

json rowJson(const GridPlan& plan, const GridRow& row)
{
    const GridPair& pair = plan.file.pairs[row.pair];
    return {{"pair", pair.name},
            {"family", pair.family},
            {"target", pair.target.string()},
            {"draft", pair.draft.string()},
            {"converter", plan.file.converters[row.converter].name},
            {"variant", row.variant},
            {"backend", row.backend},
            {"task", row.task}};
}

std::string sizeText(const GridPlan& plan)
{
    const GridFile& file = plan.file;
    return file.name + ": " + count(static_cast<std::int64_t>(plan.rows.size())) +
           " configurations, " + count(plan.matchedCells) + " matched cells\n(" +
           std::to_string(file.pairs.size()) + " pairs x " +
           std::to_string(file.converters.size()) + " converters x " +
           std::to_string(file.variants.size()) + " variants x " +
           std::to_string(file.backends.size()) + " backends x " +
           std::to_string(file.tasks.size()) + " tasks)\n\n";
}

/// One line for all tasks of a draft in a backend.
std::string configurationsText(const GridPlan& plan, const std::vector<bool>& ready)
{
    TextTable table({leftColumn("Pair"),
                     leftColumn("Converter"),
                     leftColumn("Variant"),
                     leftColumn("Backend"),
                     leftColumn("Tasks"),
                     {"Can run now"}});
    const std::size_t tasks = plan.file.tasks.size();
    for (std::size_t i = 0; i < plan.rows.size(); i += tasks) {
        const GridRow& row = plan.rows[i];
        std::string names;
        for (const std::string& task : plan.file.tasks)
            names += (names.empty() ? "" : " ") + task;
        const auto begin = ready.begin() + static_cast<std::ptrdiff_t>(i);
        const auto able = std::count(begin, begin + static_cast<std::ptrdiff_t>(tasks), true);
        table.addRow({plan.file.pairs[row.pair].name, plan.file.converters[row.converter].name,
                      row.variant, row.backend, names,
                      std::to_string(able) + " of " + std::to_string(tasks)});
    }
    return table.text();
}

std::string lacksText(const std::vector<GridLack>& lacks)
{
    if (lacks.empty())
        return "\nNothing is missing.\n";
    std::string text = "\nMissing:\n";
    for (const GridLack& lack : lacks)
        text += "  " + lack.what + " " + lack.name + ": " + lack.problem + "\n";
    return text;
}

/// "+1.2", with a sign even where it is nothing.
std::string difference(std::optional<double> value, int decimals)
{
    const std::string text = number(value, decimals);
    return !value || text == "-" || text.front() == '-' ? text : "+" + text;
}

std::string share(std::optional<double> value)
{
    return value ? number(percent * *value, 1) : "-";
}

std::string matchedText(const StudyCells& cells)
{
    TextTable table({leftColumn("Pair"),
                     leftColumn("Converter"),
                     leftColumn("Backend"),
                     leftColumn("Task"),
                     {"Original"},
                     {"Converted"},
                     {"Partial-rope"},
                     {"Functional"},
                     {"Change (pp)"},
                     leftColumn("95 % interval"),
                     leftColumn("Verdict"),
                     {"Recovery (%)"},
                     {"Speed (%)"}});
    for (const StudyCell& row : cells.cells) {
        const MatchedCell& cell = row.cell;
        table.addRow({cell.key.pair, cell.key.converter, cell.key.backend, cell.key.task,
                      share(cell.originalRate), share(cell.convertedRate), share(cell.baselineRate),
                      share(cell.functionalRate), difference(cell.deltaPp, 1),
                      difference(cell.deltaLow, 1) + " to " + difference(cell.deltaHigh, 1),
                      std::string(verdictName(cell.verdict)),
                      cell.recovery ? number(percent * *cell.recovery, 0) : "-",
                      difference(cell.throughputPercent, 1) +
                          (cell.throughputMaterial.value_or(false) ? " *" : "")});
    }
    return "Matched cells: acceptance in % of drafted tokens; change = functional - partial-rope;\n"
           "* = beyond the spread of repeated runs\n\n" +
           table.text() + "\n";
}

std::vector<std::string> countCells(const std::string& family, const std::string& converter,
                                    const VerdictCounts& counts, const std::string& verdict)
{
    return {family,
            converter,
            std::to_string(counts.gain),
            std::to_string(counts.unchanged),
            std::to_string(counts.decline),
            std::to_string(counts.gainWithThroughput),
            verdict};
}

std::string countsText(const MatchedSummary& summary)
{
    TextTable table({leftColumn("Family"),
                     leftColumn("Converter"),
                     {"Gain"},
                     {"Unchanged"},
                     {"Decline"},
                     {"Gain with speed"},
                     leftColumn("Verdict")});
    for (const auto& [group, counts] : summary.crossover)
        table.addRow(
            countCells(group.first, group.second, counts, std::string(groupVerdict(counts))));
    table.addRow(countCells("all", "all", summary.all, ""));
    for (const PublishedVerdict& published : paperCrossover)
        table.addRow({std::string(published.family), std::string(published.converter), "", "", "",
                      "", "the paper: " + std::string(published.verdict)});
    table.addRow(countCells("all", "all", paperCounts, "the paper"));
    return "Counts by family and converter; the lines of the paper are what it published, not "
           "measured here\n\n" +
           table.text() + "\n";
}

json countsJson(const VerdictCounts& counts)
{
    return {{"gain", counts.gain},
            {"unchanged", counts.unchanged},
            {"decline", counts.decline},
            {"gain_with_throughput", counts.gainWithThroughput}};
}

json cellJson(const StudyCell& row)
{
    const MatchedCell& cell = row.cell;
    return {{"pair", cell.key.pair},
            {"family", cell.key.family},
            {"converter", cell.key.converter},
            {"backend", cell.key.backend},
            {"task", cell.key.task},
            {"protocol", row.protocol},
            {"prompts", row.prompts},
            {"original", orNull(cell.originalRate)},
            {"converted", orNull(cell.convertedRate)},
            {"partial_rope", cell.baselineRate},
            {"functional", cell.functionalRate},
            {"delta_pp", cell.deltaPp},
            {"delta_interval", {cell.deltaLow, cell.deltaHigh}},
            {"verdict", std::string(verdictName(cell.verdict))},
            {"recovery", orNull(cell.recovery)},
            {"throughput_percent", orNull(cell.throughputPercent)},
            {"throughput_material", orNull(cell.throughputMaterial)}};
}

json paperJson()
{
    json published = countsJson(paperCounts);
    published["source"] = "as published in the paper, not measured here";
    for (const PublishedVerdict& verdict : paperCrossover)
        published["crossover"].push_back({{"family", verdict.family},
                                          {"converter", verdict.converter},
                                          {"verdict", verdict.verdict}});
    return published;
}

/// Failed rows with one reason are one line.
std::string failuresText(const GridPlan& plan, const GridProgress& progress)
{
    std::map<std::string, int> reasons;
    std::string text;
    for (std::size_t i = 0; i < plan.rows.size(); ++i) {
        const GridRow& row = plan.rows[i];
        if (progress.rows[i].state != GridRowState::State::Failed)
            continue;
        text += "  " + plan.file.pairs[row.pair].name + ", " +
                plan.file.converters[row.converter].name + ", " + row.variant + ", " + row.backend +
                ", " + row.task + ": " + progress.rows[i].error + "\n";
    }
    return text.empty() ? text : "Failed rows:\n" + text + "\n";
}

} // namespace

Output describePlan(const GridPlan& plan, const std::vector<GridLack>& lacks)
{
    Output output;
    json rows = json::array(), missing = json::array();
    std::vector<bool> ready;
    for (const GridRow& row : plan.rows) {
        json object = rowJson(plan, row);
        object["missing"] = json::array();
        for (const std::size_t lack : lacksOf(plan, row, lacks))
            object["missing"].push_back(lacks[lack].what + " " + lacks[lack].name);
        ready.push_back(object["missing"].empty());
        rows.push_back(std::move(object));
    }
    for (const GridLack& lack : lacks)
        missing.push_back({{"what", lack.what}, {"name", lack.name}, {"problem", lack.problem}});
    const auto able = std::count(ready.begin(), ready.end(), true);
    output.json = {{"grid", plan.file.name},
                   {"configurations", plan.rows.size()},
                   {"matched_cells", plan.matchedCells},
                   {"ready", able},
                   {"missing", std::move(missing)},
                   {"rows", std::move(rows)}};
    output.text = sizeText(plan) + configurationsText(plan, ready) + lacksText(lacks) +
                  count(able) + " of " + count(static_cast<std::int64_t>(plan.rows.size())) +
                  " configurations can run now.\n";
    return output;
}

Output describeResults(const GridPlan& plan, const GridProgress& progress, const StudyCells& cells,
                       const std::filesystem::path& study)
{
    Output output;
    json rows = json::array(), matched = json::array(), crossover = json::array();
    for (std::size_t i = 0; i < plan.rows.size(); ++i) {
        rows.push_back(rowJson(plan, plan.rows[i]));
        rows.back()["state"] = std::string(stateName(progress.rows[i].state));
        if (!progress.rows[i].error.empty())
            rows.back()["error"] = progress.rows[i].error;
    }
    for (const StudyCell& cell : cells.cells)
        matched.push_back(cellJson(cell));
    const MatchedSummary summary = cells.summary();
    for (const auto& [group, counts] : summary.crossover) {
        crossover.push_back(countsJson(counts));
        crossover.back()["family"] = group.first;
        crossover.back()["converter"] = group.second;
        crossover.back()["verdict"] = std::string(groupVerdict(counts));
    }
    const auto total = static_cast<std::int64_t>(plan.rows.size());
    output.json = {{"grid", plan.file.name},
                   {"configurations", total},
                   {"matched_cells", plan.matchedCells},
                   {"done", progress.done},
                   {"failed", progress.failed},
                   {"study", study.string()},
                   {"rows", std::move(rows)},
                   {"cells", std::move(matched)},
                   {"counts", countsJson(summary.all)},
                   {"crossover", std::move(crossover)},
                   {"paper", paperJson()}};
    if (!cells.cells.empty())
        output.text = matchedText(cells) + countsText(summary);
    output.text += failuresText(plan, progress) + count(progress.done) + " of " + count(total) +
                   " configurations are measured, " + count(progress.failed) + " failed, " +
                   count(total - progress.done - progress.failed) +
                   " wait.\nStudy: " + study.string() + "\n";
    if (progress.failed > 0)
        output.warnings.push_back(count(progress.failed) +
                                  " configurations failed; --resume tries them again");
    return output;
}

} // namespace mla::cli
