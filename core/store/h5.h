// SPDX-License-Identifier: GPL-3.0-or-later
// RAII over the HDF5 C API: files, groups, datasets, attributes. Errors name the HDF5 path.
// HDF5 runs in one thread at a time: a File holds the process-wide lock while it lives, so open
// late and close early. Groups must not outlive their File. No hdf5.h in this header.
//
// Lock policy. Files are written in memory and put in place by rename, so a reader elsewhere (h5py
// holds a shared flock) never blocks a writer here. Opening takes a shared flock where the file
// system has locks: a file that another program holds for writing is a named error.
// External links are switched off in the whole process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/base/result.h"

namespace mla::h5
{

/// Element types of datasets; integers are stored little-endian at their own width.
template <typename T>
concept Number = std::is_same_v<T, std::uint8_t> || std::is_same_v<T, std::int32_t> ||
    std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::uint64_t> ||
    std::is_same_v<T, double>;

/// An HDF5 identifier that closes itself.
class Handle
{
public:
    using Close = int (*)(std::int64_t);
    Handle() = default;
    Handle(std::int64_t id, Close close) : m_id(id), m_close(close) {}
    Handle(Handle&& other) noexcept;
    Handle& operator=(Handle&& other) noexcept;
    ~Handle();
    [[nodiscard]] std::int64_t id() const { return m_id; }
    [[nodiscard]] bool valid() const { return m_id >= 0; }

private:
    std::int64_t m_id = -1;
    Close m_close = nullptr;
};

/// Row-major 2-D array.
template <typename T>
struct Matrix {
    std::size_t rows = 0, columns = 0;
    std::vector<T> values;
};

/// One group. Names are single path components (core/store/schema.h: safeName).
class Group
{
public:
    [[nodiscard]] const std::string& path() const { return m_path; }
    Result<Group> create(const std::string& name);
    Result<Group> open(const std::string& name) const;
    [[nodiscard]] bool has(const std::string& name) const;
    /// Names of the subgroups, in name order. Soft and external links are left out.
    Result<std::vector<std::string>> subgroups() const;

    template <Number T>
    Status writeScalar(const std::string& name, T value);
    template <Number T>
    Status writeVector(const std::string& name, std::span<const T> values);
    template <Number T>
    Status writeMatrix(const std::string& name, std::size_t rows, std::size_t columns,
                       std::span<const T> values);
    /// UTF-8, fixed length; NUL bytes at the end are not kept.
    Status writeText(const std::string& name, std::string_view text);
    Status writeTexts(const std::string& name, const std::vector<std::string>& texts);

    /// Reading allocates no more than the file really holds. Integers wider than T are refused.
    template <Number T>
    Result<T> readScalar(const std::string& name) const;
    template <Number T>
    Result<std::vector<T>> readVector(const std::string& name) const;
    template <Number T>
    Result<Matrix<T>> readMatrix(const std::string& name) const;
    Result<std::string> readText(const std::string& name) const;
    Result<std::vector<std::string>> readTexts(const std::string& name) const;

    [[nodiscard]] bool hasAttribute(const std::string& name) const;
    template <Number T>
    Status setAttribute(const std::string& name, T value);
    /// UTF-8 of variable length, so that h5py shows a str.
    Status setTextAttribute(const std::string& name, const std::string& text);
    /// Integers of any width are read if the value fits T.
    template <Number T>
    Result<T> attribute(const std::string& name) const;
    Result<std::string> textAttribute(const std::string& name) const;

private:
    friend class File;
    Group(Handle handle, std::string path) : m_handle(std::move(handle)), m_path(std::move(path)) {}
    [[nodiscard]] std::string child(const std::string& name) const;
    Handle m_handle;
    std::string m_path; ///< "" for the root
};

class File
{
public:
    /// Opens for reading. Missing, empty, truncated, foreign and locked files are BadInput errors.
    static Result<File> open(const std::filesystem::path& path);
    /// A new file that exists in memory only.
    static Result<File> create();

    [[nodiscard]] Group& root() { return m_root; }
    /// The bytes of the file as they belong on disk.
    Result<std::string> image();

private:
    File(std::unique_lock<std::recursive_mutex> lock, Handle handle, Group root);
    // Declared in this order: the group closes first, the lock is released last.
    std::unique_lock<std::recursive_mutex> m_lock;
    Handle m_handle;
    Group m_root;
};

} // namespace mla::h5
