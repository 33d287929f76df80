// SPDX-License-Identifier: GPL-3.0-or-later
// The "pre_tokenizer" of a tokenizer.json: cuts normalized text into the words that BPE works on.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/result.h"
#include "core/checkpoint/tokenizer_json.h"
#include "core/checkpoint/tokenizer_regex.h"

namespace mla::tok
{

/// Text with the words found in it. Words are in order, not empty, and need not cover the text.
struct Words {
    struct Span {
        std::size_t begin, end;
        bool atStart; ///< it begins where the user's text begins
    };
    std::string text;
    std::vector<Span> spans;
};

/// What happens to the matches of a split.
enum class Behaviour { Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous };

class PreTokenizer
{
public:
    /// A null node is the pre-tokenizer that leaves the text whole.
    static Result<PreTokenizer> create(const JsonNode& node);
    void apply(Words& words) const;
    [[nodiscard]] bool isByteLevel() const;  ///< a step maps bytes to GPT-2's 256 characters
    [[nodiscard]] bool looksAtStart() const; ///< the first word of the text is treated otherwise

private:
    struct Split {
        Pattern pattern;
        Behaviour behaviour;
        bool invert;
    };
    /// Split on single characters that `matches` accepts.
    struct CharacterSplit {
        bool (*matches)(char32_t);
        Behaviour behaviour;
    };
    struct CharDelimiter {
        char32_t delimiter;
        Behaviour behaviour;
    };
    struct WordsAndSymbols {
    }; ///< "Whitespace": \w+|[^\w\s]+
    struct PrefixSpace {
    };
    struct ByteMap {
    };
    struct Metaspace {
        enum class Prepend { Never, First, Always } prepend;
        std::string replacement;
    };
    using Step = std::variant<Split, CharacterSplit, CharDelimiter, WordsAndSymbols, PrefixSpace,
                              ByteMap, Metaspace>;

    Status add(const JsonNode& node);
    Status addByteLevel(const JsonNode& node);
    Status addSplit(const JsonNode& node);
    Status addMetaspace(const JsonNode& node);
    static void applyStep(const Split& step, Words& words);
    static void applyStep(const CharacterSplit& step, Words& words);
    static void applyStep(const CharDelimiter& step, Words& words);
    static void applyStep(const WordsAndSymbols& step, Words& words);
    static void applyStep(const PrefixSpace& step, Words& words);
    static void applyStep(const ByteMap& step, Words& words);
    static void applyStep(const Metaspace& step, Words& words);

    std::vector<Step> m_steps;
};

} // namespace mla::tok
