// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/tokenizer.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <unordered_map>

#include "core/base/file.h"
#include "core/checkpoint/tokenizer_added_tokens.h"
#include "core/checkpoint/tokenizer_bytelevel.h"
#include "core/checkpoint/tokenizer_decoder.h"
#include "core/checkpoint/tokenizer_json.h"
#include "core/checkpoint/tokenizer_model.h"
#include "core/checkpoint/tokenizer_normalizer.h"
#include "core/checkpoint/tokenizer_postprocessor.h"
#include "core/checkpoint/tokenizer_pretokenizer.h"
#include "core/checkpoint/tokenizer_unicode.h"

namespace mla
{
namespace
{

using namespace tok;

/// Ids of words met before. Words repeat so often that this decides the speed.
class WordCache
{
public:
    void append(const BpeModel& model, std::string_view word, std::vector<int>& ids)
    {
        if (word.size() > kLongestWord) {
            model.encodeWord(word, ids);
            return;
        }
        if (const auto known = m_ids.find(word); known != m_ids.end()) {
            ids.insert(ids.end(), known->second.begin(), known->second.end());
            return;
        }
        const std::size_t before = ids.size();
        model.encodeWord(word, ids);
        if (m_ids.size() >= kMostWords)
            m_ids.clear();
        m_ids.emplace(
            word, std::vector<int>(ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end()));
    }

private:
    static constexpr std::size_t kLongestWord = 256, kMostWords = 1 << 15;
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const
        {
            return std::hash<std::string_view>{}(text);
        }
    };
    std::unordered_map<std::string, std::vector<int>, Hash, std::equal_to<>> m_ids;
};

/// The value of a key of the document, or null.
JsonNode optionalPart(const nlohmann::json& document, const char* key)
{
    static const nlohmann::json null;
    const auto found = document.find(key);
    return {found == document.end() ? null : *found, key};
}

Status checkHeader(const nlohmann::json& document)
{
    const JsonNode root(document, "");
    if (document.contains("version")) {
        MLA_TRY(version, root.string("version"));
        if (version != "1.0")
            return badInput("key 'version': '" + version + "' is not supported");
    }
    for (const char* key : {"truncation", "padding"})
        if (!root.lacks(key))
            return Error{ErrorCode::BadInput,
                         "key '" + std::string(key) + "' is not supported",
                         {},
                         "set it to null: every text is encoded whole"};
    return {};
}

} // namespace

struct Tokenizer::Impl {
    BpeModel model;
    Normalizer normalizer;
    PreTokenizer preTokenizer;
    AddedTokens added;
    PostProcessor postProcessor;
    Decoder decoder;
    mutable std::mutex cacheMutex;
    mutable WordCache cache;

    Status read(const TokenizerFile& file);
    [[nodiscard]] bool reachesUnknown(const TokenizerFile& file) const;
    [[nodiscard]] bool hasId(int id) const
    {
        return added.find(id) != nullptr || model.vocabulary().tokenOf(id);
    }
    void encodeRaw(std::string_view text, bool atStart, WordCache* words,
                   std::vector<int>& ids) const;
    void encodeNormalized(std::string text, bool atStart, WordCache* words,
                          std::vector<int>& ids) const;
};

Status Tokenizer::Impl::read(const TokenizerFile& file)
{
    const nlohmann::json& document = file.document;
    MLA_CHECK(checkHeader(document));
    MLA_TRY(readNormalizer, Normalizer::create(optionalPart(document, "normalizer")));
    normalizer = std::move(readNormalizer);
    const JsonNode preNode = optionalPart(document, "pre_tokenizer");
    MLA_TRY(readPreTokenizer, PreTokenizer::create(preNode));
    preTokenizer = std::move(readPreTokenizer);
    // Whether a word still is "first" after such a step depends on the library's offset
    // bookkeeping.
    if (preTokenizer.looksAtStart() && (normalizer.mayCutStart() || preTokenizer.isByteLevel()))
        return preNode.unsupported(
            "prepend_scheme 'first' together with ByteLevel or a Strip or Replace normalizer");
    const JsonNode root(document, "");
    MLA_TRY(modelNode, root.object("model"));
    MLA_TRY(readModel, BpeModel::create(file, modelNode, reachesUnknown(file)));
    model = std::move(readModel);
    std::vector<JsonNode> addedNodes;
    if (!root.lacks("added_tokens")) {
        MLA_TRY(nodes, root.array("added_tokens"));
        addedNodes = std::move(nodes);
    }
    MLA_TRY(readAdded, AddedTokens::create(addedNodes, model.vocabulary(), normalizer));
    added = std::move(readAdded);
    MLA_TRY(readPost, PostProcessor::create(optionalPart(document, "post_processor"),
                                            [this](int id) { return hasId(id); }));
    postProcessor = std::move(readPost);
    MLA_TRY(readDecoder, Decoder::create(optionalPart(document, "decoder")));
    decoder = std::move(readDecoder);
    return {};
}

/// Behind a byte-level step a character is unknown only if one of the 256 is missing.
bool Tokenizer::Impl::reachesUnknown(const TokenizerFile& file) const
{
    if (!preTokenizer.isByteLevel())
        return true;
    std::vector<bool> seen(256);
    for (const auto& [token, id] : file.vocab) {
        if (token.empty() || token.size() > 2)
            continue;
        std::size_t end = 0;
        const auto byte = byteOfCharacter(nextCodePoint(token, end));
        if (byte && end == token.size())
            seen[*byte] = true;
    }
    return std::find(seen.begin(), seen.end(), false) != seen.end();
}

void Tokenizer::Impl::encodeRaw(std::string_view text, bool atStart, WordCache* words,
                                std::vector<int>& ids) const
{
    const std::string normalized = normalizer.apply(text);
    for (const AddedTokens::Segment& part : added.splitNormalized(normalized)) {
        if (part.begin == part.end)
            continue;
        if (part.id >= 0)
            ids.push_back(part.id);
        else
            encodeNormalized(normalized.substr(part.begin, part.end - part.begin),
                             atStart && part.begin == 0, words, ids);
    }
}

void Tokenizer::Impl::encodeNormalized(std::string text, bool atStart, WordCache* words,
                                       std::vector<int>& ids) const
{
    Words found;
    found.spans.push_back({0, text.size(), atStart});
    found.text = std::move(text);
    preTokenizer.apply(found);
    for (const Words::Span& span : found.spans) {
        const auto word = std::string_view(found.text).substr(span.begin, span.end - span.begin);
        if (words != nullptr)
            words->append(model, word, ids);
        else
            model.encodeWord(word, ids);
    }
}

Result<Tokenizer> Tokenizer::open(const std::filesystem::path& path)
{
    std::error_code ignored;
    const auto file = std::filesystem::is_directory(path, ignored) ? path / "tokenizer.json" : path;
    MLA_TRY(text, readFile(file));
    auto parsed = parseTokenizerFile(text);
    if (!parsed)
        return std::move(parsed).error().within(file.string());
    auto impl = std::make_shared<Impl>();
    if (auto status = impl->read(*parsed); !status)
        return std::move(status).error().within(file.string());
    Tokenizer tokenizer;
    tokenizer.m_impl = std::move(impl);
    return tokenizer;
}

std::vector<int> Tokenizer::encode(std::string_view text, bool addSpecialTokens) const
{
    std::string repaired;
    if (!isValidUtf8(text)) {
        repaired = toValidUtf8(text);
        text = repaired;
    }
    // A second thread does without the cache rather than wait for it.
    const std::unique_lock<std::mutex> lock(m_impl->cacheMutex, std::try_to_lock);
    WordCache* words = lock.owns_lock() ? &m_impl->cache : nullptr;
    std::vector<int> ids;
    for (const AddedTokens::Segment& part : m_impl->added.splitRaw(text)) {
        if (part.begin == part.end)
            continue;
        if (part.id >= 0)
            ids.push_back(part.id);
        else
            m_impl->encodeRaw(text.substr(part.begin, part.end - part.begin), part.begin == 0,
                              words, ids);
    }
    return m_impl->postProcessor.apply(std::move(ids), addSpecialTokens);
}

Result<std::string> Tokenizer::decode(const std::vector<int>& ids, bool skipSpecialTokens) const
{
    std::vector<std::string> tokens;
    tokens.reserve(ids.size());
    for (const int id : ids) {
        std::string token;
        if (const AddedToken* added = m_impl->added.find(id))
            token = added->pattern;
        else if (const auto known = m_impl->model.vocabulary().tokenOf(id))
            token = *known;
        else
            return badInput("token id " + std::to_string(id) + " is not in the vocabulary of " +
                            std::to_string(size()) + " tokens");
        if (!skipSpecialTokens || !m_impl->added.isSpecial(token))
            tokens.push_back(std::move(token));
    }
    return m_impl->decoder.decode(std::move(tokens));
}

std::optional<std::string> Tokenizer::tokenOf(int id) const
{
    if (const AddedToken* added = m_impl->added.find(id))
        return added->content;
    const auto token = m_impl->model.vocabulary().tokenOf(id);
    return token ? std::optional<std::string>(*token) : std::nullopt;
}

std::optional<int> Tokenizer::idOf(std::string_view token) const
{
    const auto added = m_impl->added.idOf(token);
    return added ? added : m_impl->model.vocabulary().idOf(token);
}

int Tokenizer::size() const
{
    return std::max(m_impl->model.vocabulary().size(), m_impl->added.size());
}

bool Tokenizer::isSpecial(int id) const
{
    const AddedToken* added = m_impl->added.find(id);
    return added != nullptr && m_impl->added.isSpecial(added->content);
}

Status checkSameTokens(const Tokenizer& target, const Tokenizer& draft)
{
    const auto name = [](const std::optional<std::string>& token) {
        return token ? "'" + *token + "'" : std::string("nothing");
    };
    const int common = std::min(target.size(), draft.size());
    for (int id = 0; id < common; ++id) {
        const auto ours = target.tokenOf(id), theirs = draft.tokenOf(id);
        if (ours != theirs)
            return badInput("the tokenizers differ: id " + std::to_string(id) + " is " +
                                name(ours) + " in the target and " + name(theirs) + " in the draft",
                            {}, "speculative decoding needs one token table");
    }
    return {};
}

} // namespace mla
