// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/tensor_decode.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace mla
{

namespace
{

template <typename T>
T read(const std::byte* bytes)
{
    T value;
    std::memcpy(&value, bytes, sizeof(T)); // a file's tensors are not aligned
    return value;
}

constexpr std::uint32_t exponentBits = 0x7F800000U; // all set in NaN and infinities

bool isNonFinite(float value)
{
    return (std::bit_cast<std::uint32_t>(value) & exponentBits) == exponentBits;
}

std::array<float, 256> e4m3Table()
{
    std::array<float, 256> table = {};
    for (unsigned code = 0; code < table.size(); ++code) {
        const unsigned exponent = (code >> 3U) & 15U;
        const unsigned mantissa = code & 7U;
        float value = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                    : std::ldexp(static_cast<float>(8 + mantissa),
                                                 static_cast<int>(exponent) - 10);
        if (exponent == 15 && mantissa == 7)
            value = std::numeric_limits<float>::quiet_NaN();
        table[code] = code & 0x80U ? -value : value;
    }
    return table;
}

} // namespace

float e4m3ToFloat(std::uint8_t bits)
{
    static const std::array<float, 256> table = e4m3Table();
    return table[bits];
}

bool isDecodable(DType dtype)
{
    return dtype == DType::F64 || dtype == DType::F32 || dtype == DType::F16 ||
           dtype == DType::BF16 || dtype == DType::F8E4M3;
}

void decodeNumbers(DType dtype, std::span<const std::byte> from, std::span<float> to)
{
    const std::byte* bytes = from.data();
    const std::size_t count = to.size();
    switch (dtype) {
    case DType::F64:
        for (std::size_t i = 0; i < count; ++i)
            to[i] = static_cast<float>(read<double>(bytes + 8 * i));
        break;
    case DType::F32:
        if (count > 0)
            std::memcpy(to.data(), bytes, 4 * count);
        break;
    case DType::F16:
        for (std::size_t i = 0; i < count; ++i)
            to[i] = halfToFloat(read<std::uint16_t>(bytes + 2 * i));
        break;
    case DType::BF16:
        for (std::size_t i = 0; i < count; ++i)
            to[i] = bfloatToFloat(read<std::uint16_t>(bytes + 2 * i));
        break;
    case DType::F8E4M3:
        for (std::size_t i = 0; i < count; ++i)
            to[i] = e4m3ToFloat(read<std::uint8_t>(bytes + i));
        break;
    default:
        break; // isDecodable() says which ones are taken
    }
}

std::optional<NonFinite> findNonFinite(std::span<const float> numbers)
{
    // Without a branch per number the compiler checks several at a time.
    std::size_t count = 0;
    for (const float value : numbers)
        count += isNonFinite(value) ? 1 : 0;
    if (count == 0)
        return std::nullopt;
    std::size_t first = 0;
    while (!isNonFinite(numbers[first]))
        ++first;
    return NonFinite{first, count};
}

} // namespace mla
