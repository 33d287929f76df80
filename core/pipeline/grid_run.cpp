// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pipeline/grid_run.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/elapsed.h"
#include "core/pipeline/grid_study.h"
#include "core/pipeline/pipeline.h"
#include "core/pipeline/run_support.h"
#include "core/store/study.h"

namespace mla
{
namespace
{

namespace fs = std::filesystem;
using nlohmann::json;
using Tasks = std::vector<std::string>;

bool isCancelled(const Status& status)
{
    return !status && status.error().code == ErrorCode::Cancelled;
}

/// One unit of a grid in work.
class UnitRun
{
public:
    UnitRun(JobContext& job, const GridRequest& request, const GridUnit& unit)
        : m_job(job), m_request(request), m_unit(unit), m_study(folder().studyOf(unit))
    {
    }
    /// Errors only if the unit's own files cannot be written, or Cancelled; else failures are
    /// parts.
    Status run();

private:
    Status makeDrafts();
    Status convert(const ConvertSettings& settings, const std::string& runId) const;
    Status refine(const std::string& objective, const std::string& runId) const;
    /// Whether the draft and its run are there already.
    Result<bool> haveDraft(const std::string& variant, const std::string& runId) const;

    Status measureAll();
    /// Why there is nothing to measure; empty if there is.
    Result<std::string> draftProblem() const;
    /// Tasks that have no result yet, those without a file marked as failed.
    Result<Tasks> openTasks();
    Status measure(const Tasks& tasks);
    /// One call per task, so that one bad task does not cost the others.
    Status measureSingly(const Tasks& tasks);
    Result<std::set<std::string>> measured() const;
    [[nodiscard]] fs::path draftPath() const;

    Status keep(const std::string& part, double seconds, const std::string& error)
    {
        m_parts[part] = {seconds, error};
        return saveParts(folder(), m_unit, m_parts);
    }
    [[nodiscard]] const GridFolder& folder() const { return m_request.folder; }
    [[nodiscard]] const GridPlan& plan() const { return m_request.plan; }

    JobContext& m_job;
    const GridRequest& m_request;
    const GridUnit& m_unit;
    fs::path m_study;
    GridParts m_parts;
};

Status UnitRun::run()
{
    MLA_TRY(parts, loadParts(folder(), m_unit));
    m_parts = std::move(parts);
    return m_unit.kind == GridUnit::Kind::Draft ? makeDrafts() : measureAll();
}

Result<bool> UnitRun::haveDraft(const std::string& variant, const std::string& runId) const
{
    std::error_code ignored;
    if (!fs::exists(m_study, ignored) ||
        !fs::exists(folder().draftOf(m_unit, variant) / "mla_draft.json", ignored))
        return false;
    MLA_TRY(study, loadStudy(m_study));
    if (!study.findRun(runId))
        return false;
    // A kill after the study was written leaves parts behind.
    fs::remove_all(partsFolder(m_study, folder().draftOf(m_unit, variant), runId), ignored);
    return true;
}

Status UnitRun::convert(const ConvertSettings& settings, const std::string& runId) const
{
    MLA_TRY(have, haveDraft("converted", runId));
    if (have)
        return {};
    // The drafts folder is the grid's own: what stands there without a run is half done.
    const ConvertRequest request{m_unit.checkpoint,
                                 folder().draftOf(m_unit, "converted"),
                                 settings,
                                 plan().file.calibration,
                                 m_request.compute,
                                 m_study,
                                 true,
                                 true};
    MLA_TRY(outcome, convertCheckpoint(m_job, request));
    (void)outcome;
    return {};
}

Status UnitRun::refine(const std::string& objective, const std::string& runId) const
{
    MLA_TRY(have, haveDraft(objective, runId));
    if (have)
        return {};
    RefineSettings settings = plan().file.refine;
    settings.objective = objective;
    settings.learningRate = plan().converterOf(m_unit)->learningRate;
    const RefineRequest request{folder().draftOf(m_unit, "converted"),
                                m_unit.checkpoint,
                                folder().draftOf(m_unit, objective),
                                settings,
                                {},
                                m_request.compute,
                                m_study,
                                true,
                                true};
    MLA_TRY(outcome, refineDraft(m_job, request));
    (void)outcome;
    return {};
}

Status UnitRun::makeDrafts()
{
    MLA_CHECK(seedUnit(plan(), folder(), m_unit));
    std::string stem, problem;
    for (const std::string& variant : partsOf(plan(), m_unit)) {
        const SteadyClock::time_point begun = SteadyClock::now();
        const auto work = [&]() -> Status {
            if (variant != "converted")
                return problem.empty() ? refine(variant, stem + variant)
                                       : Status(computeFailed("no conversion: " + problem));
            MLA_TRY(checkpoint, openSource(m_unit.checkpoint));
            MLA_TRY(settings, converterFor(*plan().converterOf(m_unit), checkpoint.config()));
            stem = checkpointId(m_unit.checkpoint) + "/" +
                   conversionLabel(settings, checkpoint.config()) + "/";
            return convert(settings, stem + variant);
        };
        const auto before = m_parts.find(variant);
        const Status status = work();
        if (isCancelled(status))
            return status;
        if (variant == "converted" && !status)
            problem = status.error().text();
        if (status && before != m_parts.end() && before->second.error.empty())
            continue; // it was done: its time stands
        MLA_CHECK(keep(variant, secondsSince(begun), status ? "" : status.error().text()));
    }
    std::error_code ignored; // calibration data that the study holds now
    if (std::ranges::all_of(m_parts, [](const auto& part) { return part.second.error.empty(); }))
        fs::remove_all(partsRoot(m_study), ignored);
    return {};
}

fs::path UnitRun::draftPath() const
{
    const GridUnit* draft = plan().draftOf(m_unit);
    return draft ? folder().draftOf(*draft, m_unit.variant) : m_unit.checkpoint;
}

Result<std::string> UnitRun::draftProblem() const
{
    const GridUnit* draft = plan().draftOf(m_unit);
    std::error_code ignored;
    if (!draft || fs::exists(draftPath() / "mla_draft.json", ignored))
        return std::string();
    MLA_TRY(parts, loadParts(folder(), *draft));
    const auto part = parts.find(m_unit.variant);
    return "there is no draft: " + (part == parts.end() || part->second.error.empty()
                                        ? draftPath().string() + " is missing"
                                        : part->second.error);
}

Result<std::set<std::string>> UnitRun::measured() const
{
    std::set<std::string> tasks;
    std::error_code ignored;
    if (!fs::exists(m_study, ignored))
        return tasks;
    MLA_TRY(study, loadStudy(m_study));
    for (const AcceptanceRecord& row : study.acceptance)
        tasks.insert(row.task);
    // Sampled texts take their random numbers from a prompt's place among all prompts of a call.
    if (plan().file.accept.temperature > 0 && tasks.size() < plan().file.tasks.size())
        tasks.clear();
    return tasks;
}

Result<Tasks> UnitRun::openTasks()
{
    MLA_TRY(done, measured());
    MLA_TRY(problem, draftProblem());
    Tasks open;
    for (const std::string& task : plan().file.tasks) {
        std::error_code ignored;
        if (done.contains(task)) {
            if (!m_parts.contains(task) || !m_parts[task].error.empty())
                MLA_CHECK(keep(task, 0, {})); // killed before its state was written
        } else if (const fs::path file = taskFile(plan(), task); !problem.empty()) {
            MLA_CHECK(keep(task, 0, problem));
        } else if (!fs::is_regular_file(file, ignored)) {
            MLA_CHECK(keep(task, 0, file.string() + " is not there"));
        } else {
            open.push_back(task);
        }
    }
    return open;
}

/// Tasks measured before a failure keep their results; the failure itself is returned.
Status UnitRun::measure(const Tasks& tasks)
{
    AcceptRequest request;
    request.target = plan().file.pairs[m_unit.pair].target;
    request.draft = draftPath();
    request.settings = acceptSettings(plan().file, m_unit.backend);
    for (const std::string& task : tasks)
        request.settings.tasks.push_back(taskFile(plan(), task));
    request.compute = m_request.compute;
    request.study = m_study;
    const SteadyClock::time_point begun = SteadyClock::now();
    const auto outcome = measureAcceptance(m_job, request);
    MLA_TRY(done, measured());
    const auto count =
        std::ranges::count_if(tasks, [&](const std::string& task) { return done.contains(task); });
    for (const std::string& task : tasks)
        if (done.contains(task))
            MLA_CHECK(keep(task, secondsSince(begun) / static_cast<double>(count), {}));
    return outcome ? Status() : Status(outcome.error());
}

Status UnitRun::measureSingly(const Tasks& tasks)
{
    std::string last;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        const SteadyClock::time_point begun = SteadyClock::now();
        const Status status = measure({tasks[i]});
        if (isCancelled(status))
            return status;
        if (status)
            continue;
        const std::string error = status.error().text();
        MLA_CHECK(keep(tasks[i], secondsSince(begun), error));
        if (error == last) { // it is not the task's fault: the rest would fail as well
            for (++i; i < tasks.size(); ++i)
                MLA_CHECK(keep(tasks[i], 0, error));
            return {};
        }
        last = error;
    }
    return {};
}

Status UnitRun::measureAll()
{
    MLA_TRY(open, openTasks());
    if (open.empty())
        return {};
    MLA_CHECK(seedUnit(plan(), folder(), m_unit));
    const Status status = measure(open);
    if (status || isCancelled(status))
        return status;
    MLA_TRY(done, measured());
    std::erase_if(open, [&](const std::string& task) { return done.contains(task); });
    if (open.size() > 1 && status.error().code != ErrorCode::Usage)
        return measureSingly(open);
    for (const std::string& task : open)
        MLA_CHECK(keep(task, 0, status.error().text()));
    return {};
}

std::string leftText(double seconds)
{
    if (seconds <= 0)
        return {};
    constexpr double minute = 60;
    return seconds < minute
               ? ", less than a minute left"
               : ", about " + std::to_string(std::lround(seconds / minute)) + " min left";
}

Status announce(JobContext& job, const GridRequest& request, const GridUnit& unit)
{
    MLA_TRY(progress, gridProgress(request.plan, request.folder));
    job.info("row " + std::to_string(progress.done + progress.failed) + " of " +
             std::to_string(request.plan.rows.size()) + leftText(progress.secondsLeft) + ": " +
             (unit.kind == GridUnit::Kind::Draft ? "making drafts, " : "measuring, ") + unit.name);
    return {};
}

} // namespace

Status openGrid(const GridRequest& request)
{
    json settings = gridSettings(request.plan.file);
    settings["seed"] = request.compute.seed;
    return openGridFolder(request.folder, settings, request.resume);
}

Status runGridUnit(JobContext& job, const GridRequest& request, std::size_t index)
{
    if (index >= request.plan.units.size())
        return usageError("--task " + std::to_string(index) + ": the grid has units 0-" +
                          std::to_string(request.plan.units.size() - 1));
    GridRequest opened = request;
    opened.resume = true;
    MLA_CHECK(openGrid(opened));
    const GridUnit& unit = request.plan.units[index];
    MLA_CHECK(announce(job, request, unit));
    return UnitRun(job, request, unit).run();
}

Result<GridProgress> collectGrid(const GridRequest& request)
{
    std::error_code ignored;
    if (!fs::exists(request.folder.settings(), ignored))
        return usageError(request.folder.output.string() + " holds no grid",
                          "run it first, or give its folder with -o");
    std::vector<const GridUnit*> units;
    for (const GridUnit& unit : request.plan.units)
        units.push_back(&unit);
    MLA_CHECK(mergeUnits(request.plan, request.folder, units));
    return gridProgress(request.plan, request.folder);
}

Result<GridProgress> runGrid(JobContext& job, const GridRequest& request)
{
    MLA_CHECK(openGrid(request));
    if (request.resume) {
        MLA_TRY(before, collectGrid(request));
        (void)before;
    }
    for (const GridUnit& unit : request.plan.units) {
        MLA_CHECK(announce(job, request, unit));
        MLA_CHECK(UnitRun(job, request, unit).run());
        MLA_CHECK(mergeUnits(request.plan, request.folder, {&unit}));
    }
    return gridProgress(request.plan, request.folder);
}

} // namespace mla
