// SPDX-License-Identifier: GPL-3.0-or-later
// What a grid amounts to: its configurations, the pieces of work behind them, and what is not there
// yet to do them. No torch here.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/job.h"
#include "core/pipeline/grid_file.h"

namespace mla
{

/// One configuration: a pair's draft in one variant, measured on one task in one backend.
/// `original`, which no converter made, is measured once and counts under each converter.
struct GridRow {
    std::size_t pair = 0, converter = 0; ///< indices into the grid's lists
    std::string variant, backend, task;
};

/// A unit of work: it is done whole or taken up again, and may run on a machine of its own.
struct GridUnit {
    enum class Kind { Draft, Measurement } kind = Kind::Draft;
    std::string name; ///< unique, fit for a file name: "llama-3.2-1b~transmla~functional~vllm"
    std::filesystem::path checkpoint; ///< Draft: what is converted; Measurement: the pair's draft
    std::optional<std::size_t> converter;
    std::vector<std::string> objectives; ///< Draft: one refinement each, after the conversion
    std::size_t pair = 0;                ///< Measurement
    std::string variant, backend;        ///< Measurement
};

struct GridPlan {
    GridFile file; ///< its checkpoints and folders are absolute now
    std::vector<GridRow> rows;
    std::vector<GridUnit> units; ///< drafts first; a measurement needs the unit of its draft
    int matchedCells = 0;        ///< pairs x converters x backends x tasks
    [[nodiscard]] const GridConverter* converterOf(const GridUnit& unit) const
    {
        return unit.converter ? &file.converters[*unit.converter] : nullptr;
    }
    /// The unit that measures `row`.
    [[nodiscard]] const GridUnit& measurementOf(const GridRow& row) const;
    /// The unit that makes what `measurement` measures; null for the original.
    [[nodiscard]] const GridUnit* draftOf(const GridUnit& measurement) const;
};

/// `models` and `tasksFolder` override what the file says; empty = the file's, else the current
/// folder and resources/tasks.
Result<GridPlan> planGrid(GridFile file, const std::filesystem::path& models,
                          const std::filesystem::path& tasksFolder);

[[nodiscard]] std::filesystem::path taskFile(const GridPlan& plan, const std::string& task);

/// Something a grid needs that is not there or does not fit.
struct GridLack {
    std::string what; ///< checkpoint | conversion | task | backend
    std::string name; ///< of that checkpoint, converter, task or backend
    std::string problem;
    std::size_t pair = 0, converter = 0; ///< of a conversion
};
/// Looks at folders, configs, task files and Python packages; loads nothing. `python` as in
/// ComputeSettings.
std::vector<GridLack> gridLacks(JobContext& job, const GridPlan& plan, const std::string& python);
/// Indices of those that stand in `row`'s way.
[[nodiscard]] std::vector<std::size_t> lacksOf(const GridPlan& plan, const GridRow& row,
                                               const std::vector<GridLack>& lacks);

} // namespace mla
