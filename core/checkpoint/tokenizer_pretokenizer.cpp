// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/tokenizer_pretokenizer.h"

#include <algorithm>
#include <array>

#include "core/checkpoint/tokenizer_bytelevel.h"
#include "core/checkpoint/tokenizer_normalizer.h"
#include "core/checkpoint/tokenizer_unicode.h"

namespace mla::tok
{
namespace
{

constexpr const char* kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// A stretch of text that a pattern matched or skipped; together they cover the text.
struct Stretch {
    std::size_t begin, end;
    bool match;
};

void coverText(const std::vector<Match>& matches, std::size_t length,
               std::vector<Stretch>& stretches)
{
    stretches.clear();
    std::size_t done = 0;
    for (const Match& match : matches) {
        if (match.begin != done)
            stretches.push_back({done, match.begin, false});
        stretches.push_back({match.begin, match.end, true});
        done = match.end;
    }
    if (done != length)
        stretches.push_back({done, length, false});
}

/// Joins neighbours as `behaviour` says; afterwards `match` means "to be removed".
void joinStretches(std::vector<Stretch>& stretches, Behaviour behaviour)
{
    if (behaviour == Behaviour::Removed)
        return;
    const bool backwards = behaviour == Behaviour::MergedWithNext;
    if (backwards)
        std::reverse(stretches.begin(), stretches.end());
    std::vector<Stretch> joined;
    bool previous = false;
    for (const Stretch& stretch : stretches) {
        const bool joins = behaviour == Behaviour::Contiguous ? stretch.match == previous
                           : behaviour == Behaviour::Isolated ? false
                                                              : stretch.match && !previous;
        if (joins && !joined.empty())
            (backwards ? joined.back().begin : joined.back().end) =
                backwards ? stretch.begin : stretch.end;
        else
            joined.push_back({stretch.begin, stretch.end, false});
        previous = stretch.match;
    }
    if (backwards)
        std::reverse(joined.begin(), joined.end());
    stretches = std::move(joined);
}

/// Replaces every word by what `find` (text, matches) and `behaviour` make of it.
template <typename Find>
void splitWords(Words& words, Behaviour behaviour, bool invert, Find find)
{
    std::vector<Words::Span> spans;
    std::vector<Match> matches;
    std::vector<Stretch> stretches;
    for (const Words::Span& word : words.spans) {
        const auto text = std::string_view(words.text).substr(word.begin, word.end - word.begin);
        find(text, matches);
        coverText(matches, text.size(), stretches);
        for (Stretch& stretch : stretches)
            stretch.match ^= invert;
        joinStretches(stretches, behaviour);
        for (const Stretch& stretch : stretches)
            if (!stretch.match && stretch.begin != stretch.end)
                spans.push_back({word.begin + stretch.begin, word.begin + stretch.end,
                                 word.atStart && stretch.begin == 0});
    }
    words.spans = std::move(spans);
}

template <typename Accepts>
void findCharacters(std::string_view text, std::vector<Match>& matches, Accepts accepts)
{
    matches.clear();
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t begin = at;
        if (accepts(nextCodePoint(text, at)))
            matches.push_back({begin, at});
    }
}

/// Rewrites every word by `write` (word, output).
template <typename Write>
void rewriteWords(Words& words, Write write)
{
    std::string text;
    text.reserve(words.text.size() + words.text.size() / 2);
    for (Words::Span& word : words.spans) {
        const std::size_t begin = text.size();
        write(std::string_view(words.text).substr(word.begin, word.end - word.begin), word.atStart,
              text);
        word.begin = begin;
        word.end = text.size();
    }
    words.text = std::move(text);
}

Result<Behaviour> readBehaviour(const JsonNode& node)
{
    constexpr std::array<std::pair<std::string_view, Behaviour>, 5> names{
        {{"Removed", Behaviour::Removed},
         {"Isolated", Behaviour::Isolated},
         {"MergedWithPrevious", Behaviour::MergedWithPrevious},
         {"MergedWithNext", Behaviour::MergedWithNext},
         {"Contiguous", Behaviour::Contiguous}}};
    MLA_TRY(text, node.string("behavior"));
    for (const auto& [name, behaviour] : names)
        if (text == name)
            return behaviour;
    return node.unsupported("behavior '" + text + "'");
}

} // namespace

Result<PreTokenizer> PreTokenizer::create(const JsonNode& node)
{
    PreTokenizer preTokenizer;
    if (!node.isNull())
        MLA_CHECK(preTokenizer.add(node));
    return preTokenizer;
}

Status PreTokenizer::add(const JsonNode& node)
{
    MLA_TRY(type, node.type());
    if (type == "Sequence") {
        MLA_TRY(parts, node.array("pretokenizers"));
        for (const JsonNode& part : parts)
            MLA_CHECK(add(part));
    } else if (type == "ByteLevel") {
        return addByteLevel(node);
    } else if (type == "Split") {
        return addSplit(node);
    } else if (type == "Metaspace") {
        return addMetaspace(node);
    } else if (type == "Digits") {
        MLA_TRY(individual, node.flag("individual_digits"));
        m_steps.emplace_back(
            CharacterSplit{isNumeric, individual ? Behaviour::Isolated : Behaviour::Contiguous});
    } else if (type == "Punctuation") {
        auto behaviour = Behaviour::Isolated;
        if (!node.lacks("behavior")) {
            MLA_TRY(given, readBehaviour(node));
            behaviour = given;
        }
        m_steps.emplace_back(CharacterSplit{isPunctuation, behaviour});
    } else if (type == "WhitespaceSplit") {
        m_steps.emplace_back(CharacterSplit{isWhitespace, Behaviour::Removed});
    } else if (type == "Whitespace") {
        m_steps.emplace_back(WordsAndSymbols{});
    } else if (type == "CharDelimiterSplit") {
        MLA_TRY(delimiter, node.character("delimiter"));
        m_steps.emplace_back(CharDelimiter{delimiter, Behaviour::Removed});
    } else {
        return node.unsupported("pre-tokenizer '" + type + "'");
    }
    return {};
}

Status PreTokenizer::addByteLevel(const JsonNode& node)
{
    MLA_TRY(prefix, node.flag("add_prefix_space"));
    MLA_TRY(useRegex, node.flag("use_regex", true));
    if (prefix)
        m_steps.emplace_back(PrefixSpace{});
    if (useRegex) {
        MLA_TRY(regex, Regex::compile(kGpt2Pattern));
        m_steps.emplace_back(Split{Pattern::regex(std::move(regex)), Behaviour::Isolated, false});
    }
    m_steps.emplace_back(ByteMap{});
    return {};
}

Status PreTokenizer::addSplit(const JsonNode& node)
{
    MLA_TRY(pattern, readPattern(node));
    MLA_TRY(behaviour, readBehaviour(node));
    MLA_TRY(invert, node.flag("invert"));
    m_steps.emplace_back(Split{std::move(pattern), behaviour, invert});
    return {};
}

Status PreTokenizer::addMetaspace(const JsonNode& node)
{
    MLA_TRY(replacement, node.character("replacement"));
    MLA_TRY(prefix, node.flag("add_prefix_space", true));
    MLA_TRY(split, node.flag("split", true));
    std::string scheme = "always";
    if (!node.lacks("prepend_scheme")) {
        MLA_TRY(given, node.string("prepend_scheme"));
        scheme = given;
    }
    if (!prefix && scheme != "never")
        return badInput("key '" + node.path() +
                        "': add_prefix_space is false but prepend_scheme '" + scheme + "'");
    Metaspace step;
    if (scheme == "always")
        step.prepend = Metaspace::Prepend::Always;
    else if (scheme == "first")
        step.prepend = Metaspace::Prepend::First;
    else if (scheme == "never")
        step.prepend = Metaspace::Prepend::Never;
    else
        return node.unsupported("prepend_scheme '" + scheme + "'");
    appendUtf8(step.replacement, replacement);
    m_steps.emplace_back(std::move(step));
    if (split)
        m_steps.emplace_back(CharDelimiter{replacement, Behaviour::MergedWithNext});
    return {};
}

void PreTokenizer::apply(Words& words) const
{
    for (const Step& step : m_steps)
        std::visit([&](const auto& concrete) { applyStep(concrete, words); }, step);
}

bool PreTokenizer::isByteLevel() const
{
    return std::any_of(m_steps.begin(), m_steps.end(),
                       [](const Step& step) { return std::holds_alternative<ByteMap>(step); });
}

bool PreTokenizer::looksAtStart() const
{
    return std::any_of(m_steps.begin(), m_steps.end(), [](const Step& step) {
        const auto* metaspace = std::get_if<Metaspace>(&step);
        return metaspace != nullptr && metaspace->prepend == Metaspace::Prepend::First;
    });
}

void PreTokenizer::applyStep(const Split& step, Words& words)
{
    splitWords(words, step.behaviour, step.invert,
               [&](std::string_view text, std::vector<Match>& matches) {
                   step.pattern.findAll(text, matches);
               });
}

void PreTokenizer::applyStep(const CharacterSplit& step, Words& words)
{
    splitWords(words, step.behaviour, false,
               [&](std::string_view text, std::vector<Match>& matches) {
                   findCharacters(text, matches, step.matches);
               });
}

void PreTokenizer::applyStep(const CharDelimiter& step, Words& words)
{
    splitWords(
        words, step.behaviour, false, [&](std::string_view text, std::vector<Match>& matches) {
            findCharacters(text, matches, [&](char32_t code) { return code == step.delimiter; });
        });
}

void PreTokenizer::applyStep(const WordsAndSymbols& /*step*/, Words& words)
{
    enum class Kind { Space, Word, Symbol };
    const auto kindOf = [](char32_t code) {
        return isWordChar(code) ? Kind::Word : isWhitespace(code) ? Kind::Space : Kind::Symbol;
    };
    const auto find = [&](std::string_view text, std::vector<Match>& matches) {
        matches.clear();
        Kind previous = Kind::Space;
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t begin = at;
            const Kind kind = kindOf(nextCodePoint(text, at));
            if (kind != Kind::Space && kind == previous)
                matches.back().end = at;
            else if (kind != Kind::Space)
                matches.push_back({begin, at});
            previous = kind;
        }
    };
    splitWords(words, Behaviour::Removed, true, find);
}

void PreTokenizer::applyStep(const PrefixSpace& /*step*/, Words& words)
{
    rewriteWords(words, [](std::string_view word, bool /*atStart*/, std::string& out) {
        if (!word.starts_with(' '))
            out += ' ';
        out += word;
    });
}

void PreTokenizer::applyStep(const ByteMap& /*step*/, Words& words)
{
    rewriteWords(words, [](std::string_view word, bool /*atStart*/, std::string& out) {
        appendByteLevel(out, word);
    });
}

void PreTokenizer::applyStep(const Metaspace& step, Words& words)
{
    rewriteWords(words, [&](std::string_view word, bool atStart, std::string& out) {
        const bool marked = word.starts_with(' ') || word.starts_with(step.replacement);
        const bool wanted = step.prepend == Metaspace::Prepend::Always ||
                            (step.prepend == Metaspace::Prepend::First && atStart);
        if (wanted && !marked)
            out += step.replacement;
        for (const char c : word) {
            if (c == ' ')
                out += step.replacement;
            else
                out += c;
        }
    });
}

} // namespace mla::tok
