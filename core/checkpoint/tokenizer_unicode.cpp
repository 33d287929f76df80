// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/tokenizer_unicode.h"

#include <algorithm>
#include <array>

#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/uniset.h>
#include <unicode/unistr.h>

namespace mla::tok
{
namespace
{

constexpr char32_t kReplacement = 0xFFFD;

struct Decoded {
    char32_t code;
    std::size_t length; ///< bytes; of the maximal ill-formed part when !valid
    bool valid;
};

bool isContinuation(unsigned char byte)
{
    return (byte & 0xC0U) == 0x80U;
}

/// Length of the sequence that `lead` starts and the range of its second byte (table 3-7 of the
/// Unicode standard); length 0 for a byte that starts none.
struct LeadByte {
    std::size_t length;
    unsigned char low, high;
};
LeadByte classify(unsigned char lead)
{
    if (lead < 0x80)
        return {1, 0, 0};
    if (lead < 0xC2 || lead > 0xF4)
        return {0, 0, 0};
    if (lead < 0xE0)
        return {2, 0x80, 0xBF};
    if (lead < 0xF0) {
        const unsigned char low = lead == 0xE0 ? 0xA0 : 0x80;
        const unsigned char high = lead == 0xED ? 0x9F : 0xBF;
        return {3, low, high};
    }
    const unsigned char low = lead == 0xF0 ? 0x90 : 0x80;
    const unsigned char high = lead == 0xF4 ? 0x8F : 0xBF;
    return {4, low, high};
}

Decoded decodeAt(std::string_view bytes, std::size_t at)
{
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[at + i]); };
    const LeadByte lead = classify(byte(0));
    if (lead.length <= 1)
        return {lead.length == 1 ? char32_t{byte(0)} : kReplacement, 1, lead.length == 1};
    char32_t code = byte(0) & (0xFFU >> (lead.length + 1));
    for (std::size_t i = 1; i < lead.length; ++i) {
        if (at + i >= bytes.size())
            return {kReplacement, i, false};
        const bool fits =
            i == 1 ? byte(1) >= lead.low && byte(1) <= lead.high : isContinuation(byte(i));
        if (!fits)
            return {kReplacement, i, false};
        code = (code << 6U) | (byte(i) & 0x3FU);
    }
    return {code, lead.length, true};
}

template <typename Range>
const Range* findRange(std::span<const Range> ranges, char32_t code)
{
    const auto after = std::upper_bound(ranges.begin(), ranges.end(), code,
                                        [](char32_t c, const Range& r) { return c < r.first; });
    if (after == ranges.begin())
        return nullptr;
    const Range& candidate = *std::prev(after);
    return code <= candidate.last ? &candidate : nullptr;
}

bool isAscii(std::string_view text)
{
    return std::all_of(text.begin(), text.end(),
                       [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool isMark(Category c)
{
    return c == Category::Mn || c == Category::Mc || c == Category::Me;
}
bool isLetter(Category c)
{
    return c >= Category::Lu && c <= Category::Lo;
}

char32_t lowerOf(char32_t code)
{
    const auto pairs = addedLowercase();
    const auto found =
        std::lower_bound(pairs.begin(), pairs.end(), code,
                         [](const LowercasePair& p, char32_t c) { return p.upper < c; });
    if (found != pairs.end() && found->upper == code)
        return found->lower;
    return static_cast<char32_t>(u_tolower(static_cast<UChar32>(code)));
}

const icu::Normalizer2* instanceOf(NormalForm form, UErrorCode& status)
{
    switch (form) {
    case NormalForm::NFC:
        return icu::Normalizer2::getNFCInstance(status);
    case NormalForm::NFD:
        return icu::Normalizer2::getNFDInstance(status);
    case NormalForm::NFKC:
        return icu::Normalizer2::getNFKCInstance(status);
    case NormalForm::NFKD:
        break;
    }
    return icu::Normalizer2::getNFKDInstance(status);
}

const icu::UnicodeSet& unicode9()
{
    static const icu::UnicodeSet set = [] {
        UErrorCode status = U_ZERO_ERROR;
        icu::UnicodeSet assigned(UNICODE_STRING_SIMPLE("[:age=9.0:]"), status);
        assigned.freeze();
        return assigned;
    }();
    return set;
}

} // namespace

char32_t nextCodePoint(std::string_view text, std::size_t& position)
{
    const Decoded decoded = decodeAt(text, position);
    position += decoded.length;
    return decoded.code;
}

char32_t previousCodePoint(std::string_view text, std::size_t& position)
{
    --position;
    while (position > 0 && isContinuation(static_cast<unsigned char>(text[position])))
        --position;
    return decodeAt(text, position).code;
}

void appendUtf8(std::string& text, char32_t code)
{
    const auto tail = [&](unsigned shift) {
        text += static_cast<char>(0x80U | ((code >> shift) & 0x3FU));
    };
    if (code < 0x80) {
        text += static_cast<char>(code);
    } else if (code < 0x800) {
        text += static_cast<char>(0xC0U | (code >> 6U));
        tail(0);
    } else if (code < 0x10000) {
        text += static_cast<char>(0xE0U | (code >> 12U));
        tail(6);
        tail(0);
    } else {
        text += static_cast<char>(0xF0U | (code >> 18U));
        tail(12);
        tail(6);
        tail(0);
    }
}

std::size_t codePointCount(std::string_view text)
{
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
        return !isContinuation(static_cast<unsigned char>(c));
    }));
}

bool isValidUtf8(std::string_view bytes)
{
    for (std::size_t at = 0; at < bytes.size();) {
        if (static_cast<unsigned char>(bytes[at]) < 0x80) {
            ++at;
            continue;
        }
        const Decoded decoded = decodeAt(bytes, at);
        if (!decoded.valid)
            return false;
        at += decoded.length;
    }
    return true;
}

std::string toValidUtf8(std::string_view bytes)
{
    std::string text;
    text.reserve(bytes.size());
    for (std::size_t at = 0; at < bytes.size();) {
        const Decoded decoded = decodeAt(bytes, at);
        appendUtf8(text, decoded.code);
        at += decoded.length;
    }
    return text;
}

Category categoryOf(char32_t code)
{
    if (const CategoryRange* added = findRange(addedCategories(), code))
        return added->category;
    return static_cast<Category>(u_charType(static_cast<UChar32>(code)));
}

bool isWhitespace(char32_t code)
{
    return u_hasBinaryProperty(static_cast<UChar32>(code), UCHAR_WHITE_SPACE);
}

bool isWordChar(char32_t code)
{
    constexpr char32_t nonJoiner = 0x200C, joiner = 0x200D;
    const Category category = categoryOf(code);
    return isLetter(category) || isMark(category) || category == Category::Nd ||
           category == Category::Nl || category == Category::Pc || code == nonJoiner ||
           code == joiner || u_hasBinaryProperty(static_cast<UChar32>(code), UCHAR_ALPHABETIC);
}

bool isNumeric(char32_t code)
{
    // The digits and numbers that Unicode 17 added.
    if ((code >= 0x11DE0 && code <= 0x11DE9) || (code >= 0x16FF4 && code <= 0x16FF6))
        return true;
    const Category category = categoryOf(code);
    return category == Category::Nd || category == Category::Nl || category == Category::No;
}

bool isPunctuation(char32_t code)
{
    if (code < 0x80)
        return code > 0x20 && code < 0x7F && !u_isalnum(static_cast<UChar32>(code));
    // Two signs were punctuation in Unicode 8 and are symbols or letters today.
    if (code == 0x166D || code == 0x111C9)
        return true;
    UVersionInfo age;
    u_charAge(static_cast<UChar32>(code), age);
    return age[0] != 0 && age[0] <= 8 &&
           (U_GET_GC_MASK(static_cast<UChar32>(code)) & U_GC_P_MASK) != 0;
}

std::string toLower(std::string_view text)
{
    std::string lower;
    lower.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const char32_t code = nextCodePoint(text, at);
        if (code == 0x130)
            lower += "i\xCC\x87"; // the only character whose lower case is longer than one
        else
            appendUtf8(lower, lowerOf(code));
    }
    return lower;
}

std::string normalize(std::string_view text, NormalForm form)
{
    if (isAscii(text))
        return std::string(text);
    UErrorCode status = U_ZERO_ERROR;
    const icu::Normalizer2* base = instanceOf(form, status);
    const icu::FilteredNormalizer2 filtered(*base, unicode9());
    const auto source = icu::UnicodeString::fromUTF8(
        icu::StringPiece(text.data(), static_cast<std::int32_t>(text.size())));
    icu::UnicodeString result;
    filtered.normalize(source, result, status);
    std::string out;
    result.toUTF8String(out);
    return out;
}

} // namespace mla::tok
