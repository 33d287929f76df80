// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/tokenizer_regex_classes.h"

#include <array>
#include <string_view>
#include <utility>

#include "core/checkpoint/tokenizer_unicode.h"

namespace mla::tok
{
namespace
{

constexpr std::string_view kSpaceRanges =
    R"(\x{9}-\x{D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
// Oniguruma counts the superscripts and fractions of Latin-1 as word characters.
constexpr std::string_view kWordItems =
    R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE})";

/// Two-letter names in the order of Category.
constexpr std::string_view kCategoryNames = "CnLuLlLtLmLoMnMeMcNdNlNoZsZlZpCcCfCoCsPdPsPePcPoSmSc"
                                            "SkSoPiPf";

bool inCategory(Category category, std::string_view name)
{
    return kCategoryNames.substr(2 * static_cast<std::size_t>(category), name.size()) == name;
}

std::string addedRanges(std::string_view name)
{
    std::string items;
    for (const CategoryRange& range : addedCategories())
        if (inCategory(range.category, name))
            items += escapedCodePoint(range.first) + "-" + escapedCodePoint(range.last);
    return items;
}

} // namespace

std::string escapedCodePoint(char32_t code)
{
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string text;
    for (; code != 0 || text.empty(); code >>= 4U)
        text.insert(text.begin(), digits[code & 15U]);
    return "\\x{" + text + "}";
}

std::string spaceItems()
{
    return std::string(kSpaceRanges);
}

std::optional<std::string> propertyItems(std::string name)
{
    constexpr std::array<std::pair<std::string_view, std::string_view>, 5> longNames{
        {{"Letter", "L"}, {"Number", "N"}, {"Punctuation", "P"}, {"Symbol", "S"}, {"Mark", "M"}}};
    for (const auto& [longName, shortName] : longNames)
        if (name == longName)
            name = shortName;
    if (name == "Han") {
        std::string items = "\\p{sc:Han}";
        for (const CodeRange& range : addedHan())
            items += escapedCodePoint(range.first) + "-" + escapedCodePoint(range.last);
        return items;
    }
    constexpr std::array<std::string_view, 24> known{
        "L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "N", "Nd", "Nl", "No", "P",
        "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S", "Sm", "Sc", "Sk", "So"};
    for (const std::string_view candidate : known)
        if (name == candidate)
            return "\\p{" + name + "}" + addedRanges(name);
    if (name == "Z" || name == "Zs" || name == "Cc")
        return "\\p{" + name + "}"; // closed sets: nothing was added to them
    return std::nullopt;
}

std::string wordItems()
{
    std::string items(kWordItems);
    for (const std::string_view name : {"L", "M", "Nd", "Nl", "Pc"})
        items += addedRanges(name);
    return items;
}

std::optional<char32_t> hexCodePoint(std::string_view text, std::size_t& position,
                                     const HexForm& form)
{
    std::size_t at = position + form.skip;
    char32_t code = 0;
    int count = 0;
    for (; count < form.most && at < text.size(); ++count, ++at) {
        const auto lower = static_cast<char>(text[at] | (text[at] > '9' ? 0x20 : 0));
        const std::size_t digit = std::string_view("0123456789abcdef").find(lower);
        if (digit == std::string_view::npos)
            break;
        code = code * 16 + static_cast<char32_t>(digit);
    }
    const bool closed = !form.braced || (at < text.size() && text[at] == '}');
    if (count < form.least || !closed || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
        return std::nullopt;
    position = at + (form.braced ? 1 : 0);
    return code;
}

} // namespace mla::tok
