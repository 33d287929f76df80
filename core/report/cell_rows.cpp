// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/report/cell_rows.h"

#include <algorithm>
#include <cctype>
#include <set>

#include <nlohmann/json.hpp>

#include "core/report/acceptance_groups.h"
#include "core/report/report_text.h"
#include "core/report/study_cells.h"

namespace mla
{

namespace
{

using nlohmann::json;

constexpr auto original = "original", converted = "converted";

json parsed(const std::string& text)
{
    json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
    return value.is_object() ? value : json::object();
}

std::string conversionKey(const StudyData& study, const std::string& id)
{
    const RunRecord* run = study.findRun(id);
    if (!run)
        return id;
    json settings = parsed(run->settingsJson);
    settings.erase("compute"); // seed, threads, device
    return settings.empty() ? id : run->checkpoint + settings.dump();
}

std::string budgetKey(const RunRecord& run)
{
    json settings = parsed(run.settingsJson);
    json& refine = settings["refine"];
    if (!refine.is_object())
        return {};
    refine.erase("objective");
    refine.erase("learning_rate"); // each objective may have its best
    return refine.dump();
}

std::string lengthText(const json& settings)
{
    std::string text;
    const auto add = [&](const char* key, const std::string& before, const std::string& after) {
        if (const auto it = settings.find(key); it != settings.end() && it->is_number())
            text += before + exactText(it->get<double>()) + after;
    };
    add("max_new_tokens", ", ", " new tokens");
    if (settings.value("min_new_tokens", json()) != 0)
        add("min_new_tokens", ", at least ", "");
    add("max_prompt_tokens", ", prompts of ", "");
    return text;
}

std::string protocolText(const AcceptanceRecord& record)
{
    return "k = " + std::to_string(record.k) + ", " + record.method + ", " + samplingText(record) +
           lengthText(parsed(record.settingsJson)) + (record.chatTemplate ? ", chat template" : "");
}

} // namespace

std::string onlySourceOf(const StudyData& study)
{
    std::set<std::string> sources;
    for (const RunRecord& run : study.runs)
        if (!run.checkpoint.empty())
            sources.insert(run.checkpoint);
    return sources.size() == 1 ? *sources.begin() : std::string();
}

CellRow describeRow(const StudyData& study, const AcceptanceRecord& record,
                    const std::string& onlySource)
{
    CellRow row;
    row.record = &record;
    row.run = study.findRun(record.run);
    row.variant = row.run ? row.run->variant : record.run;
    row.source = row.run ? row.run->checkpoint : onlySource;
    const std::uint64_t measured = record.temperature > 0 ? record.seed : 0;
    if (!row.run || row.variant == original)
        return row;
    const bool refined = row.variant != converted;
    row.conversion = conversionKey(study, refined ? row.run->parent : row.run->id);
    if (refined)
        row.budget = budgetKey(*row.run);
    row.seed = {row.run->seed, row.run->calibration, measured};
    return row;
}

Measuring measuringOf(const AcceptanceRecord& record)
{
    return {record.target, record.backend, record.task, protocolText(record)};
}

std::string limitOf(const AcceptanceRecord& record)
{
    return parsed(record.settingsJson).value("limit", json()).dump();
}

std::string familyOf(const StudyData& study, const std::string& checkpoint)
{
    const auto found = std::ranges::find(study.checkpoints, checkpoint, &CheckpointRecord::id);
    if (found == study.checkpoints.end())
        return checkpoint;
    const json type = parsed(found->configJson).value("model_type", json());
    if (!type.is_string())
        return checkpoint;
    const std::string name = type.get<std::string>();
    const auto generation = std::ranges::find_if(
        name, [](unsigned char c) { return std::isdigit(c) != 0 || c == '_' || c == '-'; });
    return {name.begin(), generation};
}

std::string stepsText(const std::string& budget)
{
    const json settings = parsed(budget);
    const auto steps = settings.find("steps");
    return steps != settings.end() && steps->is_number_integer()
               ? ", " + std::to_string(steps->get<std::int64_t>()) + " steps"
               : std::string();
}

} // namespace mla
