// SPDX-License-Identifier: GPL-3.0-or-later
// The "added_tokens" of a tokenizer.json: strings that are found in the text before anything else.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/checkpoint/tokenizer_json.h"
#include "core/checkpoint/tokenizer_model.h"
#include "core/checkpoint/tokenizer_normalizer.h"

namespace mla::tok
{

struct AddedToken {
    std::string content;
    std::string pattern; ///< what is searched for: the content, normalized if it asks for that
    bool singleWord = false, lstrip = false, rstrip = false, normalized = false, special = false;
};

/// Longest string of a set at a position of a text.
class Trie
{
public:
    Trie() { m_root.fill(-1); }
    [[nodiscard]] bool contains(std::string_view text) const;
    void insert(std::string_view text, int id);
    /// Length and id of the longest entry that `text` continues with at `position`.
    [[nodiscard]] std::optional<std::pair<std::size_t, int>> longestAt(std::string_view text,
                                                                       std::size_t position) const;

private:
    struct Node {
        std::vector<std::pair<char, int>> children;
        int id = -1;
    };
    [[nodiscard]] int child(int node, char byte) const;
    std::array<int, 256> m_root{}; ///< by first byte: a node, or -1
    std::vector<Node> m_nodes;
};

class AddedTokens
{
public:
    /// A part of a text: an added token, or (id < 0) what stands between them.
    struct Segment {
        std::size_t begin, end;
        int id;
    };

    static Result<AddedTokens> create(const std::vector<JsonNode>& nodes,
                                      const Vocabulary& vocabulary, const Normalizer& normalizer);
    /// Cuts raw text at the tokens that are not normalized.
    [[nodiscard]] std::vector<Segment> splitRaw(std::string_view text) const;
    /// Cuts normalized text at the tokens that are.
    [[nodiscard]] std::vector<Segment> splitNormalized(std::string_view text) const;

    [[nodiscard]] const AddedToken* find(int id) const;
    [[nodiscard]] std::optional<int> idOf(std::string_view content) const;
    [[nodiscard]] bool isSpecial(std::string_view content) const;
    [[nodiscard]] int size() const; ///< 1 + largest id
    /// The ids in use.
    [[nodiscard]] const std::map<int, AddedToken>& tokens() const { return m_tokens; }

private:
    Status add(const JsonNode& node, const Vocabulary& vocabulary, const Normalizer& normalizer);
    Status buildTries();
    [[nodiscard]] std::vector<Segment> split(std::string_view text, const Trie& trie) const;

    std::map<int, AddedToken> m_tokens;
    std::map<std::string, int, std::less<>> m_ids;
    std::set<std::string, std::less<>> m_special;
    Trie m_raw, m_normalized;
    int m_nextId = 0;
};

} // namespace mla::tok
