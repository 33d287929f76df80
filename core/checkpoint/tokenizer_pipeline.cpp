// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/tokenizer_pipeline.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "core/checkpoint/tokenizer_added_tokens.h"
#include "core/checkpoint/tokenizer_bytelevel.h"
#include "core/checkpoint/tokenizer_decoder.h"
#include "core/checkpoint/tokenizer_model.h"
#include "core/checkpoint/tokenizer_normalizer.h"
#include "core/checkpoint/tokenizer_postprocessor.h"
#include "core/checkpoint/tokenizer_pretokenizer.h"
#include "core/checkpoint/tokenizer_unicode.h"

namespace mla::tok
{
namespace
{

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

class Pipeline final : public TokenizerBackend
{
public:
    Status read(const TokenizerFile& file);

    [[nodiscard]] std::vector<int> encode(std::string_view text,
                                          bool addSpecialTokens) const override;
    [[nodiscard]] std::string decode(const std::vector<int>& ids,
                                     bool skipSpecialTokens) const override;
    [[nodiscard]] std::optional<std::string> tokenOf(int id) const override;
    [[nodiscard]] std::optional<int> idOf(std::string_view token) const override;
    [[nodiscard]] int size() const override;
    [[nodiscard]] bool isSpecial(int id) const override;

private:
    [[nodiscard]] bool reachesUnknown(const TokenizerFile& file) const;
    [[nodiscard]] bool hasId(int id) const
    {
        return m_added.find(id) != nullptr || m_model.vocabulary().tokenOf(id);
    }
    void encodeRaw(std::string_view text, bool atStart, WordCache* words,
                   std::vector<int>& ids) const;
    void encodeNormalized(std::string text, bool atStart, WordCache* words,
                          std::vector<int>& ids) const;

    BpeModel m_model;
    Normalizer m_normalizer;
    PreTokenizer m_preTokenizer;
    AddedTokens m_added;
    PostProcessor m_postProcessor;
    Decoder m_decoder;
    mutable std::mutex m_cacheMutex;
    mutable WordCache m_cache;
};

Status Pipeline::read(const TokenizerFile& file)
{
    const nlohmann::json& document = file.document;
    MLA_CHECK(checkHeader(document));
    MLA_TRY(readNormalizer, Normalizer::create(optionalPart(document, "normalizer")));
    m_normalizer = std::move(readNormalizer);
    const JsonNode preNode = optionalPart(document, "pre_tokenizer");
    MLA_TRY(readPreTokenizer, PreTokenizer::create(preNode));
    m_preTokenizer = std::move(readPreTokenizer);
    // Whether a word still is "first" after such a step depends on the library's offset
    // bookkeeping.
    if (m_preTokenizer.looksAtStart() &&
        (m_normalizer.mayCutStart() || m_preTokenizer.isByteLevel()))
        return preNode.unsupported(
            "prepend_scheme 'first' together with ByteLevel or a Strip or Replace normalizer");
    const JsonNode root(document, "");
    MLA_TRY(modelNode, root.object("model"));
    MLA_TRY(readModel, BpeModel::create(file, modelNode, reachesUnknown(file)));
    m_model = std::move(readModel);
    std::vector<JsonNode> addedNodes;
    if (!root.lacks("added_tokens")) {
        MLA_TRY(nodes, root.array("added_tokens"));
        addedNodes = std::move(nodes);
    }
    MLA_TRY(readAdded, AddedTokens::create(addedNodes, m_model.vocabulary(), m_normalizer));
    m_added = std::move(readAdded);
    MLA_TRY(readPost, PostProcessor::create(optionalPart(document, "post_processor"),
                                            [this](int id) { return hasId(id); }));
    m_postProcessor = std::move(readPost);
    MLA_TRY(readDecoder, Decoder::create(optionalPart(document, "decoder")));
    m_decoder = std::move(readDecoder);
    return {};
}

/// Behind a byte-level step a character is unknown only if one of the 256 is missing.
bool Pipeline::reachesUnknown(const TokenizerFile& file) const
{
    if (!m_preTokenizer.isByteLevel())
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

void Pipeline::encodeRaw(std::string_view text, bool atStart, WordCache* words,
                         std::vector<int>& ids) const
{
    const std::string normalized = m_normalizer.apply(text);
    for (const AddedTokens::Segment& part : m_added.splitNormalized(normalized)) {
        if (part.begin == part.end)
            continue;
        if (part.id >= 0)
            ids.push_back(part.id);
        else
            encodeNormalized(normalized.substr(part.begin, part.end - part.begin),
                             atStart && part.begin == 0, words, ids);
    }
}

void Pipeline::encodeNormalized(std::string text, bool atStart, WordCache* words,
                                std::vector<int>& ids) const
{
    Words found;
    found.spans.push_back({0, text.size(), atStart});
    found.text = std::move(text);
    m_preTokenizer.apply(found);
    for (const Words::Span& span : found.spans) {
        const auto word = std::string_view(found.text).substr(span.begin, span.end - span.begin);
        if (words != nullptr)
            words->append(m_model, word, ids);
        else
            m_model.encodeWord(word, ids);
    }
}

std::vector<int> Pipeline::encode(std::string_view text, bool addSpecialTokens) const
{
    // A second thread does without the cache rather than wait for it.
    const std::unique_lock<std::mutex> lock(m_cacheMutex, std::try_to_lock);
    WordCache* words = lock.owns_lock() ? &m_cache : nullptr;
    std::vector<int> ids;
    for (const AddedTokens::Segment& part : m_added.splitRaw(text)) {
        if (part.begin == part.end)
            continue;
        if (part.id >= 0)
            ids.push_back(part.id);
        else
            encodeRaw(text.substr(part.begin, part.end - part.begin), part.begin == 0, words, ids);
    }
    return m_postProcessor.apply(std::move(ids), addSpecialTokens);
}

std::string Pipeline::decode(const std::vector<int>& ids, bool skipSpecialTokens) const
{
    std::vector<std::string> tokens;
    tokens.reserve(ids.size());
    for (const int id : ids) {
        std::string token;
        if (const AddedToken* added = m_added.find(id))
            token = added->pattern;
        else
            token = m_model.vocabulary().tokenOf(id).value_or("");
        if (!skipSpecialTokens || !m_added.isSpecial(token))
            tokens.push_back(std::move(token));
    }
    return m_decoder.decode(std::move(tokens));
}

std::optional<std::string> Pipeline::tokenOf(int id) const
{
    if (const AddedToken* added = m_added.find(id))
        return added->content;
    const auto token = m_model.vocabulary().tokenOf(id);
    return token ? std::optional<std::string>(*token) : std::nullopt;
}

std::optional<int> Pipeline::idOf(std::string_view token) const
{
    const auto added = m_added.idOf(token);
    return added ? added : m_model.vocabulary().idOf(token);
}

int Pipeline::size() const
{
    return std::max(m_model.vocabulary().size(), m_added.size());
}

bool Pipeline::isSpecial(int id) const
{
    const AddedToken* added = m_added.find(id);
    return added != nullptr && m_added.isSpecial(added->content);
}

} // namespace

Result<std::unique_ptr<TokenizerBackend>> makePipeline(const TokenizerFile& file)
{
    auto pipeline = std::make_unique<Pipeline>();
    MLA_CHECK(pipeline->read(file));
    return std::unique_ptr<TokenizerBackend>(std::move(pipeline));
}

} // namespace mla::tok
