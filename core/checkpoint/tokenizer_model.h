// SPDX-License-Identifier: GPL-3.0-or-later
// The BPE model of a tokenizer.json: vocabulary, ranked merges, and the merging itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/checkpoint/tokenizer_json.h"

namespace mla::tok
{

/// Token strings by id and ids by token string; holes are allowed.
class Vocabulary
{
public:
    static Result<Vocabulary> build(const std::vector<std::pair<std::string, int>>& entries);
    [[nodiscard]] std::optional<int> idOf(std::string_view token) const;
    [[nodiscard]] std::optional<std::string_view> tokenOf(int id) const;
    [[nodiscard]] int count() const { return m_count; }                          ///< entries
    [[nodiscard]] int size() const { return static_cast<int>(m_tokens.size()); } ///< 1 + largest id

private:
    struct Slice {
        std::size_t begin = 0;
        std::int64_t length = -1; ///< -1: a hole
    };
    struct Slot {
        std::int32_t id = -1; ///< -1: empty
        std::uint32_t tag =
            0; ///< hash bits, so that most other tokens are told apart without a look
    };
    [[nodiscard]] std::string_view view(int id) const;
    [[nodiscard]] std::size_t slotOf(std::string_view token, std::size_t hash) const;

    std::string m_text;          ///< all tokens, one behind the other
    std::vector<Slice> m_tokens; ///< by id
    std::vector<Slot> m_slots;   ///< open addressing
    int m_count = 0;
};

/// (left id, right id) -> (rank, merged id).
class MergeTable
{
public:
    struct Entry {
        std::uint64_t pair = kEmpty;
        std::int32_t rank = 0, merged = 0;
    };
    void reserve(std::size_t count);
    void set(int left, int right, Entry entry); ///< of equal pairs the last one counts
    [[nodiscard]] const Entry* find(int left, int right) const;

private:
    static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
    [[nodiscard]] std::size_t slotOf(std::uint64_t pair) const;
    std::vector<Entry> m_slots;
};

class BpeModel
{
public:
    /// `model` is the document's "model" object. `unknownIsReachable` tells whether a character
    /// may be missing from the vocabulary (not so behind a byte-level pre-tokenizer).
    static Result<BpeModel> create(const TokenizerFile& file, const JsonNode& model,
                                   bool unknownIsReachable);

    [[nodiscard]] const Vocabulary& vocabulary() const { return m_vocabulary; }
    /// Appends the ids of one pre-tokenized word (valid UTF-8).
    void encodeWord(std::string_view word, std::vector<int>& ids) const;

private:
    struct Symbol {
        int id;
        int previous, next; ///< positions in the word, -1 at the ends
        bool gone;
    };
    Status readOptions(const JsonNode& model, bool unknownIsReachable);
    Status readMerges(const TokenizerFile& file);
    void indexCharacters();
    [[nodiscard]] std::optional<int> characterId(std::string_view character) const;
    void split(std::string_view word, std::vector<Symbol>& symbols) const;
    [[nodiscard]] bool appendBytes(std::string_view character, std::vector<Symbol>& symbols) const;
    void merge(std::vector<Symbol>& symbols) const;

    Vocabulary m_vocabulary;
    MergeTable m_merges;
    std::vector<std::int32_t> m_characterIds; ///< ids of one-character tokens below U+0800, or -1
    std::vector<std::int32_t> m_byteIds;      ///< ids of <0x00> … <0xFF>, or -1
    std::optional<int> m_unknown;
    bool m_fuseUnknown = false, m_byteFallback = false, m_ignoreMerges = false;
};

} // namespace mla::tok
