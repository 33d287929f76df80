// SPDX-License-Identifier: GPL-3.0-or-later
// A file's bytes without reading them all: the kernel brings in the pages that are touched.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "core/base/result.h"

namespace mla
{

/// A read-only mapping of a whole regular file. An empty file gives no bytes.
class FileMapping
{
public:
    FileMapping() = default;
    FileMapping(const FileMapping&) = delete;
    FileMapping& operator=(const FileMapping&) = delete;
    ~FileMapping();

    /// Called once. BadInput if the file is missing, unreadable or not a regular file.
    Status map(const std::filesystem::path& path);
    /// Valid while this object lives. Alignment of what lies within is not promised.
    [[nodiscard]] std::span<const std::byte> bytes() const
    {
        return {static_cast<const std::byte*>(m_address), m_size};
    }

private:
    void* m_address = nullptr;
    std::size_t m_size = 0;
};

} // namespace mla
