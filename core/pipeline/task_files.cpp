// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pipeline/task_files.h"

#include <algorithm>

#include "core/base/resources.h"

namespace mla
{
namespace
{

namespace fs = std::filesystem;
constexpr auto kEnding = ".jsonl";

bool isFile(const fs::path& path)
{
    std::error_code ignored;
    return fs::is_regular_file(path, ignored);
}

std::string listed(const std::vector<std::string>& names)
{
    std::string text;
    for (const std::string& name : names)
        text += (text.empty() ? "" : ", ") + name;
    return text;
}

} // namespace

Result<fs::path> bundledTasks()
{
    MLA_TRY(resources, resourceDirectory());
    return resources / "tasks";
}

std::vector<std::string> taskNames(const fs::path& folder)
{
    std::vector<std::string> names;
    std::error_code failed;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed))
        if (entry.path().extension() == kEnding && isFile(entry.path()))
            names.push_back(entry.path().stem().string());
    std::sort(names.begin(), names.end());
    return names;
}

Result<fs::path> resolveTask(const std::string& task, const fs::path& folder)
{
    if (task.find('/') != std::string::npos || isFile(task))
        return fs::path(task);
    MLA_TRY(place, folder.empty() ? bundledTasks() : Result<fs::path>(folder));
    for (const fs::path& file : {place / task, place / (task + kEnding)})
        if (!task.empty() && isFile(file))
            return file;
    const std::vector<std::string> names = taskNames(place);
    return usageError("there is no task file \"" + task + "\" here, and no such task in " +
                          place.string(),
                      names.empty() ? "no " + std::string(kEnding) + " file is there"
                                    : "tasks there: " + listed(names));
}

Result<std::vector<fs::path>> resolveTasks(const std::vector<std::string>& tasks,
                                           const fs::path& folder)
{
    std::vector<fs::path> files;
    for (const std::string& task : tasks) {
        MLA_TRY(file, resolveTask(task, folder));
        files.push_back(std::move(file));
    }
    return files;
}

} // namespace mla
