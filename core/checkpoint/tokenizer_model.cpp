// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/tokenizer_model.h"

#include <algorithm>
#include <bit>
#include <queue>

#include "core/checkpoint/tokenizer_unicode.h"

namespace mla::tok
{
namespace
{

/// Ids beyond this are taken for damage: the table by id would not fit in memory.
constexpr int kMaxId = (1 << 24) - 1;
constexpr char32_t kIndexedCharacters = 0x800;

std::size_t hashOf(std::string_view text)
{
    return std::hash<std::string_view>{}(text);
}

/// The hash bits that do not choose the slot.
std::uint32_t tagOf(std::size_t hash)
{
    return static_cast<std::uint32_t>(hash >> 32U);
}

/// A candidate of the merge queue: lowest rank first, then leftmost.
struct Candidate {
    std::int32_t rank, position, merged;
    bool operator<(const Candidate& other) const
    {
        return rank != other.rank ? rank > other.rank : position > other.position;
    }
};

} // namespace

Result<Vocabulary> Vocabulary::build(const std::vector<std::pair<std::string, int>>& entries)
{
    Vocabulary vocabulary;
    int largest = -1;
    std::size_t bytes = 0;
    for (const auto& [token, id] : entries) {
        if (id > kMaxId)
            return badInput("model.vocab: id " + std::to_string(id) + " of '" + token +
                            "' is larger than " + std::to_string(kMaxId));
        largest = std::max(largest, id);
        bytes += token.size();
    }
    vocabulary.m_text.reserve(bytes);
    vocabulary.m_tokens.resize(static_cast<std::size_t>(largest) + 1);
    vocabulary.m_slots.assign(std::bit_ceil(2 * entries.size() + 1), Slot{});
    // From the end: of a repeated key the last one counts, as in any JSON map.
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
        const auto& [token, id] = *entry;
        const std::size_t hash = hashOf(token);
        Slot& slot = vocabulary.m_slots[vocabulary.slotOf(token, hash)];
        if (slot.id >= 0)
            continue;
        Slice& slice = vocabulary.m_tokens[static_cast<std::size_t>(id)];
        if (slice.length >= 0)
            return badInput("model.vocab: id " + std::to_string(id) + " is given to '" +
                            std::string(vocabulary.view(id)) + "' and to '" + token + "'");
        slice = {vocabulary.m_text.size(), static_cast<std::int64_t>(token.size())};
        vocabulary.m_text += token;
        slot = {id, tagOf(hash)};
        ++vocabulary.m_count;
    }
    return vocabulary;
}

std::string_view Vocabulary::view(int id) const
{
    const Slice& slice = m_tokens[static_cast<std::size_t>(id)];
    return std::string_view(m_text).substr(slice.begin, static_cast<std::size_t>(slice.length));
}

/// The slot that holds `token`, or the empty one where it belongs.
std::size_t Vocabulary::slotOf(std::string_view token, std::size_t hash) const
{
    const std::size_t mask = m_slots.size() - 1;
    const auto isOther = [&](const Slot& slot) {
        return slot.id >= 0 && (slot.tag != tagOf(hash) || view(slot.id) != token);
    };
    std::size_t slot = hash & mask;
    while (isOther(m_slots[slot]))
        slot = (slot + 1) & mask;
    return slot;
}

std::optional<int> Vocabulary::idOf(std::string_view token) const
{
    if (m_slots.empty())
        return std::nullopt;
    const std::int32_t id = m_slots[slotOf(token, hashOf(token))].id;
    return id >= 0 ? std::optional<int>(id) : std::nullopt;
}

std::optional<std::string_view> Vocabulary::tokenOf(int id) const
{
    if (id < 0 || id >= size() || m_tokens[static_cast<std::size_t>(id)].length < 0)
        return std::nullopt;
    return view(id);
}

void MergeTable::reserve(std::size_t count)
{
    m_slots.assign(std::bit_ceil(2 * count + 1), Entry{});
}

std::size_t MergeTable::slotOf(std::uint64_t pair) const
{
    const std::size_t mask = m_slots.size() - 1;
    std::uint64_t mixed = pair * 0x9E3779B97F4A7C15U;
    mixed ^= mixed >> 32U;
    std::size_t slot = mixed & mask;
    while (m_slots[slot].pair != kEmpty && m_slots[slot].pair != pair)
        slot = (slot + 1) & mask;
    return slot;
}

void MergeTable::set(int left, int right, Entry entry)
{
    entry.pair = (static_cast<std::uint64_t>(left) << 32U) | static_cast<std::uint32_t>(right);
    m_slots[slotOf(entry.pair)] = entry;
}

const MergeTable::Entry* MergeTable::find(int left, int right) const
{
    const auto pair = (static_cast<std::uint64_t>(left) << 32U) | static_cast<std::uint32_t>(right);
    const Entry& entry = m_slots[slotOf(pair)];
    return entry.pair == pair ? &entry : nullptr;
}

Result<BpeModel> BpeModel::create(const TokenizerFile& file, const JsonNode& model,
                                  bool unknownIsReachable)
{
    if (!model.lacks("type")) {
        MLA_TRY(type, model.type());
        if (type != "BPE")
            return model.unsupported("model type '" + type + "'");
    }
    if (!file.hasVocab)
        return badInput("key 'model.vocab' must be an object of tokens and ids");
    if (!file.hasMerges)
        return badInput("key 'model.merges' must be an array");
    BpeModel bpe;
    MLA_TRY(vocabulary, Vocabulary::build(file.vocab));
    bpe.m_vocabulary = std::move(vocabulary);
    MLA_CHECK(bpe.readOptions(model, unknownIsReachable));
    MLA_CHECK(bpe.readMerges(file));
    bpe.indexCharacters();
    return bpe;
}

Status BpeModel::readOptions(const JsonNode& model, bool unknownIsReachable)
{
    if (!model.lacks("dropout"))
        return model.unsupported("dropout");
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
        if (model.lacks(key))
            continue;
        MLA_TRY(text, model.string(key));
        if (!text.empty())
            return model.unsupported(std::string(key) + " '" + text + "'");
    }
    MLA_TRY(fuse, model.flag("fuse_unk", false));
    MLA_TRY(fallback, model.flag("byte_fallback", false));
    MLA_TRY(ignore, model.flag("ignore_merges", false));
    m_fuseUnknown = fuse;
    m_byteFallback = fallback;
    m_ignoreMerges = ignore;
    if (model.lacks("unk_token"))
        return {};
    MLA_TRY(unknown, model.string("unk_token"));
    m_unknown = m_vocabulary.idOf(unknown);
    if (!m_unknown && unknownIsReachable)
        return badInput("key 'model.unk_token': '" + unknown + "' is not in the vocabulary");
    return {};
}

Status BpeModel::readMerges(const TokenizerFile& file)
{
    m_merges.reserve(file.merges.size());
    std::string joined;
    for (std::size_t rank = 0; rank < file.merges.size(); ++rank) {
        const auto& [left, right] = file.merges[rank];
        joined = left;
        joined += right;
        const auto leftId = m_vocabulary.idOf(left);
        const auto rightId = m_vocabulary.idOf(right);
        const auto merged = m_vocabulary.idOf(joined);
        if (!leftId || !rightId || !merged)
            return badInput("model.merges[" + std::to_string(rank) + "]: '" +
                            (!leftId    ? left
                             : !rightId ? right
                                        : joined) +
                            "' is not in the vocabulary");
        m_merges.set(*leftId, *rightId, {0, static_cast<std::int32_t>(rank), *merged});
    }
    return {};
}

void BpeModel::indexCharacters()
{
    m_characterIds.assign(kIndexedCharacters, -1);
    std::string text;
    for (char32_t code = 0; code < kIndexedCharacters; ++code) {
        text.clear();
        appendUtf8(text, code);
        m_characterIds[code] = m_vocabulary.idOf(text).value_or(-1);
    }
    constexpr std::string_view digits = "0123456789ABCDEF";
    for (unsigned byte = 0; byte < 256; ++byte) {
        const std::string token{'<', '0', 'x', digits[byte >> 4U], digits[byte & 15U], '>'};
        m_byteIds.push_back(m_vocabulary.idOf(token).value_or(-1));
    }
}

std::optional<int> BpeModel::characterId(std::string_view character) const
{
    if (character.size() > 2)
        return m_vocabulary.idOf(character);
    std::size_t end = 0;
    const int id = m_characterIds[nextCodePoint(character, end)];
    return id >= 0 ? std::optional<int>(id) : std::nullopt;
}

bool BpeModel::appendBytes(std::string_view character, std::vector<Symbol>& symbols) const
{
    const auto idOf = [&](char byte) { return m_byteIds[static_cast<unsigned char>(byte)]; };
    if (!std::all_of(character.begin(), character.end(), [&](char b) { return idOf(b) >= 0; }))
        return false;
    for (const char byte : character)
        symbols.push_back({idOf(byte), -1, -1, false});
    return true;
}

/// The characters of a word. As in the library, an unknown token waits for the next known
/// character, so that it comes behind the byte tokens of a character in between.
void BpeModel::split(std::string_view word, std::vector<Symbol>& symbols) const
{
    bool pending = false;
    const auto flush = [&] {
        if (pending)
            symbols.push_back({*m_unknown, -1, -1, false});
        pending = false;
    };
    for (std::size_t at = 0; at < word.size();) {
        const std::size_t begin = at;
        nextCodePoint(word, at);
        const std::string_view character = word.substr(begin, at - begin);
        if (const auto id = characterId(character)) {
            flush();
            symbols.push_back({*id, -1, -1, false});
        } else if (!(m_byteFallback && appendBytes(character, symbols)) && m_unknown) {
            if (!m_fuseUnknown)
                flush();
            pending = true;
        }
    }
    flush();
    for (std::size_t i = 0; i < symbols.size(); ++i) {
        symbols[i].previous = static_cast<int>(i) - 1;
        symbols[i].next = i + 1 < symbols.size() ? static_cast<int>(i) + 1 : -1;
    }
}

/// A heap of candidate pairs over a linked list: n log n in the length of the word.
void BpeModel::merge(std::vector<Symbol>& symbols) const
{
    std::vector<Candidate> candidates;
    const auto candidateAt = [&](int left, int right) -> const MergeTable::Entry* {
        return m_merges.find(symbols[static_cast<std::size_t>(left)].id,
                             symbols[static_cast<std::size_t>(right)].id);
    };
    for (int i = 0; i + 1 < static_cast<int>(symbols.size()); ++i)
        if (const auto* entry = candidateAt(i, i + 1))
            candidates.push_back({entry->rank, i, entry->merged});
    std::priority_queue<Candidate> queue(std::less<Candidate>(), std::move(candidates));
    while (!queue.empty()) {
        const Candidate top = queue.top();
        queue.pop();
        Symbol& left = symbols[static_cast<std::size_t>(top.position)];
        if (left.gone || left.next < 0)
            continue;
        const auto* entry = candidateAt(top.position, left.next);
        if (entry == nullptr || entry->merged != top.merged)
            continue; // one of the two was merged with something else meanwhile
        Symbol& right = symbols[static_cast<std::size_t>(left.next)];
        left.id = top.merged;
        right.gone = true;
        left.next = right.next;
        if (left.next >= 0)
            symbols[static_cast<std::size_t>(left.next)].previous = top.position;
        if (left.previous >= 0)
            if (const auto* before = candidateAt(left.previous, top.position))
                queue.push({before->rank, left.previous, before->merged});
        if (left.next >= 0)
            if (const auto* after = candidateAt(top.position, left.next))
                queue.push({after->rank, top.position, after->merged});
    }
}

void BpeModel::encodeWord(std::string_view word, std::vector<int>& ids) const
{
    if (m_ignoreMerges)
        if (const auto whole = m_vocabulary.idOf(word)) {
            ids.push_back(*whole);
            return;
        }
    std::vector<Symbol> symbols;
    symbols.reserve(word.size());
    split(word, symbols);
    merge(symbols);
    for (const Symbol& symbol : symbols)
        if (!symbol.gone)
            ids.push_back(symbol.id);
}

} // namespace mla::tok
