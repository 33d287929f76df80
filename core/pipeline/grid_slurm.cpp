// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pipeline/grid_slurm.h"

#include <algorithm>
#include <cctype>

#include "core/base/file.h"
#include "core/pipeline/slurm_queue.h"

namespace mla
{
namespace
{

namespace fs = std::filesystem;

std::string quoted(const std::string& text)
{
    std::string safe = "'";
    for (const char c : text)
        safe += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return safe + "'";
}

/// `array`: "0-7", or empty for a single job. `last`: the arguments that only this job has.
SlurmJob makeJob(const std::string& name, const std::string& array, const std::string& last,
                 const GridPlan& plan, const SlurmSettings& settings)
{
    std::string text = "#!/bin/bash\n";
    const auto option = [&](const std::string& words) { text += "#SBATCH " + words + "\n"; };
    std::string title = plan.file.name; // sbatch cuts a directive at a blank
    std::ranges::replace_if(
        title, [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '.'; }, '-');
    option("--job-name=" + title + "-" + name);
    option("--output=" +
           quoted((settings.logs / (name + (array.empty() ? "" : "-%a") + ".log")).string()));
    if (!array.empty())
        option("--array=" + array);
    if (!settings.partition.empty())
        option("--partition=" + settings.partition);
    if (settings.gpu && !array.empty())
        option("--gres=gpu:1");
    for (const std::string& further : settings.options)
        option(further);
    text += "exec";
    for (const std::string& word : settings.command)
        text += " " + quoted(word);
    return {name, text + " " + last + "\n"};
}

/// The first line of what a program of Slurm prints.
Result<std::string> firstLine(JobContext& job, const std::string& program,
                              const std::vector<std::string>& arguments)
{
    MLA_TRY(lines, askSlurm(job, program, arguments));
    return lines.empty() ? std::string() : lines.front();
}

} // namespace

std::vector<SlurmJob> slurmJobs(const GridPlan& plan, const SlurmSettings& settings)
{
    const auto drafts = std::ranges::count_if(
        plan.units, [](const GridUnit& unit) { return unit.kind == GridUnit::Kind::Draft; });
    const std::string own = "--task \"$SLURM_ARRAY_TASK_ID\"";
    std::vector<SlurmJob> jobs;
    if (drafts > 0)
        jobs.push_back(makeJob("drafts", "0-" + std::to_string(drafts - 1), own, plan, settings));
    jobs.push_back(makeJob("measurements",
                           std::to_string(drafts) + "-" + std::to_string(plan.units.size() - 1),
                           own, plan, settings));
    jobs.push_back(makeJob("collect", {}, "--collect", plan, settings));
    return jobs;
}

Result<bool> partitionHasGpus(JobContext& job, const std::string& partition)
{
    std::vector<std::string> arguments = {"--noheader", "--format=%G"};
    if (!partition.empty())
        arguments.push_back("--partition=" + partition);
    MLA_TRY(resources, askSlurm(job, "sinfo", arguments));
    return std::ranges::any_of(
        resources, [](const std::string& line) { return line.find("gpu") != std::string::npos; });
}

Result<std::vector<std::string>> submitJobs(JobContext& job, const std::vector<SlurmJob>& jobs,
                                            const SlurmSettings& settings)
{
    std::error_code failed;
    fs::create_directories(settings.logs, failed);
    if (failed)
        return badInput("cannot be made: " + failed.message(), settings.logs.string());
    std::vector<std::string> ids;
    for (const SlurmJob& next : jobs) {
        const fs::path script = settings.logs / (next.name + ".sh");
        MLA_CHECK(writeFileAtomically(script, next.script));
        std::vector<std::string> arguments = {"--parsable"};
        if (!ids.empty())
            arguments.push_back("--dependency=afterany:" + ids.back());
        arguments.push_back(script.string());
        MLA_TRY(answer, firstLine(job, "sbatch", arguments));
        ids.push_back(answer.substr(0, answer.find(';'))); // ID or ID;cluster
        if (ids.back().empty())
            return computeFailed("sbatch answered no job id", script.string());
    }
    return ids;
}

} // namespace mla
