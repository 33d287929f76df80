// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/backends/child_process.h"

#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include "core/backends/child_streams.h"
#include "core/base/json.h"

namespace mla
{
namespace
{

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kTick{50};
constexpr milliseconds kTermGrace{2000}; // between SIGTERM and SIGKILL
constexpr milliseconds kKillGrace{5000}; // a killed process that a device keeps goes later
constexpr milliseconds kLastWords{1000}; // for the exit status of a child that closed its streams
constexpr std::size_t kLongestLine = std::size_t{256} << 20;
constexpr std::size_t kQuotedLines = 5;

Clock::time_point deadlineOf(milliseconds patience)
{
    return patience == ChildProcess::unlimited ? Clock::time_point::max() : Clock::now() + patience;
}

/// This process's environment with `changes` on top, as NAME=VALUE.
std::vector<std::string> environmentWith(const std::map<std::string, std::string>& changes)
{
    std::vector<std::string> all;
    for (char** entry = environ; entry && *entry; ++entry) {
        const std::string_view text(*entry);
        if (!changes.contains(std::string(text.substr(0, text.find('=')))))
            all.emplace_back(text);
    }
    for (const auto& [name, value] : changes)
        all.push_back(name + "=" + value);
    return all;
}

std::vector<char*> pointersTo(std::vector<std::string>& texts)
{
    std::vector<char*> pointers;
    pointers.reserve(texts.size() + 1);
    for (std::string& text : texts)
        pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
}

/// What posix_spawn does between fork and exec: standard streams, no other file, a process group,
/// signals as a fresh program expects them.
class SpawnPlan
{
public:
    SpawnPlan(const Descriptor& input, const Descriptor& output, const Descriptor& errors)
    {
        posix_spawn_file_actions_init(&m_files);
        int standard = STDIN_FILENO;
        for (const Descriptor* stream : {&input, &output, &errors})
            posix_spawn_file_actions_adddup2(&m_files, stream->get(), standard++);
#if __GLIBC_PREREQ(2, 34)
        posix_spawn_file_actions_addclosefrom_np(&m_files, standard);
#endif
        posix_spawnattr_init(&m_attributes);
        sigset_t none, defaults;
        sigemptyset(&none);
        sigemptyset(&defaults);
        for (const int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGQUIT})
            sigaddset(&defaults, signal);
        posix_spawnattr_setsigmask(&m_attributes, &none);
        posix_spawnattr_setsigdefault(&m_attributes, &defaults);
        posix_spawnattr_setpgroup(&m_attributes, 0);
        posix_spawnattr_setflags(&m_attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                    POSIX_SPAWN_SETSIGDEF);
    }
    SpawnPlan(const SpawnPlan&) = delete;
    SpawnPlan& operator=(const SpawnPlan&) = delete;
    ~SpawnPlan()
    {
        posix_spawn_file_actions_destroy(&m_files);
        posix_spawnattr_destroy(&m_attributes);
    }
    /// 0, or the error number.
    int spawn(const ChildCommand& command, pid_t& pid) const
    {
        std::vector<std::string> words = {command.program.string()};
        words.insert(words.end(), command.arguments.begin(), command.arguments.end());
        std::vector<std::string> environment = environmentWith(command.environment);
        return ::posix_spawnp(&pid, words.front().c_str(), &m_files, &m_attributes,
                              pointersTo(words).data(), pointersTo(environment).data());
    }

private:
    posix_spawn_file_actions_t m_files{};
    posix_spawnattr_t m_attributes{};
};

} // namespace

struct ChildProcess::Running {
    std::string name; ///< for messages
    pid_t pid = -1;   ///< -1: ended and waited for
    Descriptor input, output, errors;
    LineBuffer said;
    LineTail complaints;
    std::optional<int> status; ///< as waitpid gives it

    /// Has the child itself ended? It is not waited for yet, so that its group stays its own.
    [[nodiscard]] bool gone() const
    {
        if (pid < 0)
            return true;
        siginfo_t info = {};
        const int failed =
            ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT);
        return failed != 0 ? errno != EINTR : info.si_pid == pid;
    }

    /// Moves what can be moved in one tick, and notices streams that end.
    void exchange(std::string_view& unwritten)
    {
        const bool roomy = said.size() <= kLongestLine;
        std::array<pollfd, 3> streams = {{{unwritten.empty() ? -1 : input.get(), POLLOUT, 0},
                                          {roomy ? output.get() : -1, POLLIN, 0},
                                          {errors.get(), POLLIN, 0}}};
        if (::poll(streams.data(), streams.size(), static_cast<int>(kTick.count())) <= 0) {
            // Something the child started may still hold its streams; they are not the child's.
            if (gone()) {
                output.close();
                errors.close();
                input.close();
            }
            return;
        }
        if (streams[0].revents != 0 && !writeSome(input, unwritten))
            input.close();
        if (streams[1].revents != 0 && !said.readSome(output))
            output.close();
        if (streams[2].revents != 0 && !complaints.readSome(errors))
            errors.close();
    }

    void listen()
    {
        std::string_view nothing;
        exchange(nothing);
    }

    bool waitUntilGone(milliseconds patience)
    {
        const auto deadline = deadlineOf(patience);
        while (!gone() && Clock::now() < deadline) {
            listen();
            if (said.size() > kLongestLine)
                (void)said.takeRest(); // a child that ends must not be held up by its own output
        }
        return gone();
    }

    /// What a child that is gone wrote before.
    void hearOut()
    {
        const auto enough = deadlineOf(kLastWords);
        while (errors.open() && Clock::now() < enough)
            listen();
    }

    /// Ends whatever is left of the child's group, and waits for the child, which is gone.
    void reap() noexcept
    {
        ::kill(-pid, SIGKILL);
        int how = 0;
        pid_t waited = 0;
        while ((waited = ::waitpid(pid, &how, 0)) < 0 && errno == EINTR) {
        }
        if (waited == pid)
            status = how;
        pid = -1;
    }

    void end() noexcept
    {
        if (pid < 0)
            return;
        input.close();
        ::kill(-pid, SIGTERM);
        if (!waitUntilGone(kTermGrace)) {
            ::kill(-pid, SIGKILL);
            if (!waitUntilGone(kKillGrace)) {
                std::thread([late = pid] { ::waitpid(late, nullptr, 0); }).detach();
                pid = -1;
                return;
            }
        }
        reap();
    }

    [[nodiscard]] std::string ending() const
    {
        if (!status)
            return {};
        if (WIFSIGNALED(*status))
            return std::string(" (") + ::strsignal(WTERMSIG(*status)) + ")";
        return " (exit status " + std::to_string(WEXITSTATUS(*status)) + ")";
    }

    /// Ends the child and says what happened, with its last words.
    Error failure(const std::string& what)
    {
        waitUntilGone(input.open() && output.open() ? milliseconds(0) : kLastWords);
        const bool itself = gone();
        if (itself)
            hearOut();
        end();
        std::string text = name + " " + what + (itself ? ending() : std::string());
        const std::deque<std::string> lines = complaints.lines();
        for (std::size_t i = lines.size() - std::min(lines.size(), kQuotedLines); i < lines.size();
             ++i)
            text += "\n" + lines[i];
        return computeFailed(std::move(text));
    }

    /// What every waiting call does before it goes on waiting.
    Status goOn(const JobContext& job, Clock::time_point deadline, const char* late)
    {
        if (job.stopRequested()) {
            end();
            return cancelled();
        }
        if (Clock::now() >= deadline)
            return failure(late);
        return {};
    }
};

ChildProcess::ChildProcess(std::unique_ptr<Running> running) : m_running(std::move(running)) {}
ChildProcess::ChildProcess(ChildProcess&& other) noexcept = default;

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept
{
    std::swap(m_running, other.m_running);
    return *this;
}

ChildProcess::~ChildProcess()
{
    end();
}

Result<ChildProcess> ChildProcess::start(const ChildCommand& command)
{
    MLA_TRY(input, Pipe::create());
    MLA_TRY(output, Pipe::create());
    MLA_TRY(errors, Pipe::create());
    for (const Descriptor* ours : {&input.writer, &output.reader, &errors.reader})
        MLA_CHECK(setNonBlocking(*ours));
    auto running = std::make_unique<Running>();
    running->name = command.program.filename().string();
    pid_t pid = -1;
    const int problem = SpawnPlan(input.reader, output.writer, errors.writer).spawn(command, pid);
    if (problem != 0)
        return badInput(std::string("cannot run the program: ") + std::strerror(problem),
                        command.program.string());
    running->pid = pid;
    running->input = std::move(input.writer);
    running->output = std::move(output.reader);
    running->errors = std::move(errors.reader);
    return ChildProcess(std::move(running));
}

Status ChildProcess::writeLine(JobContext& job, std::string_view line, Patience patience)
{
    const std::string text = std::string(line) + "\n";
    const auto deadline = deadlineOf(patience);
    for (std::string_view rest = text; !rest.empty();) {
        MLA_CHECK(m_running->goOn(job, deadline, "did not read its input in time"));
        if (!m_running->input.open())
            return m_running->failure("ended before it read its input");
        m_running->exchange(rest);
    }
    return {};
}

Result<std::optional<std::string>> ChildProcess::readLine(JobContext& job, Patience patience)
{
    const auto deadline = deadlineOf(patience);
    while (true) {
        if (std::optional<std::string> line = m_running->said.takeLine())
            return line;
        if (m_running->said.size() > kLongestLine)
            return m_running->failure("wrote a line of more than 256 MiB");
        if (!m_running->output.open()) {
            std::string rest = m_running->said.takeRest();
            return rest.empty() ? std::nullopt : std::optional(std::move(rest));
        }
        MLA_CHECK(m_running->goOn(job, deadline, "gave no answer in time and was ended"));
        m_running->listen();
    }
}

Status ChildProcess::writeJson(JobContext& job, const nlohmann::json& value, Patience patience)
{
    using Handler = nlohmann::json::error_handler_t;
    return writeLine(job, value.dump(-1, ' ', false, Handler::replace), patience);
}

Result<nlohmann::json> ChildProcess::readJson(JobContext& job, Patience patience)
{
    MLA_TRY(line, readLine(job, patience));
    if (!line)
        return m_running->failure("ended before it answered");
    Result<nlohmann::json> value = parseJson(*line, m_running->name);
    if (!value)
        return m_running->failure("answered something that is not JSON: " + line->substr(0, 200));
    return value;
}

Status ChildProcess::finish(JobContext& job, Patience patience)
{
    m_running->input.close();
    const auto deadline = deadlineOf(patience);
    while (!m_running->gone()) {
        MLA_CHECK(m_running->goOn(job, deadline, "did not end in time and was ended"));
        m_running->waitUntilGone(kTick);
    }
    m_running->hearOut();
    if (m_running->pid >= 0)
        m_running->reap();
    if (m_running->status.value_or(0) != 0)
        return m_running->failure("failed");
    return {};
}

void ChildProcess::end() noexcept
{
    if (m_running)
        m_running->end();
}

int ChildProcess::pid() const
{
    return m_running ? m_running->pid : -1;
}

std::vector<std::string> ChildProcess::recentErrors() const
{
    const std::deque<std::string> lines = m_running->complaints.lines();
    return {lines.begin(), lines.end()};
}

} // namespace mla
