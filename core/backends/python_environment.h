// SPDX-License-Identifier: GPL-3.0-or-later
// Where Python with Transformers is, and the scripts of resources/python that answer JSON lines.
// No torch here.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/backends/child_process.h"

namespace mla
{

/// The interpreter: `chosen` if not empty, else $MLA_PYTHON, else that of the environment that
/// `installer/setup.sh --python` made last. A Usage error says what is missing and how to get it.
Result<std::filesystem::path> findPython(const std::string& chosen);

/// A Usage error: `python` is without a package, and how to get it.
Error lacksPackage(const std::filesystem::path& python, const std::string& package);

/// One script of resources/python as a server: every request is a JSON object on a line, answered
/// by one or more (resources/python/json_lines.py). It runs offline, and ends when this process
/// does.
class PythonHarness
{
public:
    /// `script`: a file name in resources/python. `environment` is set on top of this process's.
    static Result<PythonHarness> start(const std::filesystem::path& python,
                                       const std::string& script,
                                       std::map<std::string, std::string> environment = {});

    /// Sends a request and waits for its first answer. What the script raises is a ComputeFailed
    /// error with the exception's text; a package that is missing is a Usage error that names it.
    Result<nlohmann::json> ask(JobContext& job, const nlohmann::json& request,
                               ChildProcess::Patience patience);
    /// A further answer to the same request.
    Result<nlohmann::json> next(JobContext& job, ChildProcess::Patience patience);
    /// No more requests: waits for the script's end.
    Status finish(JobContext& job);

    [[nodiscard]] const ChildProcess& process() const { return m_process; }

private:
    PythonHarness(ChildProcess process, std::filesystem::path python)
        : m_process(std::move(process)), m_python(std::move(python))
    {
    }
    ChildProcess m_process;
    std::filesystem::path m_python;
};

} // namespace mla
