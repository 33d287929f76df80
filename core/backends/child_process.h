// SPDX-License-Identifier: GPL-3.0-or-later
// A program run beside this one that is spoken to in lines over pipes: how backends and chat
// templates reach Python. POSIX, no shell. No torch here.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/base/job.h"
#include "core/base/result.h"

namespace mla
{

struct ChildCommand {
    std::filesystem::path program;      ///< with a '/': that file; else it is looked for in PATH
    std::vector<std::string> arguments; ///< without the program's own name
    std::map<std::string, std::string> environment; ///< set on top of this process's own
};

/// A running child. Destroying it ends the child and everything the child started, and waits for
/// them; no zombie stays. The child holds no file of this process, and is in a process group of
/// its own: a terminal's Ctrl-C reaches it only through end(). One thread at a time may use it.
///
/// Every call that waits looks at `job` twenty times a second; when a stop is requested it ends
/// the child and returns Cancelled. A wait longer than `patience` ends the child too and is a
/// ComputeFailed error, as is a child that goes away; both quote the last lines of its standard
/// error.
class ChildProcess
{
public:
    using Patience = std::chrono::milliseconds;
    static constexpr Patience unlimited = Patience::max();

    /// BadInput, naming the program, if it cannot be run.
    static Result<ChildProcess> start(const ChildCommand& command);
    ChildProcess(ChildProcess&& other) noexcept;
    ChildProcess& operator=(ChildProcess&& other) noexcept;
    ~ChildProcess();

    /// Writes `line` and a newline to the child's standard input. What the child says meanwhile is
    /// kept for readLine, so that neither side can block the other.
    Status writeLine(JobContext& job, std::string_view line, Patience patience = unlimited);
    /// The next line of the child's standard output, without its newline; nothing when the output
    /// has ended. A last line without newline counts. Lines may be 256 MiB long.
    Result<std::optional<std::string>> readLine(JobContext& job, Patience patience);

    Status writeJson(JobContext& job, const nlohmann::json& value, Patience patience = unlimited);
    /// The next line as JSON; an error if the output has ended or the line is anything else.
    Result<nlohmann::json> readJson(JobContext& job, Patience patience);

    /// Closes the child's standard input, which asks a harness to end, and waits until it has.
    /// An exit status other than 0 is a ComputeFailed error.
    Status finish(JobContext& job, Patience patience);
    /// SIGTERM to the child's group, after two seconds SIGKILL. Does nothing when it has ended.
    void end() noexcept;

    [[nodiscard]] int pid() const; ///< -1 when it has ended and was waited for
    /// The last lines (at most 20) of its standard error so far.
    [[nodiscard]] std::vector<std::string> recentErrors() const;

private:
    struct Running;
    explicit ChildProcess(std::unique_ptr<Running> running);
    std::unique_ptr<Running> m_running;
};

} // namespace mla
