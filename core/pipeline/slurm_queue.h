// SPDX-License-Identifier: GPL-3.0-or-later
// The user's jobs on a Slurm cluster, as squeue tells them. No torch here.
#pragma once

#include <string>
#include <vector>

#include "core/base/job.h"
#include "core/base/result.h"

namespace mla
{

/// One line of squeue: a job, a running task of an array, or the tasks of one that wait.
struct ClusterJob {
    std::string id;      ///< "41", "41_3", "41_[4-7]"
    std::string state;   ///< Slurm's word: PENDING, RUNNING, COMPLETING, ...
    std::string elapsed; ///< [days-]hours:minutes:seconds of running
    std::string limit;   ///< of elapsed; UNLIMITED where there is none
    std::string where;   ///< its nodes; in brackets why it waits
    std::string name;    ///< NAME-drafts, NAME-measurements, NAME-collect for grid --slurm
    friend bool operator==(const ClusterJob&, const ClusterJob&) = default;
};

/// Whether this machine submits to a cluster: squeue is in PATH.
[[nodiscard]] bool hasSlurm();

/// Jobs of this user that wait or run, in Slurm's order. Usage error without Slurm, ComputeFailed
/// when its controller does not answer.
Result<std::vector<ClusterJob>> clusterJobs(JobContext& job);

/// Ends a job, its waiting and running tasks included (scancel).
Status cancelClusterJob(JobContext& job, const std::string& id);

/// What a program of Slurm prints, line by line. Usage error if it cannot be run.
Result<std::vector<std::string>> askSlurm(JobContext& job, const std::string& program,
                                          const std::vector<std::string>& arguments);

} // namespace mla
