// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pipeline/grid_plan.h"

#include <algorithm>
#include <set>

#include "core/backends/python_packages.h"
#include "core/convert/conversion_limits.h"
#include "core/pipeline/task_files.h"
#include "core/store/schema.h"

namespace mla
{
namespace
{

namespace fs = std::filesystem;

bool contains(const std::vector<std::string>& names, const char* name)
{
    return std::find(names.begin(), names.end(), name) != names.end();
}

std::string folderName(const fs::path& checkpoint)
{
    return (checkpoint / "").lexically_normal().parent_path().filename().string();
}

std::string unitName(std::initializer_list<std::string> parts)
{
    std::string name;
    for (const std::string& part : parts)
        name += (name.empty() ? "" : "~") + schema::safeName(part);
    return name;
}

std::vector<GridRow> rowsOf(const GridFile& file)
{
    std::vector<GridRow> rows;
    for (std::size_t pair = 0; pair < file.pairs.size(); ++pair)
        for (std::size_t converter = 0; converter < file.converters.size(); ++converter)
            for (const std::string& variant : file.variants)
                for (const std::string& backend : file.backends)
                    for (const std::string& task : file.tasks)
                        rows.push_back({pair, converter, variant, backend, task});
    return rows;
}

void addDrafts(const GridFile& file, std::vector<GridUnit>& units)
{
    std::vector<std::string> objectives;
    for (const char* objective : {"partial-rope", "functional"})
        if (contains(file.variants, objective))
            objectives.emplace_back(objective);
    if (objectives.empty() && !contains(file.variants, "converted"))
        return;
    std::set<fs::path> seen; // two pairs may share a draft
    for (const GridPair& pair : file.pairs) {
        if (!seen.insert(pair.draft).second)
            continue;
        for (std::size_t converter = 0; converter < file.converters.size(); ++converter)
            units.push_back({GridUnit::Kind::Draft,
                             unitName({folderName(pair.draft), file.converters[converter].name}),
                             pair.draft,
                             converter,
                             objectives,
                             0,
                             {},
                             {}});
    }
}

void addMeasurements(const GridFile& file, std::vector<GridUnit>& units)
{
    for (std::size_t pair = 0; pair < file.pairs.size(); ++pair)
        for (const std::string& backend : file.backends)
            for (const std::string& variant : file.variants) {
                GridUnit unit{GridUnit::Kind::Measurement,
                              {},
                              file.pairs[pair].draft,
                              {},
                              {},
                              pair,
                              variant,
                              backend};
                if (variant == "original") {
                    unit.name = unitName({file.pairs[pair].name, variant, backend});
                    units.push_back(unit);
                    continue;
                }
                for (std::size_t converter = 0; converter < file.converters.size(); ++converter) {
                    unit.converter = converter;
                    unit.name = unitName(
                        {file.pairs[pair].name, file.converters[converter].name, variant, backend});
                    units.push_back(unit);
                }
            }
}

void lookAtCheckpoints(const GridPlan& plan, std::vector<GridLack>& lacks)
{
    std::set<fs::path> seen;
    for (std::size_t i = 0; i < plan.file.pairs.size(); ++i) {
        const GridPair& pair = plan.file.pairs[i];
        for (const fs::path& path : {pair.target, pair.draft}) {
            std::error_code ignored;
            if (!seen.insert(path).second)
                continue;
            if (!fs::exists(path, ignored))
                lacks.push_back({"checkpoint", path.string(), "is not there", i, 0});
            else if (const auto config = readModelConfig(path);
                     fs::exists(path / "config.json", ignored) && !config)
                lacks.push_back({"checkpoint", path.string(), config.error().text(), i, 0});
        }
    }
}

/// Converters that cannot take a draft that is there.
void lookAtConversions(const GridPlan& plan, std::vector<GridLack>& lacks)
{
    for (std::size_t pair = 0; pair < plan.file.pairs.size(); ++pair) {
        const auto config = readModelConfig(plan.file.pairs[pair].draft);
        for (std::size_t i = 0; config && i < plan.file.converters.size(); ++i) {
            const GridConverter& converter = plan.file.converters[i];
            const auto settings = converterFor(converter, *config);
            const Status fits =
                settings ? checkConversion(*config, *settings) : Status(settings.error());
            if (!fits)
                lacks.push_back({"conversion", converter.name + " of " + plan.file.pairs[pair].name,
                                 fits.error().text(), pair, i});
        }
    }
}

void lookAtTasks(const GridPlan& plan, std::vector<GridLack>& lacks)
{
    std::string known;
    for (const std::string& name : taskNames(plan.file.tasksFolder))
        known += (known.empty() ? "; there are " : ", ") + name;
    std::error_code ignored;
    for (const std::string& task : plan.file.tasks)
        if (const fs::path file = taskFile(plan, task); !fs::is_regular_file(file, ignored))
            lacks.push_back({"task", task, file.string() + " is not there" + known, 0, 0});
}

void lookAtBackends(JobContext& job, const GridPlan& plan, const std::string& python,
                    std::vector<GridLack>& lacks)
{
    for (const std::string& backend : plan.file.backends)
        if (const Status ready = checkBackend(job, backend, python); !ready)
            lacks.push_back({"backend", backend, ready.error().text(), 0, 0});
}

} // namespace

const GridUnit& GridPlan::measurementOf(const GridRow& row) const
{
    return *std::find_if(units.begin(), units.end(), [&](const GridUnit& unit) {
        return unit.kind == GridUnit::Kind::Measurement && unit.pair == row.pair &&
               unit.variant == row.variant && unit.backend == row.backend &&
               (!unit.converter || *unit.converter == row.converter);
    });
}

const GridUnit* GridPlan::draftOf(const GridUnit& measurement) const
{
    const auto found = std::find_if(units.begin(), units.end(), [&](const GridUnit& unit) {
        return unit.kind == GridUnit::Kind::Draft && unit.converter == measurement.converter &&
               unit.checkpoint == measurement.checkpoint;
    });
    return found == units.end() ? nullptr : &*found;
}

Result<GridPlan> planGrid(GridFile file, const fs::path& models, const fs::path& tasksFolder)
{
    GridPlan plan;
    const fs::path folder = fs::absolute(!models.empty()        ? models
                                         : !file.models.empty() ? file.models
                                                                : fs::path("."));
    for (GridPair& pair : file.pairs) {
        pair.target = (folder / pair.target).lexically_normal();
        pair.draft = (folder / pair.draft).lexically_normal();
    }
    file.models = folder.lexically_normal();
    if (!tasksFolder.empty())
        file.tasksFolder = fs::absolute(tasksFolder).lexically_normal();
    if (file.tasksFolder.empty()) {
        MLA_TRY(bundled, bundledTasks());
        file.tasksFolder = std::move(bundled);
    }
    plan.rows = rowsOf(file);
    addDrafts(file, plan.units);
    addMeasurements(file, plan.units);
    if (contains(file.variants, "partial-rope") && contains(file.variants, "functional"))
        plan.matchedCells = static_cast<int>(file.pairs.size() * file.converters.size() *
                                             file.backends.size() * file.tasks.size());
    plan.file = std::move(file);
    return plan;
}

fs::path taskFile(const GridPlan& plan, const std::string& task)
{
    return plan.file.tasksFolder / (task + ".jsonl");
}

std::vector<GridLack> gridLacks(JobContext& job, const GridPlan& plan, const std::string& python)
{
    std::vector<GridLack> lacks;
    lookAtCheckpoints(plan, lacks);
    lookAtConversions(plan, lacks);
    lookAtTasks(plan, lacks);
    lookAtBackends(job, plan, python, lacks);
    return lacks;
}

std::vector<std::size_t> lacksOf(const GridPlan& plan, const GridRow& row,
                                 const std::vector<GridLack>& lacks)
{
    std::vector<std::size_t> own;
    const GridPair& pair = plan.file.pairs[row.pair];
    for (std::size_t i = 0; i < lacks.size(); ++i) {
        const GridLack& lack = lacks[i];
        const bool checkpoint = lack.what == "checkpoint" && (lack.name == pair.target.string() ||
                                                              lack.name == pair.draft.string());
        const bool conversion = lack.what == "conversion" && row.variant != "original" &&
                                lack.pair == row.pair && lack.converter == row.converter;
        const bool task = lack.what == "task" && lack.name == row.task;
        const bool backend = lack.what == "backend" && lack.name == row.backend;
        if (checkpoint || conversion || task || backend)
            own.push_back(i);
    }
    return own;
}

} // namespace mla
