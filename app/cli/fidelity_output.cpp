// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/fidelity_output.h"

#include <algorithm>
#include <array>

#include "app/cli/json_report.h"
#include "app/cli/text.h"

using nlohmann::json;

namespace mla::cli
{
namespace
{

constexpr int kDecimals = 4;

json blocksJson(const FidelityReport& report)
{
    json layers = json::array();
    for (const LayerRecord& layer : report.layers) {
        const FidelityRecord fidelity = layer.after.value_or(FidelityRecord{});
        layers.push_back({{"layer", layer.layer.value},
                          {"relative_error", fidelity.relativeError},
                          {"cosine", fidelity.cosine},
                          {"attention_kl", fidelity.attentionKl}});
    }
    return layers;
}

std::string blocksText(const FidelityReport& report)
{
    TextTable table({{"Layer"}, {"Relative error"}, {"Cosine"}, {"Attention KL (nats)"}});
    for (const LayerRecord& layer : report.layers) {
        const FidelityRecord fidelity = layer.after.value_or(FidelityRecord{});
        table.addRow({std::to_string(layer.layer.value), number(fidelity.relativeError, kDecimals),
                      number(fidelity.cosine, kDecimals), number(fidelity.attentionKl, kDecimals)});
    }
    return table.text() + "\nMean relative error " + number(report.meanRelativeError, kDecimals) +
           "\n";
}

struct Source {
    const char *key, *title;
    std::optional<FidelityRecord> ErrorSourcesRecord::*member;
};
constexpr std::array<Source, 4> kSources = {{
    {"rope_only", "Rotary alone", &ErrorSourcesRecord::ropeOnly},
    {"rank_only", "Low rank alone", &ErrorSourcesRecord::rankOnly},
    {"both", "Both", &ErrorSourcesRecord::both},
    {"refined", "Refined", &ErrorSourcesRecord::refined},
}};

std::optional<double> errorOf(const LayerRecord& layer, const Source& source)
{
    const auto& fidelity = layer.sources.*source.member;
    return fidelity ? std::optional(fidelity->relativeError) : std::nullopt;
}

/// Relative errors; null with the reason in `absent`.
json sourcesJson(const ErrorSourcesReport& report)
{
    json layers = json::array();
    for (const LayerRecord& layer : report.layers) {
        json row = {{"layer", layer.layer.value}};
        for (const Source& source : kSources)
            row[source.key] = orNull(errorOf(layer, source));
        layers.push_back(std::move(row));
    }
    json absent = json::object();
    if (!report.note.noConversion.empty())
        absent["conversion"] = report.note.noConversion;
    if (!report.note.noRefinement.empty())
        absent["refined"] = report.note.noRefinement;
    return {{"measured_on", report.note.measuredOn},
            {"layers", std::move(layers)},
            {"absent", std::move(absent)}};
}

std::string sourcesText(const ErrorSourcesReport& report)
{
    std::vector<TextTable::Column> columns = {{"Layer"}};
    for (const Source& source : kSources)
        columns.push_back({source.title});
    TextTable table(std::move(columns));
    for (const LayerRecord& layer : report.layers) {
        std::vector<std::string> row = {std::to_string(layer.layer.value)};
        for (const Source& source : kSources)
            row.push_back(number(errorOf(layer, source), kDecimals));
        table.addRow(std::move(row));
    }
    std::string text = "\nRelative error by source\n" + table.text();
    if (!report.note.noConversion.empty())
        text += "Parts of the conversion: " + report.note.noConversion + "\n";
    if (!report.note.noRefinement.empty())
        text += "Refined: " + report.note.noRefinement + "\n";
    return text;
}

json bucketJson(const PositionBucket& bucket)
{
    return {{"first", bucket.first},           {"last", bucket.last},
            {"tokens", bucket.tokens},         {"original_perplexity", bucket.originalPerplexity},
            {"perplexity", bucket.perplexity}, {"kl", bucket.kl}};
}

json positionsJson(const PositionScores& scores)
{
    json object = bucketJson(allPositions(scores));
    object["source"] = scores.source;
    object["buckets"] = json::array();
    for (const PositionBucket& bucket : scores.buckets)
        object["buckets"].push_back(bucketJson(bucket));
    return object;
}

void addBucket(TextTable& table, const std::string& name, const PositionBucket& bucket)
{
    table.addRow({name, count(bucket.tokens), number(bucket.originalPerplexity, 3),
                  number(bucket.perplexity, 3), number(bucket.kl, kDecimals)});
}

std::string positionsText(const PositionScores& scores)
{
    TextTable table(
        {{"Position"}, {"Tokens"}, {"Original perplexity"}, {"Perplexity"}, {"KL (nats)"}});
    for (const PositionBucket& bucket : scores.buckets)
        addBucket(table, std::to_string(bucket.first) + "-" + std::to_string(bucket.last), bucket);
    addBucket(table, "all", allPositions(scores));
    return "\nPredictions by position in the text (" + scores.source + ")\n" + table.text();
}

/// [T][T] of a flat map.
json rows(const std::vector<double>& values, std::size_t length)
{
    json all = json::array();
    for (std::size_t row = 0; row < length; ++row) {
        const auto first = values.begin() + static_cast<std::ptrdiff_t>(row * length);
        all.push_back(std::vector<double>(first, first + static_cast<std::ptrdiff_t>(length)));
    }
    return all;
}

json mapJson(const AttentionMapRecord& map)
{
    return {{"layer", map.layer.value},
            {"head", map.head.value},
            {"prompt", map.prompt},
            {"tokens", map.tokens},
            {"original", rows(map.original, map.tokens.size())},
            {"draft", rows(map.draft, map.tokens.size())},
            {"difference", rows(map.difference(), map.tokens.size())}};
}

/// What each token attends to most, in both.
std::string mapText(const AttentionMapRecord& map)
{
    const std::size_t length = map.tokens.size();
    TextTable table({leftColumn("Token"),
                     leftColumn("Original attends most to"),
                     {"share"},
                     leftColumn("Draft attends most to"),
                     {"share"}});
    const auto most = [&](const std::vector<double>& values, std::size_t row) {
        const auto first = values.begin() + static_cast<std::ptrdiff_t>(row * length);
        const auto best =
            std::max_element(first, first + static_cast<std::ptrdiff_t>(length)); // of the row
        return std::pair{printable(map.tokens[static_cast<std::size_t>(best - first)]),
                         number(*best, 3)};
    };
    for (std::size_t row = 0; row < length; ++row) {
        const auto [ofOriginal, originalShare] = most(map.original, row);
        const auto [ofDraft, draftShare] = most(map.draft, row);
        table.addRow({printable(map.tokens[row]), ofOriginal, originalShare, ofDraft, draftShare});
    }
    return "\nAttention of layer " + std::to_string(map.layer.value) + ", head " +
           std::to_string(map.head.value) + "\n" + table.text();
}

} // namespace

Output fidelityOutput(const FidelityResults& results)
{
    Output output{{{"layers", blocksJson(results.report)},
                   {"mean_relative_error", results.report.meanRelativeError}},
                  blocksText(results.report),
                  {}};
    if (results.sources) {
        output.json["error_sources"] = sourcesJson(*results.sources);
        output.text += sourcesText(*results.sources);
    }
    if (results.positions) {
        output.json["positions"] = positionsJson(*results.positions);
        output.text += positionsText(*results.positions);
    }
    if (results.maps.empty())
        return output;
    output.json["attention_maps"] = json::array();
    for (const AttentionMapRecord& map : results.maps) {
        output.json["attention_maps"].push_back(mapJson(map));
        output.text += mapText(map);
    }
    return output;
}

} // namespace mla::cli
