// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/tokenizer_bytelevel.h"

#include <array>

#include "core/checkpoint/tokenizer_unicode.h"

namespace mla::tok
{
namespace
{

constexpr char32_t kFirstFree = 0x100; ///< where the unprintable bytes go, in order

constexpr bool isPrintable(unsigned byte)
{
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
}

struct ByteTable {
    std::array<std::array<char, 2>, 256> characters{};
    std::array<unsigned char, 256> lengths{};
    std::array<short, 0x180> bytes{}; ///< by code point, or -1

    ByteTable()
    {
        bytes.fill(-1);
        char32_t free = kFirstFree;
        for (unsigned byte = 0; byte < 256; ++byte) {
            const char32_t code = isPrintable(byte) ? byte : free++;
            std::string text;
            appendUtf8(text, code);
            text.copy(characters[byte].data(), text.size());
            lengths[byte] = static_cast<unsigned char>(text.size());
            bytes[code] = static_cast<short>(byte);
        }
    }
};

const ByteTable& table()
{
    static const ByteTable built;
    return built;
}

} // namespace

void appendByteLevel(std::string& out, std::string_view bytes)
{
    const ByteTable& map = table();
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        out.append(map.characters[byte].data(), map.lengths[byte]);
    }
}

std::optional<unsigned char> byteOfCharacter(char32_t code)
{
    const ByteTable& map = table();
    if (code >= map.bytes.size() || map.bytes[code] < 0)
        return std::nullopt;
    return static_cast<unsigned char>(map.bytes[code]);
}

} // namespace mla::tok
