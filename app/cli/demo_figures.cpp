// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/demo_figures.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace fs = std::filesystem;

namespace mla::cli
{
namespace
{

const char* const programName = "mla-workbench";

bool isProgram(const fs::path& path)
{
    std::error_code ignored;
    return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

bool isSet(const char* variable)
{
    const char* value = std::getenv(variable);
    return value && *value;
}

std::vector<std::string> environment()
{
    std::vector<std::string> variables;
    for (char** entry = environ; *entry; ++entry)
        variables.emplace_back(*entry);
    if (!isSet("DISPLAY") && !isSet("WAYLAND_DISPLAY") && !isSet("QT_QPA_PLATFORM"))
        variables.emplace_back("QT_QPA_PLATFORM=offscreen");
    return variables;
}

std::vector<char*> pointers(std::vector<std::string>& texts)
{
    std::vector<char*> list;
    for (std::string& text : texts)
        list.push_back(text.data());
    list.push_back(nullptr);
    return list;
}

Result<pid_t> start(std::vector<std::string> arguments, bool quiet)
{
    std::vector<std::string> variables = environment();
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (quiet)
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    pid_t child = 0;
    const int problem = ::posix_spawn(&child, arguments.front().c_str(), &actions, nullptr,
                                      pointers(arguments).data(), pointers(variables).data());
    posix_spawn_file_actions_destroy(&actions);
    if (problem != 0)
        return computeFailed(std::string("cannot be started: ") + std::strerror(problem),
                             arguments.front());
    return child;
}

/// The child's wait status; a stop request ends it.
int await(pid_t child, const JobContext& job)
{
    constexpr std::chrono::milliseconds pause(20);
    int status = 0;
    bool ended = false;
    while (::waitpid(child, &status, WNOHANG) == 0) {
        if (job.stopRequested() && !ended) {
            ::kill(child, SIGTERM);
            ended = true;
        }
        std::this_thread::sleep_for(pause);
    }
    return status;
}

} // namespace

std::optional<fs::path> findWorkbench()
{
    std::error_code failed;
    const fs::path self = fs::read_symlink("/proc/self/exe", failed);
    if (const fs::path beside = self.parent_path() / programName; !failed && isProgram(beside))
        return beside;
    const char* path = std::getenv("PATH");
    std::istringstream folders(path ? path : "");
    for (std::string folder; std::getline(folders, folder, ':');)
        if (const fs::path program = fs::path(folder) / programName;
            !folder.empty() && isProgram(program))
            return program;
    return std::nullopt;
}

Status renderFigures(const JobContext& job, const fs::path& workbench, const fs::path& study,
                     const fs::path& figures, bool quiet)
{
    MLA_TRY(child, start({workbench.string(), "--report", study.string(), "-o", figures.string(),
                          "--format", "pdf,svg,png"},
                         quiet));
    const int status = await(child, job);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return {};
    std::error_code ignored;
    fs::remove_all(figures, ignored);
    if (job.stopRequested())
        return cancelled();
    return computeFailed(WIFEXITED(status)
                             ? "ended with exit code " + std::to_string(WEXITSTATUS(status))
                             : "ended by signal " + std::to_string(WTERMSIG(status)),
                         workbench.string());
}

} // namespace mla::cli
