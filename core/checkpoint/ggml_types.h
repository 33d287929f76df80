// SPDX-License-Identifier: GPL-3.0-or-later
// Tensor encodings of ggml (github.com/ggml-org/ggml, src/ggml-common.h): numbers are stored in
// blocks along a row, most of them quantised with scales of their own. No torch here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace mla
{

/// The encodings that are read; the numbers are the format's.
enum class GgmlType : std::uint32_t {
    F32 = 0,
    F16 = 1,
    Q4_0 = 2,
    Q4_1 = 3,
    Q5_0 = 6,
    Q5_1 = 7,
    Q8_0 = 8,
    Q2_K = 10,
    Q3_K = 11,
    Q4_K = 12,
    Q5_K = 13,
    Q6_K = 14,
    BF16 = 30
};

struct GgmlTraits {
    GgmlType type;
    std::string_view name;
    std::uint32_t blockElements, blockBytes;
};
[[nodiscard]] const GgmlTraits& traitsOf(GgmlType type);
/// The encoding of a number in a file, if it is one that is read.
[[nodiscard]] std::optional<GgmlType> ggmlTypeFromNumber(std::uint32_t number);
/// A name for any number in a file: "IQ4_NL", or "type 99".
[[nodiscard]] std::string ggmlTypeText(std::uint32_t number);
/// "F32, F16, ...": the names of all encodings that are read.
[[nodiscard]] std::string ggmlTypesRead();

/// Decodes whole blocks: `to` holds as many numbers as `from` encodes.
void decodeGgml(GgmlType type, std::span<const std::byte> from, std::span<float> to);

} // namespace mla
