// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pipeline/grid_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "core/base/json.h"
#include "core/convert/conversion_limits.h"
#include "core/pipeline/object_reader.h"
#include "core/pipeline/settings.h"

namespace mla
{
namespace
{

namespace fs = std::filesystem;
using nlohmann::json;
using Names = std::vector<std::string>;

const Names knownVariants = {"original", "converted", "partial-rope", "functional"};
const Names knownBackends = {"native", "hf", "vllm"};

std::string joined(const Names& names)
{
    std::string text;
    for (const std::string& name : names)
        text += (text.empty() ? "" : ", ") + name;
    return text;
}

std::optional<double> percentOf(const std::string& text)
{
    double value = 0;
    if (!text.ends_with('%'))
        return std::nullopt;
    const char* end = text.data() + text.size() - 1;
    const auto [stopped, problem] = std::from_chars(text.data(), end, value);
    if (problem != std::errc() || stopped != end || !(value > 0 && value <= 100))
        return std::nullopt;
    return value;
}

/// "qk_rope_head_dim": 32, or "25%" of head_dim.
void readRopeDim(ObjectReader& in, GridConverter& converter)
{
    json value;
    in.read("qk_rope_head_dim", value);
    if (value.is_number_integer()) {
        in.read("qk_rope_head_dim", converter.settings.qkRopeHeadDim);
        return;
    }
    if (value.is_string())
        converter.ropePercent = percentOf(value.get<std::string>());
    if (!converter.ropePercent)
        in.refuse("qk_rope_head_dim",
                  "must be a number of dims or a share of head_dim such as \"25%\", got " +
                      (value.is_null() ? std::string("nothing") : value.dump()));
}

void readConverter(ObjectReader& in, GridConverter& converter)
{
    readRopeDim(in, converter);
    in.read("converter", converter.settings.converter);
    in.read("kv_lora_rank", converter.settings.kvLoraRank);
    in.read("cache_elements", converter.cacheElements);
    in.read("freqfold", converter.settings.freqfold);
    in.read("rope_select", converter.settings.ropeSelect);
    in.read("svd", converter.settings.svd);
    in.read("learning_rate", converter.learningRate);
    if (converter.cacheElements.empty() == (converter.settings.kvLoraRank == 0))
        in.refuse("kv_lora_rank", "or 'cache_elements' is needed, one of the two");
}

/// What a list of the grid decides must not stand in the settings as well.
void refuseListed(const json& grid, const char* section, const char* key, const char* list,
                  ObjectReader& in)
{
    const auto found = grid.find(section);
    if (found != grid.end() && found->is_object() && found->contains(key))
        in.refuse((std::string(section) + "." + key).c_str(),
                  "belongs into the grid's '" + std::string(list) + "'");
}

void readGrid(ObjectReader& in, const json& document, GridFile& grid)
{
    in.read("name", grid.name);
    in.read("about", grid.about);
    in.readObjects("pairs", grid.pairs, [](ObjectReader& inner, GridPair& pair) {
        inner.read("name", pair.name);
        inner.read("family", pair.family);
        inner.read("target", pair.target);
        inner.read("draft", pair.draft);
    });
    in.readObjects("converters", grid.converters, readConverter);
    in.readList("variants", grid.variants);
    in.readList("backends", grid.backends);
    in.readList("tasks", grid.tasks);
    refuseListed(document, "refine", "objective", "variants", in);
    refuseListed(document, "refine", "learning_rate", "converters", in);
    refuseListed(document, "accept", "tasks", "tasks", in);
    refuseListed(document, "accept", "backend", "backends", in);
    in.readWith("calibration", [&](ObjectReader& inner) { readFields(inner, grid.calibration); });
    in.readWith("refine", [&](ObjectReader& inner) { readFields(inner, grid.refine); });
    in.readWith("accept", [&](ObjectReader& inner) { readFields(inner, grid.accept); });
    in.read("models", grid.models);
    in.read("tasks_folder", grid.tasksFolder);
}

Error wrong(const std::string& key, const std::string& problem)
{
    return badInput("settings: '" + key + "' " + problem);
}

/// A list of different names, each of them one of `known` unless that is empty.
Status checkNames(const std::string& key, const Names& names, const Names& known)
{
    if (names.empty())
        return wrong(key, "must name at least one");
    for (std::size_t i = 0; i < names.size(); ++i) {
        const std::string item = key + "[" + std::to_string(i) + "]";
        if (const auto end = names.begin() + static_cast<std::ptrdiff_t>(i);
            std::find(names.begin(), end, names[i]) != end)
            return wrong(item, "repeats '" + names[i] + "'");
        if (!known.empty() && std::find(known.begin(), known.end(), names[i]) == known.end())
            return wrong(item, "is '" + names[i] + "', none of " + joined(known));
        if (names[i].empty() || names[i].find('/') != std::string::npos)
            return wrong(item, "must be a name without '/', got '" + names[i] + "'");
    }
    return {};
}

/// Runs and rows of a study are named after the checkpoint's folder.
Status checkFolders(const GridFile& grid)
{
    std::map<std::string, fs::path> folders;
    for (std::size_t i = 0; i < grid.pairs.size(); ++i)
        for (const auto& [key, path] : {std::pair{".target", &grid.pairs[i].target},
                                        std::pair{".draft", &grid.pairs[i].draft}}) {
            const std::string item = "pairs[" + std::to_string(i) + "]" + key;
            if (path->empty())
                return wrong(item, "must name a checkpoint folder");
            const fs::path whole = (*path / "").lexically_normal().parent_path();
            const auto [known, fresh] = folders.emplace(whole.filename().string(), whole);
            if (!fresh && known->second != whole)
                return wrong(item, "has the folder name of another checkpoint, " +
                                       known->second.string() +
                                       ": results are told apart by that name");
        }
    return {};
}

Status checkPairs(const GridFile& grid)
{
    Names names;
    for (const GridPair& pair : grid.pairs)
        names.push_back(pair.name);
    MLA_CHECK(checkNames("pairs", names, {}));
    for (std::size_t i = 0; i < grid.pairs.size(); ++i)
        if (grid.pairs[i].family.empty())
            return wrong("pairs[" + std::to_string(i) + "].family",
                         "is missing: it groups pairs in the crossover, for example \"llama\"");
    return checkFolders(grid);
}

/// validate() speaks of the command line's options: the key's path goes before it.
Status at(const std::string& key, Status status)
{
    if (status)
        return status;
    Error error = std::move(status).error();
    return badInput("settings: '" + key + "': " + error.message, {}, error.hint);
}

Status checkConverters(GridFile& grid)
{
    if (grid.converters.empty())
        return wrong("converters", "must name at least one");
    std::set<std::string> seen;
    std::map<std::string, int> count;
    for (std::size_t i = 0; i < grid.converters.size(); ++i) {
        GridConverter& converter = grid.converters[i];
        const std::string key = "converters[" + std::to_string(i) + "]";
        if (const std::string& budget = converter.cacheElements;
            !budget.empty() && !percentOf(budget) &&
            budget.find_first_not_of("0123456789") != std::string::npos)
            return wrong(key + ".cache_elements",
                         "must be \"28%\" of the original's or a number such as \"108\", got \"" +
                             budget + "\"");
        ConvertSettings known = converter.settings; // shares stand for sizes that are legal
        known.kvLoraRank = std::max(known.kvLoraRank, converter.cacheElements.empty() ? 0 : 1);
        known.qkRopeHeadDim = converter.ropePercent ? 2 : known.qkRopeHeadDim;
        MLA_CHECK(at(key, validate(known)));
        RefineSettings refine = grid.refine;
        refine.learningRate = converter.learningRate;
        MLA_CHECK(at(key, validate(refine)));
        if (!seen.insert(toJson(converter.settings).dump() + converter.cacheElements +
                         json(converter.ropePercent.value_or(0)).dump())
                 .second)
            return wrong(key, "repeats an earlier converter");
        const int nth = ++count[converter.settings.converter];
        converter.name = converter.settings.converter + (nth > 1 ? "-" + std::to_string(nth) : "");
    }
    return {};
}

Status check(GridFile& grid)
{
    MLA_CHECK(checkPairs(grid));
    MLA_CHECK(checkNames("variants", grid.variants, knownVariants));
    MLA_CHECK(checkNames("backends", grid.backends, knownBackends));
    MLA_CHECK(checkNames("tasks", grid.tasks, {}));
    MLA_CHECK(at("calibration", validate(grid.calibration)));
    MLA_CHECK(at("refine", validate(grid.refine)));
    if (grid.refine.layers)
        return wrong("refine.layers", "is not for grids: every layer is refined");
    bool timed = false, replayed = false;
    for (const std::string& backend : grid.backends) {
        const AcceptSettings settings = acceptSettings(grid, backend);
        MLA_CHECK(at("accept", validate(settings)));
        const bool replay = settings.chosenMethod() == "replay";
        timed = timed || !replay;
        replayed = replayed || replay;
    }
    if (!timed && (grid.accept.repeats > 1 || grid.accept.baseline))
        return wrong("accept.repeats", "and 'accept.baseline' time engines: no backend of this "
                                       "grid does anything but replay");
    if (!replayed && grid.accept.sweepK > 0)
        return wrong("accept.sweep_k", "replays stored texts: no backend of this grid does");
    return checkConverters(grid);
}

fs::path within(const fs::path& folder, const fs::path& path)
{
    return path.empty() || path.is_absolute() ? path : (folder / path).lexically_normal();
}

} // namespace

Result<GridFile> parseGrid(const json& document, const fs::path& origin)
{
    GridFile grid;
    grid.name = origin.stem().string();
    Status status = ObjectReader::readObject(
        document, {}, [&](ObjectReader& in) { readGrid(in, document, grid); });
    if (status)
        status = check(grid);
    if (!status) {
        Error error = std::move(status).error();
        error.context = origin.string();
        return error;
    }
    const fs::path folder = fs::absolute(origin).parent_path();
    grid.models = within(folder, grid.models);
    grid.tasksFolder = within(folder, grid.tasksFolder);
    const std::string self = "self:";
    if (std::string& source = grid.calibration.source; source.starts_with(self))
        source = self + within(folder, source.substr(self.size())).string();
    return grid;
}

Result<GridFile> readGridFile(const fs::path& path)
{
    MLA_TRY(document, readJsonFile(path));
    return parseGrid(document, path);
}

Result<ConvertSettings> converterFor(const GridConverter& converter, const ModelConfig& model)
{
    ConvertSettings settings = converter.settings;
    if (converter.ropePercent) {
        const double dims = *converter.ropePercent * model.headDim / 100;
        settings.qkRopeHeadDim = static_cast<int>(std::lround(dims));
        if (std::abs(dims - settings.qkRopeHeadDim) > 1e-9 || settings.qkRopeHeadDim % 2 != 0)
            return usageError("qk_rope_head_dim: the share asked for is " + json(dims).dump() +
                              " of " + std::to_string(model.headDim) +
                              " dims; an even number is needed");
    }
    if (!converter.cacheElements.empty()) {
        MLA_TRY(elements, parseCacheBudget(model, converter.cacheElements, "cache_elements"));
        MLA_TRY(rank, rankForBudget(model, settings, elements));
        settings.kvLoraRank = rank;
    }
    return settings;
}

json gridSettings(const GridFile& grid)
{
    json converters = json::object();
    for (const GridConverter& converter : grid.converters)
        converters[converter.name] = {{"convert", toJson(converter.settings)},
                                      {"cache_elements", converter.cacheElements},
                                      {"rope_percent", converter.ropePercent.value_or(0)},
                                      {"learning_rate", converter.learningRate
                                                            ? json(*converter.learningRate)
                                                            : json(nullptr)}};
    json accept = toJson(grid.accept);
    accept.erase("tasks");
    accept.erase("backend");
    return {{"name", grid.name},
            {"converters", std::move(converters)},
            {"calibration", toJson(grid.calibration)},
            {"refine", toJson(grid.refine)},
            {"accept", std::move(accept)}};
}

AcceptSettings acceptSettings(const GridFile& grid, const std::string& backend)
{
    AcceptSettings settings = grid.accept;
    settings.backend = backend;
    if (backend != "native")
        settings.method.clear(); // it chooses between the native engine's two
    if (settings.chosenMethod() == "replay") {
        settings.repeats = 1;
        settings.baseline = false;
    } else {
        settings.sweepK = 0;
    }
    return settings;
}

} // namespace mla
