// SPDX-License-Identifier: GPL-3.0-or-later
// A grid as Slurm jobs: an array for the drafts, one for the measurements behind it, and a last job
// that puts all results into the study. Every task is one unit. No torch here.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/job.h"
#include "core/pipeline/grid_plan.h"

namespace mla
{

struct SlurmSettings {
    std::string partition;            ///< empty = the cluster's default
    std::vector<std::string> options; ///< further options of sbatch, "--time=2:00:00"
    bool gpu = false;                 ///< one GPU a task; see partitionHasGpus()
    std::filesystem::path logs;       ///< folder that receives scripts and output
    /// The command that every task runs, up to its own --task or --collect: program and arguments.
    std::vector<std::string> command;
};

struct SlurmJob {
    std::string name;   ///< "drafts" | "measurements" | "collect"
    std::string script; ///< whole batch script
};
/// In the order they are submitted; each waits for the end, good or bad, of the one before.
[[nodiscard]] std::vector<SlurmJob> slurmJobs(const GridPlan& plan, const SlurmSettings& settings);

/// Whether the partition's nodes offer GPUs (sinfo). A Usage error if there is no Slurm.
Result<bool> partitionHasGpus(JobContext& job, const std::string& partition);

/// Writes the scripts to settings.logs and submits them; the jobs' ids. A Usage error if there is
/// no sbatch.
Result<std::vector<std::string>> submitJobs(JobContext& job, const std::vector<SlurmJob>& jobs,
                                            const SlurmSettings& settings);

} // namespace mla
