// SPDX-License-Identifier: GPL-3.0-or-later
// The header of a GGUF file: hostile until every number in it has been checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "core/base/result.h"
#include "core/checkpoint/gguf.h"

namespace mla
{

struct GgufHeader {
    GgufMetadata metadata;
    std::map<std::string, GgufTensor> tensors;
    std::uint64_t dataStart = 0; ///< first byte of the data section within the file
};

/// Parses and checks the header of a whole file's bytes, which must outlive the result. As strict
/// as llama.cpp's reader on sizes and alignment, stricter on repeated keys and on UTF-8.
Result<GgufHeader> parseGgufHeader(std::span<const std::byte> file, const std::string& origin);

/// Bytes of one value of a scalar type; 0 for strings and arrays.
[[nodiscard]] std::size_t ggufTypeBytes(GgufType type);

} // namespace mla
