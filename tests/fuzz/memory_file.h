// SPDX-License-Identifier: GPL-3.0-or-later
// A fuzzer's input as a file that lies in memory only, for readers that take a path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

namespace mla::test
{

class MemoryFile
{
public:
    MemoryFile(const std::uint8_t* data, std::size_t size) : m_file(::memfd_create("input", 0))
    {
        if (m_file < 0 || ::write(m_file, data, size) != static_cast<ssize_t>(size) ||
            ::lseek(m_file, 0, SEEK_SET) != 0)
            std::abort(); // the machine's fault, not the input's
    }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;
    ~MemoryFile() { ::close(m_file); }
    [[nodiscard]] std::filesystem::path path() const
    {
        return "/proc/self/fd/" + std::to_string(m_file);
    }

private:
    int m_file;
};

} // namespace mla::test
