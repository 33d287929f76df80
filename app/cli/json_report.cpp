// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/json_report.h"

#include <cmath>
#include <cstdint>

#include "app/cli/text.h"

using nlohmann::json;

namespace mla::cli
{
namespace
{

std::optional<double> errorOf(const std::optional<FidelityRecord>& fidelity)
{
    return fidelity ? std::optional(fidelity->relativeError) : std::nullopt;
}

json layerJson(const LayerRecord& layer)
{
    return {{"layer", layer.layer.value},
            {"loss_before", orNull(layer.lossBefore)},
            {"loss_after", orNull(layer.lossAfter)},
            {"relative_error_before", orNull(errorOf(layer.before))},
            {"relative_error_after", orNull(errorOf(layer.after))},
            {"seconds", layer.seconds},
            {"kept_converted", layer.keptConverted}};
}

std::string layerTable(const RunRecord& run)
{
    const bool refined = run.variant != "converted";
    std::vector<TextTable::Column> columns = {{"Layer"}};
    if (refined)
        columns.insert(columns.end(), {{"Loss before"}, {"after"}, {"Error before"}});
    columns.insert(columns.end(), {{refined ? "after" : "Relative error"}, {"Seconds"}});
    if (refined)
        columns.push_back(leftColumn(""));
    TextTable table(std::move(columns));
    constexpr int lossDecimals = 5, errorDecimals = 3, secondDecimals = 1;
    for (const LayerRecord& layer : run.layers) {
        std::vector<std::string> row = {std::to_string(layer.layer.value)};
        if (refined)
            row.insert(row.end(), {number(layer.lossBefore, lossDecimals),
                                   number(layer.lossAfter, lossDecimals),
                                   number(errorOf(layer.before), errorDecimals)});
        row.insert(row.end(), {number(errorOf(layer.after), errorDecimals),
                               number(layer.seconds, secondDecimals)});
        if (refined)
            row.push_back(layer.keptConverted ? "kept as converted" : "");
        table.addRow(std::move(row));
    }
    return table.text();
}

std::string runText(const RunOutcome& outcome)
{
    const RunRecord& run = outcome.run;
    constexpr double percent = 100;
    std::string cache = count(run.cacheElements) + " elements per token and layer";
    if (run.originalCacheElements > 0)
        cache += " (" +
                 number(percent * static_cast<double>(run.cacheElements) /
                            static_cast<double>(run.originalCacheElements),
                        1) +
                 " % of " + count(run.originalCacheElements) + ")";
    return layerTable(run) + "\n" +
           pairs({{"Draft", outcome.output.string()},
                  {"Variant", run.converter + ", " + run.variant},
                  {"Mean error", number(run.meanRelativeError(), 3)},
                  {"KV cache", cache},
                  {"Time", duration(run.seconds)},
                  {"Peak memory", bytes(static_cast<double>(run.peakRssBytes))}});
}

} // namespace

json wholeIfPossible(double value)
{
    constexpr double exact = 9007199254740992.0; // 2^53
    if (std::abs(value) < exact && value == std::floor(value))
        return static_cast<std::int64_t>(value);
    return value;
}

Output runOutput(const RunOutcome& outcome)
{
    const RunRecord& run = outcome.run;
    json layers = json::array();
    for (const LayerRecord& layer : run.layers)
        layers.push_back(layerJson(layer));
    json object = {{"output", outcome.output.string()},
                   {"layers", std::move(layers)},
                   {"seconds", run.seconds},
                   {"peak_rss_bytes", run.peakRssBytes},
                   {"converter", run.converter},
                   {"variant", run.variant},
                   {"mean_relative_error", orNull(run.meanRelativeError())},
                   {"cache_elements_per_token_per_layer", run.cacheElements},
                   {"original_cache_elements_per_token_per_layer", run.originalCacheElements},
                   {"device", run.device},
                   {"warnings", run.warnings}};
    return {std::move(object), runText(outcome), run.warnings};
}

json summaryJson(const StudyOutcome& outcome)
{
    json rows = json::array();
    for (const SummaryRow& row : outcome.rows)
        rows.push_back({{"converter", row.converter},
                        {"variant", row.variant},
                        {"mean_relative_error", row.meanRelativeError},
                        {"perplexity", row.perplexity},
                        {"acceptance_rate", row.acceptanceRate},
                        {"mean_acceptance_length", row.meanAcceptanceLength},
                        {"cache_elements_per_token_per_layer",
                         wholeIfPossible(row.cacheElementsPerTokenPerLayer)}});
    json gains = json::object();
    for (const auto& [converter, gain] : outcome.functionalGainPp)
        gains[converter] = gain;
    return {{"rows", std::move(rows)}, {"functional_gain_pp", std::move(gains)}};
}

std::string summaryText(const StudyOutcome& outcome)
{
    TextTable table({leftColumn("Converter"),
                     leftColumn("Variant"),
                     {"Error"},
                     {"Perplexity"},
                     {"Acceptance (%)"},
                     {"Mean length"},
                     {"Cache elements"}});
    constexpr double percent = 100;
    for (const SummaryRow& row : outcome.rows)
        table.addRow({row.converter == "none" ? "-" : row.converter, row.variant,
                      number(row.meanRelativeError, 3), number(row.perplexity, 2),
                      number(percent * row.acceptanceRate, 1), number(row.meanAcceptanceLength, 2),
                      number(row.cacheElementsPerTokenPerLayer, 0)});
    std::string text = table.text() + "\nError: relative error of the attention outputs, mean over "
                                      "layers. Cache: elements per token and layer.\n";
    for (const auto& [converter, gain] : outcome.functionalGainPp)
        text += converter + ": functional reconstruction " + (gain >= 0 ? "gains " : "loses ") +
                number(std::abs(gain), 1) + " percentage points of acceptance over partial-rope\n";
    return text;
}

Result<StudyOutcome> summaryFromJson(const json& summary, const std::string& origin)
{
    try {
        StudyOutcome outcome;
        for (const json& row : summary.at("rows"))
            outcome.rows.push_back({row.at("converter"), row.at("variant"),
                                    row.at("mean_relative_error"), row.at("perplexity"),
                                    row.at("acceptance_rate"), row.at("mean_acceptance_length"),
                                    row.at("cache_elements_per_token_per_layer")});
        for (const auto& [converter, gain] : summary.at("functional_gain_pp").items())
            outcome.functionalGainPp[converter] = gain;
        return outcome;
    } catch (const json::exception& problem) {
        return badInput(std::string("not a summary of a demo: ") + problem.what(), origin,
                        "--overwrite runs the demo again");
    }
}

} // namespace mla::cli
