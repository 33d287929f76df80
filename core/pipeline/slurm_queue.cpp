// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pipeline/slurm_queue.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <unistd.h>

#include "core/backends/child_process.h"

namespace mla
{
namespace
{

namespace fs = std::filesystem;
constexpr std::chrono::seconds patience{60};
constexpr const char* lineFormat = "--format=%i|%T|%M|%l|%R|%j"; // a name may hold a bar

Result<ClusterJob> parseLine(const std::string& line)
{
    ClusterJob job;
    std::size_t begin = 0;
    for (std::string* field : {&job.id, &job.state, &job.elapsed, &job.limit, &job.where}) {
        const std::size_t bar = line.find('|', begin);
        if (bar == std::string::npos)
            return computeFailed("squeue answered '" + line + "', expected six fields with '|'");
        *field = line.substr(begin, bar - begin);
        begin = bar + 1;
    }
    job.name = line.substr(begin);
    return job;
}

} // namespace

bool hasSlurm()
{
    const char* path = std::getenv("PATH");
    std::istringstream folders(path ? path : "");
    for (std::string folder; std::getline(folders, folder, ':');)
        if (!folder.empty() && ::access((fs::path(folder) / "squeue").c_str(), X_OK) == 0)
            return true;
    return false;
}

Result<std::vector<std::string>> askSlurm(JobContext& job, const std::string& program,
                                          const std::vector<std::string>& arguments)
{
    auto process = ChildProcess::start({program, arguments, {}});
    if (!process)
        return usageError("there is no Slurm here: " + process.error().text(),
                          "run the grid without --slurm, or on a machine that submits jobs");
    std::vector<std::string> lines;
    while (true) {
        MLA_TRY(line, process->readLine(job, patience));
        if (!line)
            break;
        lines.push_back(std::move(*line));
    }
    MLA_CHECK(process->finish(job, patience));
    return lines;
}

Result<std::vector<ClusterJob>> clusterJobs(JobContext& job)
{
    MLA_TRY(lines, askSlurm(job, "squeue", {"--me", "--noheader", lineFormat}));
    std::vector<ClusterJob> jobs;
    for (const std::string& line : lines) {
        MLA_TRY(parsed, parseLine(line));
        jobs.push_back(std::move(parsed));
    }
    return jobs;
}

Status cancelClusterJob(JobContext& job, const std::string& id)
{
    MLA_TRY(lines, askSlurm(job, "scancel", {id}));
    (void)lines;
    return {};
}

} // namespace mla
