// SPDX-License-Identifier: GPL-3.0-or-later
// Pipes and text buffers of a child process.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/result.h"

namespace mla
{

/// Owns a file descriptor.
class Descriptor
{
public:
    Descriptor() = default;
    explicit Descriptor(int descriptor) : m_descriptor(descriptor) {}
    Descriptor(Descriptor&& other) noexcept : m_descriptor(std::exchange(other.m_descriptor, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept;
    ~Descriptor() { close(); }

    [[nodiscard]] bool open() const { return m_descriptor >= 0; }
    [[nodiscard]] int get() const { return m_descriptor; } ///< -1 when closed
    void close() noexcept;

private:
    int m_descriptor = -1;
};

/// Both ends close on exec and are above 2, so that a child's standard streams can be put there.
struct Pipe {
    Descriptor reader, writer;
    static Result<Pipe> create();
};
Status setNonBlocking(const Descriptor& descriptor);

/// Writes what fits. False when nobody reads any more (no SIGPIPE is raised) or on an error.
bool writeSome(const Descriptor& descriptor, std::string_view& rest);

/// Text that arrives in pieces and leaves in lines.
class LineBuffer
{
public:
    /// Reads once what is there. False at the end of the stream or on an error.
    bool readSome(const Descriptor& descriptor);
    std::optional<std::string> takeLine(); ///< a whole line, without its newline
    std::string takeRest();                ///< everything that is left
    [[nodiscard]] std::size_t size() const { return m_text.size() - m_begin; }

private:
    std::string m_text;
    std::size_t m_begin = 0;    ///< what lies before it was handed out
    std::size_t m_searched = 0; ///< no newline between m_begin and this
};

/// The last lines of a stream, printable, each cut to a readable length. A carriage return starts
/// its line anew, as a progress bar does.
class LineTail
{
public:
    bool readSome(const Descriptor& descriptor);
    [[nodiscard]] std::deque<std::string> lines() const;

private:
    void keep(std::string line);
    LineBuffer m_buffer;
    std::deque<std::string> m_lines;
};

} // namespace mla
