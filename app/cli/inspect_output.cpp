// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/inspect_output.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "app/cli/json_report.h"
#include "app/cli/text.h"

using nlohmann::json;

namespace mla::cli
{
namespace
{

constexpr double percent = 100;

std::string shapeText(const std::vector<std::int64_t>& shape)
{
    std::string text;
    for (const std::int64_t size : shape)
        text += (text.empty() ? "" : " x ") + std::to_string(size);
    return shape.empty() ? "scalar" : text;
}

/// "model.layers.12.mlp.up_proj.weight" -> "model.layers.*.mlp.up_proj.weight"
std::string withoutLayer(const std::string& name)
{
    const std::string marker = "layers.";
    const std::size_t begin = name.find(marker);
    if (begin == std::string::npos)
        return name;
    const std::size_t digits = begin + marker.size();
    const std::size_t end = std::min(name.find_first_not_of("0123456789", digits), name.size());
    return name.substr(0, digits) + "*" + name.substr(end);
}

/// Equal tensors of all layers are one line.
std::string tensorTable(const std::vector<TensorSummary>& tensors)
{
    std::map<std::vector<std::string>, std::pair<int, std::int64_t>> kinds;
    for (const TensorSummary& tensor : tensors) {
        auto& [number, size] =
            kinds[{withoutLayer(tensor.name), tensor.storage, shapeText(tensor.shape)}];
        ++number;
        size += tensor.bytes;
    }
    TextTable table(
        {leftColumn("Tensor"), {"Count"}, leftColumn("Stored as"), leftColumn("Shape"), {"Size"}});
    for (const auto& [kind, sum] : kinds)
        table.addRow({kind.at(0), std::to_string(sum.first), kind.at(1), kind.at(2),
                      bytes(static_cast<double>(sum.second))});
    return table.text();
}

std::string cacheTable(const Inspection& inspection)
{
    const ModelConfig& config = inspection.report.config;
    const bool draft = config.isMla();
    std::vector<TextTable::Column> columns = {{"Context (tokens)"}, {"KV cache"}};
    if (draft)
        columns.push_back({"before conversion"});
    if (inspection.plan)
        columns.push_back({"planned"});
    TextTable table(std::move(columns));
    constexpr std::int64_t shortest = 1024, longest = 131072;
    std::set<std::int64_t> contexts;
    for (std::int64_t context = shortest; context <= longest; context *= 2)
        contexts.insert(context);
    if (inspection.contextGiven)
        contexts.insert(inspection.use.context);
    for (const std::int64_t context : contexts) {
        CacheUse use = inspection.use;
        use.context = context;
        const auto size = [](std::int64_t value) { return bytes(static_cast<double>(value)); };
        std::vector<std::string> row = {count(context), size(ownCacheBytes(config, use))};
        if (draft)
            row.push_back(size(cacheBytes(config, originalCacheElements(config), use)));
        if (inspection.plan)
            row.push_back(size(cacheBytes(config, inspection.plan->elements, use)));
        table.addRow(std::move(row));
    }
    return table.text();
}

std::string cacheTitle(const Inspection& inspection)
{
    std::string title = "KV cache in " + inspection.cacheDtype;
    if (inspection.use.batch > 1)
        title += ", " + count(inspection.use.batch) + " sequences at a time";
    return title + ":\n";
}

std::string shareText(double elements, double original)
{
    return number(elements, 0) + " elements per token and layer (" +
           number(percent * elements / original, 1) + " % of " + number(original, 0) + ")";
}

/// "2, 4, 8 ... 64": legal values, the middle of a long list left out.
std::string valuesText(const std::vector<int>& values)
{
    constexpr std::size_t shown = 8;
    std::string text;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (values.size() > shown + 1 && i == shown - 1) {
            text += " ... " + std::to_string(values.back());
            break;
        }
        text += (text.empty() ? "" : ", ") + std::to_string(values[i]);
    }
    return text;
}

std::string planText(const Inspection& inspection)
{
    const CachePlan& plan = *inspection.plan;
    const auto original = static_cast<double>(originalCacheElements(inspection.report.config));
    std::vector<std::pair<std::string, std::string>> lines = {
        {"Plan", plan.settings.converter + ", kv_lora_rank " +
                     std::to_string(plan.settings.kvLoraRank) + ", qk_rope_head_dim " +
                     std::to_string(plan.settings.qkRopeHeadDim)},
        {"Planned cache", shareText(static_cast<double>(plan.elements), original)},
        {"kv_lora_rank", "1 to " + std::to_string(plan.limits.largestRank) + "; saves up to " +
                             std::to_string(std::max(0, plan.limits.largestSavingRank))},
        {"qk_rope_head_dim", valuesText(plan.limits.ropeDims)}};
    if (!plan.limits.freqfolds.empty())
        lines.emplace_back("freqfold", valuesText(plan.limits.freqfolds));
    return pairs(lines);
}

std::string scientific(const std::optional<double>& value)
{
    if (!value)
        return "-";
    std::array<char, 32> digits{};
    std::snprintf(digits.data(), digits.size(), "%.4g", *value);
    return digits.data();
}

std::string statisticsTable(const std::vector<TensorStatistics>& statistics)
{
    TextTable table({leftColumn("Tensor"),
                     {"Min"},
                     {"Max"},
                     {"Mean"},
                     {"Std"},
                     {"Zeros"},
                     {"NaN/Inf"},
                     {"Row norms"}});
    for (const TensorStatistics& one : statistics) {
        const std::string rows = one.rowNormMinimum ? scientific(one.rowNormMinimum) + " to " +
                                                          scientific(one.rowNormMaximum)
                                                    : "";
        table.addRow({one.name, scientific(one.minimum), scientific(one.maximum),
                      scientific(one.mean), scientific(one.deviation), count(one.zeros),
                      count(one.nonFinite()), rows});
    }
    return table.text();
}

std::string modelText(const Inspection& inspection)
{
    const InspectReport& r = inspection.report;
    std::string cache =
        r.attention == "mla" && r.originalCacheElements > 0
            ? shareText(r.cacheElementsPerTokenPerLayer, r.originalCacheElements)
            : number(r.cacheElementsPerTokenPerLayer, 0) + " elements per token and layer";
    std::vector<std::pair<std::string, std::string>> lines = {
        {"Model type", r.modelType},
        {"Attention", r.attention},
        {"Layers", std::to_string(r.layers)},
        {"Hidden size", std::to_string(r.hiddenSize)},
        {"Heads", std::to_string(r.heads) + " query, " + std::to_string(r.kvHeads) +
                      " key/value, of size " + std::to_string(r.headDim)},
        {"Vocabulary", count(r.vocabSize)},
        {"Parameters", count(r.parameters) + " (" + r.dtype + ")"},
        {"Weights", bytes(static_cast<double>(r.weightBytes))},
        {"KV cache", cache + ", " + count(r.cacheBytesPerToken) + " bytes per token"}};
    const std::set<std::string> said = {
        "model_type",          "num_hidden_layers", "hidden_size", "num_attention_heads",
        "num_key_value_heads", "head_dim",          "vocab_size",  "dtype"};
    for (const ConfigProperty& property : r.properties)
        if (!said.contains(property.name))
            lines.emplace_back(property.name, valueText(property));
    return pairs(lines);
}

json statisticsJson(const TensorStatistics& one)
{
    return {{"name", one.name},
            {"elements", one.elements},
            {"min", orNull(one.minimum)},
            {"max", orNull(one.maximum)},
            {"mean", orNull(one.mean)},
            {"std", orNull(one.deviation)},
            {"abs_max", orNull(one.absoluteMaximum)},
            {"zeros", one.zeros},
            {"nan", one.nans},
            {"inf", one.infinities},
            {"first_non_finite", one.nonFinite() > 0 ? json(one.firstNonFinite) : json(nullptr)},
            {"row_norm_min", orNull(one.rowNormMinimum)},
            {"row_norm_max", orNull(one.rowNormMaximum)}};
}

json planJson(const Inspection& inspection)
{
    const CachePlan& plan = *inspection.plan;
    const ModelConfig& config = inspection.report.config;
    json warnings = json::array();
    for (const ConversionIssue& issue : plan.warnings)
        warnings.push_back(issue.error.text());
    return {{"converter", plan.settings.converter},
            {"kv_lora_rank", plan.settings.kvLoraRank},
            {"qk_rope_head_dim", plan.settings.qkRopeHeadDim},
            {"cache_elements_per_token_per_layer", plan.elements},
            {"share", static_cast<double>(plan.elements) /
                          static_cast<double>(originalCacheElements(config))},
            {"cache_bytes", cacheBytes(config, plan.elements, inspection.use)},
            {"limits",
             {{"qk_rope_head_dim", plan.limits.ropeDims},
              {"freqfold", plan.limits.freqfolds},
              {"largest_kv_lora_rank", plan.limits.largestRank},
              {"largest_saving_kv_lora_rank", plan.limits.largestSavingRank}}},
            {"warnings", std::move(warnings)}};
}

json cacheJson(const Inspection& inspection)
{
    const ModelConfig& config = inspection.report.config;
    return {{"context", inspection.use.context},
            {"batch", inspection.use.batch},
            {"dtype", inspection.cacheDtype},
            {"bytes", ownCacheBytes(config, inspection.use)},
            {"original_bytes", cacheBytes(config, originalCacheElements(config), inspection.use)}};
}

json configJson(const std::vector<ConfigProperty>& properties)
{
    json object = json::object();
    for (const ConfigProperty& property : properties)
        std::visit([&](const auto& value) { object[property.name] = value; }, property.value);
    return object;
}

} // namespace

json inspectionJson(const Inspection& inspection)
{
    const InspectReport& r = inspection.report;
    json tensors = json::array();
    for (const TensorSummary& tensor : r.tensors)
        tensors.push_back({{"name", tensor.name},
                           {"dtype", tensor.dtype},
                           {"storage", tensor.storage},
                           {"shape", tensor.shape},
                           {"bytes", tensor.bytes},
                           {"file", tensor.file}});
    json result = {
        {"model_type", r.modelType},
        {"attention", r.attention},
        {"num_hidden_layers", r.layers},
        {"hidden_size", r.hiddenSize},
        {"num_attention_heads", r.heads},
        {"num_key_value_heads", r.kvHeads},
        {"head_dim", r.headDim},
        {"vocab_size", r.vocabSize},
        {"parameters", r.parameters},
        {"dtype", r.dtype},
        {"weight_bytes", r.weightBytes},
        {"cache_elements_per_token_per_layer", wholeIfPossible(r.cacheElementsPerTokenPerLayer)},
        {"original_cache_elements_per_token_per_layer", wholeIfPossible(r.originalCacheElements)},
        {"cache_bytes_per_token", r.cacheBytesPerToken},
        {"cache", cacheJson(inspection)},
        {"converter", orNull(r.converter)},
        {"kv_lora_rank", orNull(r.kvLoraRank)},
        {"qk_rope_head_dim", orNull(r.qkRopeHeadDim)},
        {"config", configJson(r.properties)},
        {"tensors", std::move(tensors)},
        {"warnings", r.warnings}};
    if (inspection.plan)
        result["plan"] = planJson(inspection);
    if (inspection.statistics) {
        json& list = result["statistics"] = json::array();
        for (const TensorStatistics& one : *inspection.statistics)
            list.push_back(statisticsJson(one));
    }
    return result;
}

std::string inspectionText(const Inspection& inspection)
{
    std::string text = modelText(inspection);
    if (inspection.plan)
        text += "\n" + planText(inspection);
    text += "\n" + cacheTitle(inspection) + cacheTable(inspection) + "\n";
    text += inspection.statistics ? statisticsTable(*inspection.statistics)
                                  : tensorTable(inspection.report.tensors);
    for (const std::string& warning : inspection.report.warnings)
        text += "\nwarning: " + warning + "\n";
    if (inspection.plan)
        for (const ConversionIssue& issue : inspection.plan->warnings)
            text += "\nwarning: " + issue.error.text() + "\n";
    return text;
}

} // namespace mla::cli
