// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/backends/python_environment.h"

#include <unistd.h>

#include <cstdlib>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/resources.h"

namespace mla
{
namespace
{

namespace fs = std::filesystem;
using nlohmann::json;

constexpr auto kInstall = "installer/setup.sh --python installs Transformers, installer/setup.sh "
                          "--backends vLLM too (from a package: mla-draft-setup in its place); or "
                          "name a Python that has them in MLA_PYTHON";
constexpr std::chrono::seconds kEndPatience{30};

std::string variable(const char* name)
{
    const char* value = std::getenv(name);
    return value ? value : "";
}

bool canRun(const fs::path& program)
{
    std::error_code ignored;
    return fs::is_regular_file(program, ignored) && ::access(program.c_str(), X_OK) == 0;
}

Result<fs::path> named(const std::string& program, const char* where)
{
    if (canRun(program))
        return fs::absolute(program);
    return usageError(std::string(where) + " names no program that can be run: " + program,
                      "expected a Python interpreter, for example /usr/bin/python3");
}

/// The file in which installer/setup.sh leaves the folder of its newest environment.
fs::path installedNote()
{
    const std::string cache = variable("XDG_CACHE_HOME"), home = variable("HOME");
    if (cache.empty() && home.empty())
        return {};
    return (cache.empty() ? fs::path(home) / ".cache" : fs::path(cache)) / "mla-draft-workbench" /
           "python-environment";
}

} // namespace

Result<fs::path> findPython(const std::string& chosen)
{
    if (!chosen.empty())
        return named(chosen, "--python");
    if (const std::string set = variable("MLA_PYTHON"); !set.empty())
        return named(set, "MLA_PYTHON");
    const fs::path note = installedNote();
    std::error_code ignored;
    if (note.empty() || !fs::is_regular_file(note, ignored))
        return usageError("there is no Python environment with Transformers", kInstall);
    MLA_TRY(text, readFile(note));
    const fs::path folder = text.substr(0, text.find('\n'));
    if (!fs::is_regular_file(folder / "complete", ignored) || !canRun(folder / "bin/python"))
        return usageError("the Python environment in " + folder.string() + " is not whole",
                          kInstall);
    return folder / "bin/python";
}

Error lacksPackage(const fs::path& python, const std::string& package)
{
    return usageError(python.string() + " lacks the package " + package, kInstall);
}

Result<PythonHarness> PythonHarness::start(const fs::path& python, const std::string& script,
                                           std::map<std::string, std::string> environment)
{
    MLA_TRY(resources, resourceDirectory());
    const fs::path file = resources / "python" / script;
    std::error_code ignored;
    if (!fs::is_regular_file(file, ignored))
        return badInput("the program's own script is missing", file.string());
    ChildCommand command{python, {file.string()}, std::move(environment)};
    // Nothing is fetched, and nothing written beside the scripts, which may be installed read-only.
    command.environment.insert({{"HF_HUB_OFFLINE", "1"},
                                {"PYTHONDONTWRITEBYTECODE", "1"},
                                {"PYTHONUNBUFFERED", "1"},
                                {"PYTHONUTF8", "1"}});
    MLA_TRY(process, ChildProcess::start(command));
    return PythonHarness(std::move(process), python);
}

Result<json> PythonHarness::ask(JobContext& job, const json& request,
                                ChildProcess::Patience patience)
{
    MLA_CHECK(m_process.writeJson(job, request, patience));
    return next(job, patience);
}

Result<json> PythonHarness::next(JobContext& job, ChildProcess::Patience patience)
{
    MLA_TRY(answer, m_process.readJson(job, patience));
    if (!answer.is_object())
        return computeFailed("answered " + answer.dump().substr(0, 80) + ", expected an object",
                             m_python.string());
    const auto problem = answer.find("error");
    if (problem == answer.end())
        return std::move(answer);
    const std::string text = problem->is_string() ? problem->get<std::string>() : problem->dump();
    if (const auto lacking = answer.find("missing"); lacking != answer.end())
        return lacksPackage(m_python, lacking->is_string() ? lacking->get<std::string>() : text);
    return computeFailed(text, m_python.string());
}

Status PythonHarness::finish(JobContext& job)
{
    return m_process.finish(job, kEndPatience);
}

} // namespace mla
