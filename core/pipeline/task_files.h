// SPDX-License-Identifier: GPL-3.0-or-later
// Prompt sets by name: "human_eval" is human_eval.jsonl in the folder of task files. No torch here.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace mla
{

/// The folder looked in when none is chosen: tasks/ of the program's resources.
Result<std::filesystem::path> bundledTasks();

/// Names of the tasks in `folder` (its *.jsonl without the ending), sorted.
std::vector<std::string> taskNames(const std::filesystem::path& folder);

/// The file of one task. What is the path of a file, or has a '/', is taken as a path and not
/// looked up; else it is NAME or NAME.jsonl in `folder` (empty: `bundledTasks`). A Usage error
/// lists the names that are there.
Result<std::filesystem::path> resolveTask(const std::string& task,
                                          const std::filesystem::path& folder = {});
/// The same for several.
Result<std::vector<std::filesystem::path>> resolveTasks(const std::vector<std::string>& tasks,
                                                        const std::filesystem::path& folder = {});

} // namespace mla
