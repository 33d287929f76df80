// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/ggml_types.h"

#include <array>
#include <cstring>

#include "core/checkpoint/tensor_decode.h"

namespace mla
{

namespace
{

constexpr std::array<GgmlTraits, 13> traitsTable = {{{GgmlType::F32, "F32", 1, 4},
                                                     {GgmlType::F16, "F16", 1, 2},
                                                     {GgmlType::BF16, "BF16", 1, 2},
                                                     {GgmlType::Q4_0, "Q4_0", 32, 18},
                                                     {GgmlType::Q4_1, "Q4_1", 32, 20},
                                                     {GgmlType::Q5_0, "Q5_0", 32, 22},
                                                     {GgmlType::Q5_1, "Q5_1", 32, 24},
                                                     {GgmlType::Q8_0, "Q8_0", 32, 34},
                                                     {GgmlType::Q2_K, "Q2_K", 256, 84},
                                                     {GgmlType::Q3_K, "Q3_K", 256, 110},
                                                     {GgmlType::Q4_K, "Q4_K", 256, 144},
                                                     {GgmlType::Q5_K, "Q5_K", 256, 176},
                                                     {GgmlType::Q6_K, "Q6_K", 256, 210}}};

struct NamedNumber {
    std::uint32_t number;
    const char* name;
};
/// Encodings that are known by name only.
constexpr std::array<NamedNumber, 21> otherTypes = {
    {{9, "Q8_1"},          {15, "Q8_K"},   {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"},
     {19, "IQ1_S"},        {20, "IQ4_NL"}, {21, "IQ3_S"},   {22, "IQ2_S"},  {23, "IQ4_XS"},
     {24, "I8"},           {25, "I16"},    {26, "I32"},     {27, "I64"},    {28, "F64"},
     {29, "IQ1_M"},        {34, "TQ1_0"},  {35, "TQ2_0"},   {39, "MXFP4"},  {4, "Q4_2 (removed)"},
     {5, "Q4_3 (removed)"}}};

using Byte = std::uint8_t;

float halfAt(const Byte* bytes)
{
    return halfToFloat(static_cast<std::uint16_t>(bytes[0] | (bytes[1] << 8)));
}

unsigned low(Byte byte)
{
    return byte & 15U;
}
unsigned high(Byte byte)
{
    return byte >> 4U;
}

// The blocks of 32: a half-precision scale, with the types ending in _1 an offset, then the fifth
// bits of the types Q5, then 16 bytes whose low halves are numbers 0-15 and high halves 16-31.

void decodeQ4_0(const Byte* block, float* to)
{
    const float scale = halfAt(block);
    for (int i = 0; i < 16; ++i) {
        to[i] = scale * static_cast<float>(static_cast<int>(low(block[2 + i])) - 8);
        to[i + 16] = scale * static_cast<float>(static_cast<int>(high(block[2 + i])) - 8);
    }
}

void decodeQ4_1(const Byte* block, float* to)
{
    const float scale = halfAt(block), offset = halfAt(block + 2);
    for (int i = 0; i < 16; ++i) {
        to[i] = scale * static_cast<float>(low(block[4 + i])) + offset;
        to[i + 16] = scale * static_cast<float>(high(block[4 + i])) + offset;
    }
}

/// The 32 five-bit numbers of a block.
void unpackFive(const Byte* fifth, const Byte* quarters, unsigned* numbers)
{
    std::uint32_t bits = 0;
    std::memcpy(&bits, fifth, sizeof bits);
    for (unsigned i = 0; i < 16; ++i) {
        numbers[i] = low(quarters[i]) | (((bits >> i) & 1U) << 4U);
        numbers[i + 16] = high(quarters[i]) | (((bits >> (i + 16)) & 1U) << 4U);
    }
}

void decodeQ5_0(const Byte* block, float* to)
{
    const float scale = halfAt(block);
    unsigned numbers[32];
    unpackFive(block + 2, block + 6, numbers);
    for (int i = 0; i < 32; ++i)
        to[i] = scale * static_cast<float>(static_cast<int>(numbers[i]) - 16);
}

void decodeQ5_1(const Byte* block, float* to)
{
    const float scale = halfAt(block), offset = halfAt(block + 2);
    unsigned numbers[32];
    unpackFive(block + 4, block + 8, numbers);
    for (int i = 0; i < 32; ++i)
        to[i] = scale * static_cast<float>(numbers[i]) + offset;
}

void decodeQ8_0(const Byte* block, float* to)
{
    const float scale = halfAt(block);
    for (int i = 0; i < 32; ++i)
        to[i] = static_cast<float>(static_cast<std::int8_t>(block[2 + i])) * scale;
}

// The super-blocks of 256 (QK_K): groups of 16 or 32 numbers have small integer scales of their
// own, multiplied by a half-precision scale of the whole. `row` counts runs of 32 numbers.

/// Two-bit number i of a row: a byte holds those of four consecutive rows.
unsigned twoBits(const Byte* packed, int row, int i)
{
    return (packed[row / 4 * 32 + i] >> (2 * (row % 4))) & 3U;
}

/// Four-bit number i of a row: a byte holds those of two consecutive rows.
unsigned fourBits(const Byte* packed, int row, int i)
{
    return (packed[row / 2 * 32 + i] >> (4 * (row % 2))) & 15U;
}

void decodeQ2_K(const Byte* block, float* to)
{
    const Byte *scales = block, *packed = block + 16;
    const float scale = halfAt(block + 80), offset = halfAt(block + 82);
    for (int row = 0; row < 8; ++row)
        for (int i = 0; i < 32; ++i) {
            const Byte own = scales[row * 2 + i / 16];
            to[row * 32 + i] =
                scale * static_cast<float>(low(own)) * static_cast<float>(twoBits(packed, row, i)) -
                offset * static_cast<float>(high(own));
        }
}

/// The 16 signed six-bit scales of Q3_K in 12 bytes: four low bits each in 8 bytes, then the two
/// high bits of scales s, s + 4, s + 8 and s + 12 in one byte.
int scaleOfQ3_K(const Byte* packed, int s)
{
    const unsigned lowBits = s < 8 ? low(packed[s]) : high(packed[s - 8]);
    const unsigned highBits = (packed[8 + s % 4] >> (2 * (s / 4))) & 3U;
    return static_cast<int>(lowBits | (highBits << 4U)) - 32;
}

void decodeQ3_K(const Byte* block, float* to)
{
    const Byte *third = block, *packed = block + 32, *scales = block + 96;
    const float scale = halfAt(block + 108);
    for (int row = 0; row < 8; ++row)
        for (int half = 0; half < 2; ++half) {
            const float own = scale * static_cast<float>(scaleOfQ3_K(scales, row * 2 + half));
            for (int i = half * 16; i < half * 16 + 16; ++i) {
                const int lowered = (third[i] >> row) & 1 ? 0 : 4;
                const int number = static_cast<int>(twoBits(packed, row, i)) - lowered;
                to[row * 32 + i] = own * static_cast<float>(number);
            }
        }
}

struct ScaleAndOffset {
    unsigned scale, offset;
};
/// The eight pairs of six-bit numbers of Q4_K and Q5_K in 12 bytes: those of rows 0-3 in bytes 0-3
/// and 4-7, whose upper two bits belong to rows 4-7; the lower four bits of these in bytes 8-11.
ScaleAndOffset scaleOfQ4_K(const Byte* packed, int row)
{
    if (row < 4)
        return {packed[row] & 63U, packed[row + 4] & 63U};
    const Byte rest = packed[row + 4];
    return {low(rest) | ((packed[row - 4] >> 6U) << 4U), high(rest) | ((packed[row] >> 6U) << 4U)};
}

void decodeQ4_K(const Byte* block, float* to)
{
    const float scale = halfAt(block), offset = halfAt(block + 2);
    const Byte *scales = block + 4, *packed = block + 16;
    for (int row = 0; row < 8; ++row) {
        const ScaleAndOffset own = scaleOfQ4_K(scales, row);
        const float rowScale = scale * static_cast<float>(own.scale);
        const float rowOffset = offset * static_cast<float>(own.offset);
        for (int i = 0; i < 32; ++i)
            to[row * 32 + i] = rowScale * static_cast<float>(fourBits(packed, row, i)) - rowOffset;
    }
}

void decodeQ5_K(const Byte* block, float* to)
{
    const float scale = halfAt(block), offset = halfAt(block + 2);
    const Byte *scales = block + 4, *fifth = block + 16, *packed = block + 48;
    for (int row = 0; row < 8; ++row) {
        const ScaleAndOffset own = scaleOfQ4_K(scales, row);
        const float rowScale = scale * static_cast<float>(own.scale);
        const float rowOffset = offset * static_cast<float>(own.offset);
        for (int i = 0; i < 32; ++i) {
            const unsigned number = fourBits(packed, row, i) | (((fifth[i] >> row) & 1U) << 4U);
            to[row * 32 + i] = rowScale * static_cast<float>(number) - rowOffset;
        }
    }
}

void decodeQ6_K(const Byte* block, float* to)
{
    const Byte *lower = block, *upper = block + 128, *scales = block + 192;
    const float scale = halfAt(block + 208);
    for (int row = 0; row < 8; ++row)
        for (int i = 0; i < 32; ++i) {
            // The low bits lie in runs of 64: rows 0 and 1 in low halves, 2 and 3 in high ones.
            const Byte byte = lower[row / 4 * 64 + row % 2 * 32 + i];
            const unsigned lowBits = row % 4 < 2 ? low(byte) : high(byte);
            const int number = static_cast<int>(lowBits | (twoBits(upper, row, i) << 4U)) - 32;
            const auto own = static_cast<std::int8_t>(scales[row * 2 + i / 16]);
            to[row * 32 + i] = scale * static_cast<float>(own) * static_cast<float>(number);
        }
}

using DecodeBlock = void (*)(const Byte*, float*);
DecodeBlock blockDecoder(GgmlType type)
{
    switch (type) {
    case GgmlType::Q4_0:
        return decodeQ4_0;
    case GgmlType::Q4_1:
        return decodeQ4_1;
    case GgmlType::Q5_0:
        return decodeQ5_0;
    case GgmlType::Q5_1:
        return decodeQ5_1;
    case GgmlType::Q8_0:
        return decodeQ8_0;
    case GgmlType::Q2_K:
        return decodeQ2_K;
    case GgmlType::Q3_K:
        return decodeQ3_K;
    case GgmlType::Q4_K:
        return decodeQ4_K;
    case GgmlType::Q5_K:
        return decodeQ5_K;
    case GgmlType::Q6_K:
        return decodeQ6_K;
    case GgmlType::F32:
    case GgmlType::F16:
    case GgmlType::BF16:
        break;
    }
    return nullptr;
}

} // namespace

const GgmlTraits& traitsOf(GgmlType type)
{
    for (const GgmlTraits& traits : traitsTable)
        if (traits.type == type)
            return traits;
    return traitsTable.front(); // every value of the enumeration is in the table
}

std::optional<GgmlType> ggmlTypeFromNumber(std::uint32_t number)
{
    for (const GgmlTraits& traits : traitsTable)
        if (static_cast<std::uint32_t>(traits.type) == number)
            return traits.type;
    return std::nullopt;
}

std::string ggmlTypeText(std::uint32_t number)
{
    if (const auto type = ggmlTypeFromNumber(number))
        return std::string(traitsOf(*type).name);
    for (const NamedNumber& other : otherTypes)
        if (other.number == number)
            return other.name;
    return "type " + std::to_string(number);
}

std::string ggmlTypesRead()
{
    std::string text;
    for (const GgmlTraits& traits : traitsTable)
        text += (text.empty() ? "" : ", ") + std::string(traits.name);
    return text;
}

void decodeGgml(GgmlType type, std::span<const std::byte> from, std::span<float> to)
{
    const DecodeBlock decode = blockDecoder(type);
    if (!decode) {
        const DType plain = type == GgmlType::F32   ? DType::F32
                            : type == GgmlType::F16 ? DType::F16
                                                    : DType::BF16;
        decodeNumbers(plain, from, to);
        return;
    }
    const GgmlTraits& traits = traitsOf(type);
    const auto* block = reinterpret_cast<const Byte*>(from.data());
    for (std::size_t i = 0; i < to.size(); i += traits.blockElements) {
        decode(block, to.data() + i);
        block += traits.blockBytes;
    }
}

} // namespace mla
