// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/backends/python_packages.h"

#include <nlohmann/json.hpp>

#include "core/backends/child_process.h"
#include "core/backends/python_environment.h"

namespace mla
{

Result<std::vector<std::string>> missingPackages(JobContext& job,
                                                 const std::filesystem::path& python,
                                                 const std::vector<std::string>& packages)
{
    constexpr std::chrono::seconds patience{60};
    const char* const look = "import importlib.util, json, sys\n"
                             "print(json.dumps([name for name in sys.argv[1:]\n"
                             "                  if importlib.util.find_spec(name) is None]))\n";
    ChildCommand command{python, {"-c", look}, {{"PYTHONDONTWRITEBYTECODE", "1"}}};
    command.arguments.insert(command.arguments.end(), packages.begin(), packages.end());
    MLA_TRY(process, ChildProcess::start(command));
    MLA_TRY(answer, process.readJson(job, patience));
    MLA_CHECK(process.finish(job, patience));
    std::vector<std::string> missing;
    for (const nlohmann::json& name : answer)
        if (name.is_string())
            missing.push_back(name.get<std::string>());
    return missing;
}

Status checkBackend(JobContext& job, const std::string& backend, const std::string& python)
{
    if (backend == "native")
        return {};
    MLA_TRY(interpreter, findPython(python));
    const std::vector<std::string> needed = backend == "hf"
                                                ? std::vector<std::string>{"torch", "transformers"}
                                                : std::vector<std::string>{"vllm"};
    MLA_TRY(missing, missingPackages(job, interpreter, needed));
    if (!missing.empty())
        return lacksPackage(interpreter, missing.front());
    return {};
}

} // namespace mla
