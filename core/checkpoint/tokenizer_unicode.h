// SPDX-License-Identifier: GPL-3.0-or-later
// UTF-8 and the character properties that tokenizers rely on, with the Unicode versions that the
// `tokenizers` library uses: its regex engine knows Unicode 16, its lower-casing 17. ICU and PCRE2
// as distributed are older, so the tables of tokenizer_unicode_additions.cpp fill the gap.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace mla::tok
{

/// Unicode general categories, in ICU's order (UCharCategory).
enum class Category : std::uint8_t {
    Cn,
    Lu,
    Ll,
    Lt,
    Lm,
    Lo,
    Mn,
    Me,
    Mc,
    Nd,
    Nl,
    No,
    Zs,
    Zl,
    Zp,
    Cc,
    Cf,
    Co,
    Cs,
    Pd,
    Ps,
    Pe,
    Pc,
    Po,
    Sm,
    Sc,
    Sk,
    So,
    Pi,
    Pf // clang-format keeps this list dense
};

struct CodeRange {
    char32_t first, last; ///< both included
};
struct CategoryRange {
    char32_t first, last;
    Category category;
};
struct LowercasePair {
    char32_t upper, lower;
};
/// Code points assigned after Unicode 14, with their category in Unicode 16.
std::span<const CategoryRange> addedCategories();
/// Ideographs assigned after Unicode 14.
std::span<const CodeRange> addedHan();
/// Lower-case mappings defined after Unicode 14, up to Unicode 17.
std::span<const LowercasePair> addedLowercase();

/// The code point at `position` of valid UTF-8, which is moved behind it.
char32_t nextCodePoint(std::string_view text, std::size_t& position);
/// The code point that ends before `position` (> 0) of valid UTF-8; `position` is moved to its
/// start.
char32_t previousCodePoint(std::string_view text, std::size_t& position);
void appendUtf8(std::string& text, char32_t code);
[[nodiscard]] std::size_t codePointCount(std::string_view text); ///< of valid UTF-8
[[nodiscard]] bool isValidUtf8(std::string_view bytes);
/// Each maximal ill-formed sequence becomes one U+FFFD, as in the Unicode standard, section 3.9.
[[nodiscard]] std::string toValidUtf8(std::string_view bytes);

[[nodiscard]] Category categoryOf(char32_t code);
[[nodiscard]] bool isWhitespace(char32_t code);  ///< property White_Space (25 characters)
[[nodiscard]] bool isWordChar(char32_t code);    ///< \w of Unicode technical standard 18
[[nodiscard]] bool isNumeric(char32_t code);     ///< category N, Unicode 17
[[nodiscard]] bool isPunctuation(char32_t code); ///< category P of Unicode 8, or ASCII punctuation
/// Character-wise lower case: no final-sigma rule, "İ" becomes two characters.
[[nodiscard]] std::string toLower(std::string_view text);

enum class NormalForm { NFC, NFD, NFKC, NFKD };
/// Normal form by the tables of Unicode 9, which the library uses; later characters stay as they
/// are.
[[nodiscard]] std::string normalize(std::string_view text, NormalForm form);

} // namespace mla::tok
