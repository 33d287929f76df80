// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/backends/child_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <vector>

namespace mla
{
namespace
{

constexpr std::size_t kPiece = 1 << 16;       // bytes a read, the capacity of a pipe
constexpr std::size_t kCompactFrom = 1 << 20; // handed-out bytes that may stay in a buffer
constexpr std::size_t kTailLines = 20, kTailLineBytes = 500, kTailBytes = 1 << 16;
constexpr int kFirstFree = 3; // behind the standard streams

Error systemError(const char* what)
{
    return computeFailed(std::string("cannot ") + what + ": " + std::strerror(errno));
}

/// The same descriptor, or a copy of it behind the standard streams.
Result<Descriptor> behindStandardStreams(int descriptor)
{
    if (descriptor >= kFirstFree)
        return Descriptor(descriptor);
    const Descriptor low(descriptor);
    const int copy = ::fcntl(descriptor, F_DUPFD_CLOEXEC, kFirstFree);
    if (copy < 0)
        return systemError("copy a pipe");
    return Descriptor(copy);
}

/// Keeps SIGPIPE from this thread while it lives; one that came meanwhile is dropped.
class PipeSignalGuard
{
public:
    PipeSignalGuard()
    {
        sigemptyset(&m_pipe);
        sigaddset(&m_pipe, SIGPIPE);
        sigset_t pending;
        sigpending(&pending);
        m_wasPending = sigismember(&pending, SIGPIPE) == 1;
        pthread_sigmask(SIG_BLOCK, &m_pipe, &m_old);
    }
    PipeSignalGuard(const PipeSignalGuard&) = delete;
    PipeSignalGuard& operator=(const PipeSignalGuard&) = delete;
    ~PipeSignalGuard()
    {
        const timespec now = {};
        if (!m_wasPending)
            sigtimedwait(&m_pipe, nullptr, &now);
        pthread_sigmask(SIG_SETMASK, &m_old, nullptr);
    }

private:
    sigset_t m_pipe{}, m_old{};
    bool m_wasPending = false;
};

} // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept
{
    if (this != &other) {
        close();
        m_descriptor = std::exchange(other.m_descriptor, -1);
    }
    return *this;
}

void Descriptor::close() noexcept
{
    if (m_descriptor >= 0)
        ::close(std::exchange(m_descriptor, -1));
}

Result<Pipe> Pipe::create()
{
    std::array<int, 2> ends = {-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0)
        return systemError("make a pipe");
    auto reader = behindStandardStreams(ends[0]), writer = behindStandardStreams(ends[1]);
    if (!reader)
        return reader.error();
    if (!writer)
        return writer.error();
    return Pipe{std::move(*reader), std::move(*writer)};
}

Status setNonBlocking(const Descriptor& descriptor)
{
    const int flags = ::fcntl(descriptor.get(), F_GETFL);
    if (flags < 0 || ::fcntl(descriptor.get(), F_SETFL, flags | O_NONBLOCK) != 0)
        return systemError("set up a pipe");
    return {};
}

bool writeSome(const Descriptor& descriptor, std::string_view& rest)
{
    const PipeSignalGuard guard;
    const ssize_t written = ::write(descriptor.get(), rest.data(), rest.size());
    if (written < 0)
        return errno == EAGAIN || errno == EINTR;
    rest.remove_prefix(static_cast<std::size_t>(written));
    return true;
}

bool LineBuffer::readSome(const Descriptor& descriptor)
{
    std::array<char, kPiece> piece;
    const ssize_t got = ::read(descriptor.get(), piece.data(), piece.size());
    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    m_text.append(piece.data(), static_cast<std::size_t>(got));
    return got > 0;
}

std::optional<std::string> LineBuffer::takeLine()
{
    const std::size_t end = m_text.find('\n', std::max(m_begin, m_searched));
    if (end == std::string::npos) {
        m_searched = m_text.size();
        return std::nullopt;
    }
    std::string line = m_text.substr(m_begin, end - m_begin);
    m_begin = m_searched = end + 1;
    if (m_begin == m_text.size() || m_begin > kCompactFrom) {
        m_text.erase(0, m_begin);
        m_begin = m_searched = 0;
    }
    return line;
}

std::string LineBuffer::takeRest()
{
    std::string rest = m_text.substr(m_begin);
    m_text.clear();
    m_begin = m_searched = 0;
    return rest;
}

bool LineTail::readSome(const Descriptor& descriptor)
{
    const bool more = m_buffer.readSome(descriptor);
    while (std::optional<std::string> line = m_buffer.takeLine())
        keep(std::move(*line));
    if (m_buffer.size() > kTailBytes)
        keep(m_buffer.takeRest());
    return more;
}

void LineTail::keep(std::string line)
{
    if (line.ends_with('\r'))
        line.pop_back();
    line.erase(0, line.rfind('\r') + 1); // npos + 1 is 0
    std::erase_if(line, [](char c) { return static_cast<unsigned char>(c) < ' ' && c != '\t'; });
    if (line.size() > kTailLineBytes)
        line.resize(kTailLineBytes);
    if (line.empty())
        return;
    m_lines.push_back(std::move(line));
    if (m_lines.size() > kTailLines)
        m_lines.pop_front();
}

std::deque<std::string> LineTail::lines() const
{
    LineTail all = *this;
    all.keep(all.m_buffer.takeRest());
    return std::move(all.m_lines);
}

} // namespace mla
