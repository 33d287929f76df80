// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pipeline/grid_state.h"

#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "core/base/json.h"

namespace mla
{
namespace
{

namespace fs = std::filesystem;
using nlohmann::json;

/// Parts that take about as long as each other.
std::string kindOf(const GridUnit& unit, const std::string& part)
{
    if (unit.kind == GridUnit::Kind::Measurement)
        return "accept " + unit.backend;
    return part == "converted" ? "convert" : "refine";
}

struct Durations {
    double seconds = 0;
    int parts = 0;
};

/// Of parts of this kind, else of others of the same work; nothing while none was done.
std::optional<double> meanOf(const std::map<std::string, Durations>& known, const std::string& kind)
{
    if (const auto own = known.find(kind); own != known.end())
        return own->second.seconds / own->second.parts;
    const auto measures = [](const std::string& name) { return name.starts_with("accept"); };
    Durations alike;
    for (const auto& [name, durations] : known)
        if (measures(name) == measures(kind)) {
            alike.seconds += durations.seconds;
            alike.parts += durations.parts;
        }
    return alike.parts > 0 ? std::optional(alike.seconds / alike.parts) : std::nullopt;
}

/// 0 while some kind of work has no known duration.
double secondsLeft(const std::map<std::string, Durations>& known,
                   const std::vector<std::string>& kinds)
{
    double seconds = 0;
    for (const std::string& kind : kinds) {
        const std::optional<double> mean = meanOf(known, kind);
        if (!mean)
            return 0;
        seconds += *mean;
    }
    return seconds;
}

/// The first key, as a path, at which two settings differ.
std::string difference(const json& a, const json& b, const std::string& path)
{
    if (!a.is_object() || !b.is_object())
        return path;
    for (const auto& [key, value] : a.items())
        if (!b.contains(key) || b.at(key) != value)
            return difference(value, b.value(key, json()), path.empty() ? key : path + "." + key);
    for (const auto& [key, value] : b.items())
        if (!a.contains(key))
            return path.empty() ? key : path + "." + key;
    return path;
}

} // namespace

std::string_view stateName(GridRowState::State state)
{
    switch (state) {
    case GridRowState::State::Done:
        return "done";
    case GridRowState::State::Failed:
        return "failed";
    case GridRowState::State::Waiting:
        break;
    }
    return "waiting";
}

std::vector<std::string> partsOf(const GridPlan& plan, const GridUnit& unit)
{
    if (unit.kind == GridUnit::Kind::Measurement)
        return plan.file.tasks;
    std::vector<std::string> parts = {"converted"};
    parts.insert(parts.end(), unit.objectives.begin(), unit.objectives.end());
    return parts;
}

Result<GridParts> loadParts(const GridFolder& folder, const GridUnit& unit)
{
    GridParts parts;
    const fs::path path = folder.stateOf(unit);
    std::error_code ignored;
    if (!fs::exists(path, ignored))
        return parts;
    MLA_TRY(document, readJsonFile(path));
    if (!document.is_object())
        return badInput("a JSON object is expected", path.string());
    for (const auto& [name, value] : document.items()) {
        JsonReader in(value, path.string(), name);
        parts[name] = {in.number("seconds", 0), in.text("error", {})};
        MLA_CHECK(in.status());
    }
    return parts;
}

Status saveParts(const GridFolder& folder, const GridUnit& unit, const GridParts& parts)
{
    json document = json::object();
    for (const auto& [name, part] : parts)
        document[name] = {{"seconds", part.seconds}, {"error", part.error}};
    return writeFileAtomically(folder.stateOf(unit), document.dump(2) + "\n");
}

Result<GridProgress> gridProgress(const GridPlan& plan, const GridFolder& folder)
{
    std::map<std::string, GridParts> states;
    std::map<std::string, Durations> known;
    for (const GridUnit& unit : plan.units) {
        MLA_TRY(parts, loadParts(folder, unit));
        for (const auto& [name, part] : parts)
            if (part.error.empty()) {
                known[kindOf(unit, name)].seconds += part.seconds;
                ++known[kindOf(unit, name)].parts;
            }
        states[unit.name] = std::move(parts);
    }
    GridProgress progress;
    for (const GridRow& row : plan.rows) {
        const GridParts& parts = states[plan.measurementOf(row).name];
        GridRowState& state = progress.rows.emplace_back();
        const auto part = parts.find(row.task);
        if (part == parts.end())
            continue;
        const bool failed = !part->second.error.empty();
        state = {failed ? GridRowState::State::Failed : GridRowState::State::Done,
                 part->second.error};
        ++(failed ? progress.failed : progress.done);
    }
    std::vector<std::string> open;
    for (const GridUnit& unit : plan.units)
        for (const std::string& part : partsOf(plan, unit))
            if (!states[unit.name].contains(part))
                open.push_back(kindOf(unit, part));
    progress.secondsLeft = secondsLeft(known, open);
    return progress;
}

Status openGridFolder(const GridFolder& folder, const json& settings, bool resume)
{
    std::error_code failed;
    if (fs::exists(folder.settings(), failed)) {
        if (!resume)
            return usageError(folder.output.string() + " holds a grid already",
                              "--resume continues it; or give another folder with -o");
        MLA_TRY(known, readJsonFile(folder.settings()));
        if (known != settings)
            return usageError(folder.output.string() + " was begun with other settings: '" +
                                  difference(known, settings, {}) + "' differs",
                              "give another folder with -o");
    } else if (fs::exists(folder.output, failed) && !fs::is_empty(folder.output, failed)) {
        return usageError(folder.output.string() + " exists and holds no grid",
                          "give another folder with -o");
    } else if (fs::exists(folder.study, failed)) {
        return usageError(folder.study.string() + " exists", "give another file with --study");
    }
    for (const char* part : {"state", "units", "drafts"}) {
        fs::create_directories(folder.output / part, failed);
        if (failed)
            return badInput("cannot be made: " + failed.message(), (folder.output / part).string());
    }
    return writeFileAtomically(folder.settings(), settings.dump(2) + "\n");
}

} // namespace mla
