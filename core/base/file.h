// SPDX-License-Identifier: GPL-3.0-or-later
// Durable files: a reader sees the old content or the new one, never half of either.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace mla
{

/// Whole content of a file, pipe or device. BadInput if it is missing, unreadable or a directory.
Result<std::string> readFile(const std::filesystem::path& path);
/// Temporary name in the same folder, fsync, rename over `path`, fsync of the folder.
Status writeFileAtomically(const std::filesystem::path& path, std::string_view content);
/// fsync of an existing file or folder.
Status syncToDisk(const std::filesystem::path& path);

/// A file that appears whole or not at all, written piece by piece. Destroyed without commit(), it
/// removes its temporary file and leaves `path` as it was.
class AtomicFile
{
public:
    /// Opens an empty temporary file beside `path`; the folder must exist.
    static Result<AtomicFile> create(const std::filesystem::path& path);
    AtomicFile(AtomicFile&& other) noexcept;
    AtomicFile& operator=(AtomicFile&& other) noexcept;
    ~AtomicFile();

    /// Writes `data` at byte `offset`, which may lie beyond what was written so far.
    Status writeAt(std::uint64_t offset, std::span<const std::byte> data);
    Status commit(); ///< fsync, rename over `path`, fsync of the folder

private:
    AtomicFile(std::filesystem::path path, std::filesystem::path temporary, int descriptor);
    void discard() noexcept;
    std::filesystem::path m_path, m_temporary;
    int m_descriptor = -1;
};

/// A directory that appears whole or not at all: filled under a temporary name beside `target`,
/// renamed by commit(). Destroyed without commit(), it removes what it wrote.
class StagedDirectory
{
public:
    /// Fails with Usage if `target` exists and `overwrite` is false (nothing is touched then), if
    /// it is not a directory, or if it holds the current or the home directory. Missing parents are
    /// made.
    static Result<StagedDirectory> create(const std::filesystem::path& target, bool overwrite);
    StagedDirectory(StagedDirectory&& other) noexcept;
    StagedDirectory& operator=(StagedDirectory&& other) noexcept;
    ~StagedDirectory();
    [[nodiscard]] const std::filesystem::path& path() const { return m_staging; } ///< write here
    /// fsyncs everything, then replaces an existing target only now: old and new change places, or
    /// the old one is renamed aside and comes back if the new one cannot be put in its place. Only
    /// then is the old one removed. Without `overwrite`, a target that appeared meanwhile stays.
    Status commit();

private:
    StagedDirectory(std::filesystem::path target, std::filesystem::path staging, bool overwrite);
    void discard() noexcept;
    Status replaceTarget(); ///< afterwards m_staging names the old directory
    std::filesystem::path m_target, m_staging;
    bool m_overwrite = false;
};

} // namespace mla
