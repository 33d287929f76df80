// SPDX-License-Identifier: GPL-3.0-or-later
// The JSON header of a safetensors file: hostile until every number in it has been checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/checkpoint/safetensors.h"

namespace mla
{

constexpr std::size_t safetensorsLengthBytes = 8;             ///< header length, little-endian
constexpr std::uint64_t safetensorsHeaderLimit = 100'000'000; ///< bytes, as in the reference reader

struct SafetensorsHeader {
    std::map<std::string, TensorInfo> tensors;
    std::map<std::string, std::string> metadata;
};

/// The header's text within a file's bytes; checks its length against limit and file.
Result<std::string_view> headerText(std::span<const std::byte> file, const std::string& origin);
/// Parses and checks a header for a data section of `dataBytes`. As strict as the reference reader
/// (Rust crate `safetensors`): tensors cover the data section exactly, in any order, without
/// overlap or hole. Stricter in one thing: a tensor or key that is named twice is refused.
Result<SafetensorsHeader> parseSafetensorsHeader(std::string_view text, std::uint64_t dataBytes,
                                                 const std::string& origin);
/// shape x dtype in bytes, or nothing when a dimension is negative or the product overflows.
[[nodiscard]] std::optional<std::uint64_t> tensorBytes(DType dtype,
                                                       std::span<const std::int64_t> shape);

} // namespace mla
