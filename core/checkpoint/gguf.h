// SPDX-License-Identifier: GPL-3.0-or-later
// The GGUF file format, versions 2 and 3, little-endian (github.com/ggml-org/ggml, docs/gguf.md):
// a header of typed metadata and tensor descriptions, then the tensors' aligned bytes. No torch
// here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/checkpoint/ggml_types.h"

namespace mla
{

/// Types of metadata values; the numbers are the format's.
enum class GgufType : std::uint32_t {
    UInt8,
    Int8,
    UInt16,
    Int16,
    UInt32,
    Int32,
    Float32,
    Bool,
    String,
    Array,
    UInt64,
    Int64,
    Float64
};

/// One metadata value as it lies in the file, its extent already checked.
struct GgufValue {
    GgufType type = GgufType::UInt8; ///< of an array: of its elements
    bool isArray = false;
    std::uint64_t count = 1;          ///< elements
    std::span<const std::byte> bytes; ///< the elements' encodings, one after another
};

/// Key -> value. Reading a key that is absent or of another kind is an error that names the file
/// and the key. Values are decoded when they are asked for. Valid while its GgufFile lives.
class GgufMetadata
{
public:
    GgufMetadata() = default;
    GgufMetadata(std::string origin, std::map<std::string, GgufValue> values)
        : m_origin(std::move(origin)), m_values(std::move(values))
    {
    }

    [[nodiscard]] const std::map<std::string, GgufValue>& values() const { return m_values; }
    [[nodiscard]] bool has(const std::string& key) const { return m_values.contains(key); }

    Result<std::string> text(const std::string& key) const; ///< valid UTF-8
    Result<bool> boolean(const std::string& key) const;
    Result<std::int64_t> integer(const std::string& key) const; ///< any integer type
    Result<double> number(const std::string& key) const;        ///< any number type, finite
    /// Arrays. Strings are valid UTF-8.
    Result<std::vector<std::string>> texts(const std::string& key) const;
    Result<std::vector<std::int64_t>> integers(const std::string& key) const;
    Result<std::vector<double>> numbers(const std::string& key) const;
    /// The same with a fallback for an absent key; a wrong kind stays an error.
    Result<std::string> text(const std::string& key, const std::string& fallback) const;
    Result<bool> boolean(const std::string& key, bool fallback) const;
    Result<std::int64_t> integer(const std::string& key, std::int64_t fallback) const;
    Result<double> number(const std::string& key, double fallback) const;

private:
    [[nodiscard]] Result<GgufValue> value(const std::string& key, bool array) const;
    [[nodiscard]] Error wrongKind(const std::string& key, const char* expected) const;

    std::string m_origin; ///< names the file in errors
    std::map<std::string, GgufValue> m_values;
};

/// One tensor as the header describes it.
struct GgufTensor {
    GgmlType type = GgmlType::F32;
    std::vector<std::int64_t> shape;  ///< row-major, slowest dimension first, as in safetensors
    std::uint64_t begin = 0, end = 0; ///< byte range within the data section
};

/// A memory-mapped file. Opening checks the whole header: magic, version, counts, lengths, types,
/// duplicate names, nesting, shapes, alignment, bounds, overlap. Nothing is allocated from a number
/// that the file's size does not bear out.
class GgufFile
{
public:
    static Result<GgufFile> open(const std::filesystem::path& path);

    [[nodiscard]] const std::filesystem::path& path() const;
    [[nodiscard]] const GgufMetadata& metadata() const;
    [[nodiscard]] const std::map<std::string, GgufTensor>& tensors() const;
    /// A tensor's bytes in the mapping; valid while any copy of this object lives.
    Result<std::span<const std::byte>> bytes(const std::string& name) const;

private:
    struct Impl;
    std::shared_ptr<const Impl> m_impl;
};

/// The GGUF file that `path` stands for: the file itself if its name ends in .gguf, the only one of
/// a directory without config.json; nothing for any other path. Two of them are an error.
Result<std::optional<std::filesystem::path>> findGguf(const std::filesystem::path& path);

} // namespace mla
