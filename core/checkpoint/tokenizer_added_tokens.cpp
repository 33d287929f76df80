// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/tokenizer_added_tokens.h"

#include <algorithm>

#include "core/checkpoint/tokenizer_unicode.h"

namespace mla::tok
{
namespace
{

bool endsWithWord(std::string_view text)
{
    std::size_t at = text.size();
    return at > 0 && isWordChar(previousCodePoint(text, at));
}

bool startsWithWord(std::string_view text)
{
    std::size_t at = 0;
    return !text.empty() && isWordChar(nextCodePoint(text, at));
}

/// Where the white space that ends `text` begins.
std::size_t spaceAtEnd(std::string_view text)
{
    std::size_t begin = text.size();
    for (std::size_t at = begin; at > 0; begin = at)
        if (!isWhitespace(previousCodePoint(text, at)))
            break;
    return begin;
}

/// Where the white space that starts `text` ends.
std::size_t spaceAtStart(std::string_view text)
{
    std::size_t end = 0;
    for (std::size_t at = 0; at < text.size(); end = at)
        if (!isWhitespace(nextCodePoint(text, at)))
            break;
    return end;
}

} // namespace

int Trie::child(int node, char byte) const
{
    for (const auto& [label, target] : m_nodes[static_cast<std::size_t>(node)].children)
        if (label == byte)
            return target;
    return -1;
}

bool Trie::contains(std::string_view text) const
{
    const auto found = longestAt(text, 0);
    return found && found->first == text.size();
}

void Trie::insert(std::string_view text, int id)
{
    const auto newNode = [&] {
        m_nodes.emplace_back();
        return static_cast<int>(m_nodes.size()) - 1;
    };
    int& first = m_root[static_cast<unsigned char>(text[0])];
    if (first < 0)
        first = newNode();
    int node = first;
    for (const char byte : text.substr(1)) {
        int next = child(node, byte);
        if (next < 0) {
            next = newNode();
            m_nodes[static_cast<std::size_t>(node)].children.emplace_back(byte, next);
        }
        node = next;
    }
    m_nodes[static_cast<std::size_t>(node)].id = id;
}

std::optional<std::pair<std::size_t, int>> Trie::longestAt(std::string_view text,
                                                           std::size_t position) const
{
    std::optional<std::pair<std::size_t, int>> longest;
    int node = m_root[static_cast<unsigned char>(text[position])];
    for (std::size_t end = position + 1; node >= 0; ++end) {
        const int id = m_nodes[static_cast<std::size_t>(node)].id;
        if (id >= 0)
            longest = {end - position, id};
        node = end < text.size() ? child(node, text[end]) : -1;
    }
    return longest;
}

Result<AddedTokens> AddedTokens::create(const std::vector<JsonNode>& nodes,
                                        const Vocabulary& vocabulary, const Normalizer& normalizer)
{
    AddedTokens added;
    added.m_nextId = vocabulary.count();
    for (const JsonNode& node : nodes)
        MLA_CHECK(added.add(node, vocabulary, normalizer));
    MLA_CHECK(added.buildTries());
    return added;
}

/// The library gives ids by itself (the vocabulary's, else the next free one) and ignores the
/// file's; a file where the two differ would not mean what it says.
Status AddedTokens::add(const JsonNode& node, const Vocabulary& vocabulary,
                        const Normalizer& normalizer)
{
    AddedToken token;
    MLA_TRY(declared, node.number("id"));
    MLA_TRY(content, node.string("content"));
    MLA_TRY(singleWord, node.flag("single_word"));
    MLA_TRY(lstrip, node.flag("lstrip"));
    MLA_TRY(rstrip, node.flag("rstrip"));
    MLA_TRY(normalized, node.flag("normalized"));
    MLA_TRY(special, node.flag("special"));
    if (content.empty())
        return {};
    token = {content, content, singleWord, lstrip, rstrip, normalized, special};
    if (normalized)
        token.pattern = normalizer.apply(content);
    auto id = idOf(content);
    if (!id)
        id = vocabulary.idOf(content);
    if (!id)
        id = m_nextId++;
    if (*id != declared)
        return badInput("key '" + node.path() + ".id': added token '" + content + "' has id " +
                        std::to_string(declared) + " where the vocabulary makes it " +
                        std::to_string(*id));
    m_ids[content] = *id;
    if (special)
        m_special.insert(content);
    m_tokens[*id] = std::move(token);
    return {};
}

Status AddedTokens::buildTries()
{
    for (const auto& [id, token] : m_tokens) {
        Trie& trie = token.normalized ? m_normalized : m_raw;
        if (token.pattern.empty())
            return badInput("added token '" + token.content + "' is empty once normalized");
        if (trie.contains(token.pattern))
            return badInput("added token '" + token.content +
                            "' equals another one once normalized");
        trie.insert(token.pattern, id);
    }
    return {};
}

std::vector<AddedTokens::Segment> AddedTokens::splitRaw(std::string_view text) const
{
    return split(text, m_raw);
}

std::vector<AddedTokens::Segment> AddedTokens::splitNormalized(std::string_view text) const
{
    return split(text, m_normalized);
}

/// Leftmost longest matches that do not overlap. A match that is not a single word is passed over
/// whole, as in the library.
std::vector<AddedTokens::Segment> AddedTokens::split(std::string_view text, const Trie& trie) const
{
    std::vector<Segment> segments;
    std::size_t done = 0;
    for (std::size_t at = 0; at < text.size();) {
        const auto match = trie.longestAt(text, at);
        if (!match) {
            ++at;
            continue;
        }
        std::size_t begin = at, end = at + match->first;
        at = end;
        const AddedToken& token = m_tokens.find(match->second)->second;
        if (token.singleWord &&
            (endsWithWord(text.substr(0, begin)) || startsWithWord(text.substr(end))))
            continue;
        if (token.lstrip)
            begin = std::max(spaceAtEnd(text.substr(0, begin)), done);
        if (token.rstrip)
            end += spaceAtStart(text.substr(end));
        if (done < begin)
            segments.push_back({done, begin, -1});
        segments.push_back({begin, end, match->second});
        done = end;
    }
    if (done != text.size())
        segments.push_back({done, text.size(), -1});
    return segments;
}

const AddedToken* AddedTokens::find(int id) const
{
    const auto found = m_tokens.find(id);
    return found == m_tokens.end() ? nullptr : &found->second;
}

std::optional<int> AddedTokens::idOf(std::string_view content) const
{
    const auto found = m_ids.find(content);
    return found == m_ids.end() ? std::nullopt : std::optional<int>(found->second);
}

bool AddedTokens::isSpecial(std::string_view content) const
{
    return m_special.contains(content);
}

int AddedTokens::size() const
{
    return m_tokens.empty() ? 0 : m_tokens.rbegin()->first + 1;
}

} // namespace mla::tok
