// SPDX-License-Identifier: GPL-3.0-or-later
// The safetensors file format (github.com/huggingface/safetensors, format description in its
// README): 8 bytes little-endian header length, a JSON header, then the tensors' bytes. No torch
// here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace mla
{

enum class DType {
    F64,
    F32,
    F16,
    BF16,
    F8E4M3,
    F8E5M2,
    I64,
    I32,
    I16,
    I8,
    U64,
    U32,
    U16,
    U8,
    Bool
};
[[nodiscard]] std::size_t bytesPerElement(DType dtype);
[[nodiscard]] std::string_view dtypeName(DType dtype); ///< as in the header: "F32", "BF16", ...
[[nodiscard]] std::optional<DType> dtypeFromName(std::string_view name);

/// One tensor as the header describes it. Row-major, little-endian.
struct TensorInfo {
    DType dtype = DType::F32;
    std::vector<std::int64_t> shape;
    std::uint64_t begin = 0, end = 0; ///< byte range within the data section
    [[nodiscard]] std::int64_t elements() const;
};

/// A memory-mapped file. Opening checks the whole header: length, JSON, dtype, shape x dtype =
/// bytes, bounds, overlap, holes, integer overflow, duplicate names. Nothing is read before it is
/// checked.
class SafetensorsFile
{
public:
    static Result<SafetensorsFile> open(const std::filesystem::path& path);

    [[nodiscard]] const std::filesystem::path& path() const;
    [[nodiscard]] const std::map<std::string, TensorInfo>& tensors() const;
    [[nodiscard]] const std::map<std::string, std::string>& metadata() const;
    /// The tensor's bytes in the mapping; valid while any copy of this object lives.
    /// Alignment is not promised: copy before casting.
    [[nodiscard]] Result<std::span<const std::byte>> bytes(const std::string& name) const;

private:
    struct Impl;
    std::shared_ptr<const Impl> m_impl;
};

/// A tensor to write; `data` must stay valid until write() returns.
struct TensorView {
    std::string name;
    DType dtype = DType::F32;
    std::vector<std::int64_t> shape;
    std::span<const std::byte> data;
};
/// Writes to a temporary name beside `path`, fsyncs, renames. On failure nothing is left behind.
Status writeSafetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                        const std::map<std::string, std::string>& metadata = {{"format", "pt"}});

/// Streams tensors to one file when they do not fit in memory together: the header is written first
/// from the declared infos, then each tensor's bytes in declaration order. Within the file tensors
/// are placed by falling element size, so that every one of them is aligned.
class SafetensorsWriter
{
public:
    struct Declared {
        std::string name;
        DType dtype = DType::F32;
        std::vector<std::int64_t> shape;
    };
    static Result<SafetensorsWriter>
    create(const std::filesystem::path& path, std::vector<Declared> tensors,
           const std::map<std::string, std::string>& metadata = {{"format", "pt"}});
    SafetensorsWriter(SafetensorsWriter&&) noexcept;
    SafetensorsWriter& operator=(SafetensorsWriter&&) noexcept;
    ~SafetensorsWriter(); ///< without commit() the temporary file is removed

    /// The next declared tensor's bytes; a size that differs from its declaration is an error.
    Status append(std::span<const std::byte> data);
    Status commit(); ///< all tensors appended: fsync, rename

private:
    struct Impl;
    explicit SafetensorsWriter(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> m_impl;
};

} // namespace mla
