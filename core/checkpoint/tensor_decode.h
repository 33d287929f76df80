// SPDX-License-Identifier: GPL-3.0-or-later
// Stored numbers to fp32. No torch here.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/checkpoint/safetensors.h"

namespace mla
{

/// IEEE binary16.
[[nodiscard]] inline float halfToFloat(std::uint16_t half)
{
    const std::uint32_t magnitude = half & 0x7FFFU;
    const std::uint32_t sign = (half & 0x8000U) << 16U;
    const std::uint32_t shifted = magnitude << 13U;
    constexpr std::uint32_t exponentStep = 112U << 23U; // fp32's bias is 112 larger
    std::uint32_t bits = shifted + exponentStep;
    if (magnitude >= 0x7C00U) // infinity, NaN
        bits += exponentStep;
    if (magnitude < 0x0400U) // zero, subnormal
        bits = std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * 0x1p-24F);
    return std::bit_cast<float>(bits | sign);
}

[[nodiscard]] inline float bfloatToFloat(std::uint16_t bits)
{
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

/// FP8 E4M3 with NaN but no infinity (0x7F and 0xFF), as PyTorch's float8_e4m3fn.
[[nodiscard]] float e4m3ToFloat(std::uint8_t bits);

/// True for the dtypes that decodeNumbers takes: F64, F32, F16, BF16 and F8_E4M3.
[[nodiscard]] bool isDecodable(DType dtype);
/// `from` holds to.size() numbers of `dtype`, unaligned.
void decodeNumbers(DType dtype, std::span<const std::byte> from, std::span<float> to);

struct NonFinite {
    std::size_t first = 0; ///< index of the first NaN or infinity
    std::size_t count = 0;
};
/// NaN and infinities among `numbers`, or nothing when all are finite.
[[nodiscard]] std::optional<NonFinite> findNonFinite(std::span<const float> numbers);

} // namespace mla
