// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/tokenizer_sentencepiece.h"

#include <algorithm>
#include <exception>

#include <sentencepiece_processor.h>

#include "core/base/file.h"
#include "core/checkpoint/sentencepiece_model.h"
#include "core/checkpoint/slow_tokens.h"
#include "core/checkpoint/tokenizer_added_tokens.h"
#include "core/checkpoint/tokenizer_unicode.h"

namespace mla::tok
{
namespace
{

constexpr std::string_view kSpaceMark = "\u2581";

std::string replaceAll(std::string_view text, std::string_view from, std::string_view to)
{
    std::string out;
    for (std::size_t at = 0;;) {
        const std::size_t found = text.find(from, at);
        out += text.substr(at, found - at);
        if (found == std::string_view::npos)
            return out;
        out += to;
        at = found + from.size();
    }
}

/// What Python's str.strip() removes: White_Space and four separators.
bool isStripped(char32_t code)
{
    return isWhitespace(code) || (code >= 0x1C && code <= 0x1F);
}

void stripLeft(std::string& text)
{
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size(); begin = at)
        if (!isStripped(nextCodePoint(text, at)))
            break;
    text.erase(0, begin);
}

void stripRight(std::string& text)
{
    std::size_t end = text.size();
    for (std::size_t at = end; at > 0; end = at)
        if (!isStripped(previousCodePoint(text, at)))
            break;
    text.erase(end);
}

class SentencePiece final : public TokenizerBackend
{
public:
    Status load(std::string model, const std::filesystem::path& directory);

    [[nodiscard]] std::vector<int> encode(std::string_view text,
                                          bool addSpecialTokens) const override;
    [[nodiscard]] std::string decode(const std::vector<int>& ids,
                                     bool skipSpecialTokens) const override;
    [[nodiscard]] std::optional<std::string> tokenOf(int id) const override;
    [[nodiscard]] std::optional<int> idOf(std::string_view token) const override;
    [[nodiscard]] int size() const override;
    [[nodiscard]] bool isSpecial(int id) const override;

private:
    using Strings = std::vector<std::string>;

    [[nodiscard]] bool isSpecialToken(std::string_view token) const
    {
        return m_tokens.specials.contains(token);
    }
    [[nodiscard]] Strings cut(std::string_view text) const;
    [[nodiscard]] Strings tokensOf(std::string_view text) const;
    [[nodiscard]] Strings pieces(std::string_view text) const;
    void appendPieces(const std::string& text, Strings& tokens) const;
    [[nodiscard]] bool isAddedText(const std::string& token) const;
    [[nodiscard]] std::string textOf(Strings tokens) const;
    [[nodiscard]] std::string joined(const Strings& pieces) const;

    sentencepiece::SentencePieceProcessor m_model;
    SlowTokens m_tokens;
    Trie m_trie; ///< of all added tokens
    std::size_t m_unknownLength = 0;
};

Status SentencePiece::load(std::string model, const std::filesystem::path& directory)
{
    MLA_CHECK(checkSentencePieceModel(model));
    const auto read = [&]() -> Status {
        try {
            const auto status = m_model.LoadFromSerializedProto(model);
            return status.ok() ? Status() : badInput(status.ToString());
        } catch (const std::exception& error) {
            return badInput(error.what());
        }
    };
    MLA_CHECK(read());
    const auto pieceId = [this](const std::string& piece) -> std::optional<int> {
        const int id = m_model.PieceToId(piece);
        return m_model.IdToPiece(id) == piece ? std::optional<int>(id) : std::nullopt;
    };
    MLA_TRY(tokens, readSlowTokens(directory, m_model.GetPieceSize(), pieceId));
    m_tokens = std::move(tokens);
    for (const auto& [id, token] : m_tokens.added)
        m_trie.insert(token.content, id);
    if (m_tokens.legacy)
        return {};
    // normalizer_spec { add_dummy_prefix: false }, which a protocol buffer's end may override.
    model.append("\x1A\x02\x18\x00", 4);
    MLA_CHECK(read());
    m_unknownLength = pieces(*m_tokens.unknown).size();
    return {};
}

std::vector<std::string> SentencePiece::pieces(std::string_view text) const
{
    Strings found;
    m_model.Encode({text.data(), text.size()}, &found).IgnoreError(); // it fails on no text
    return found;
}

/// Cuts the text at added tokens, every one an element of its own.
std::vector<std::string> SentencePiece::cut(std::string_view text) const
{
    Strings parts;
    std::size_t done = 0;
    for (std::size_t at = 0; at < text.size();) {
        const auto match = m_trie.longestAt(text, at);
        if (!match) {
            ++at;
            continue;
        }
        if (done < at)
            parts.emplace_back(text.substr(done, at - done));
        parts.emplace_back(text.substr(at, match->first));
        done = at = at + match->first;
    }
    if (done < text.size())
        parts.emplace_back(text.substr(done));
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const auto id = m_tokens.idOf(parts[i]);
        if (!id)
            continue;
        const SlowToken& token = m_tokens.added.at(*id);
        std::string* left = i > 0 && !parts[i - 1].empty() ? &parts[i - 1] : nullptr;
        std::string* right = i + 1 < parts.size() ? &parts[i + 1] : nullptr;
        const bool wordBefore = left != nullptr && left->back() != ' ';
        const bool wordBehind = right != nullptr && right->front() != ' ';
        if (token.rstrip && right != nullptr)
            stripLeft(*right);
        if (token.lstrip && left != nullptr)
            stripRight(*left);
        // Not a word of its own: it is text like its neighbour.
        if (token.singleWord && wordBefore)
            *left += std::exchange(parts[i], {});
        else if (token.singleWord && wordBehind)
            right->insert(0, std::exchange(parts[i], {}));
    }
    return parts;
}

/// Without the dummy prefix the library drops a leading space, so an unknown token goes in front of
/// it and is taken away again.
void SentencePiece::appendPieces(const std::string& text, Strings& tokens) const
{
    Strings found;
    if (m_tokens.legacy || !(text.starts_with(kSpaceMark) || text.starts_with(' '))) {
        found = pieces(text);
    } else {
        found = pieces(*m_tokens.unknown + text);
        if (found.size() >= m_unknownLength)
            found.erase(found.begin(),
                        found.begin() + static_cast<std::ptrdiff_t>(m_unknownLength));
    }
    std::move(found.begin(), found.end(), std::back_inserter(tokens));
}

std::vector<std::string> SentencePiece::tokensOf(std::string_view text) const
{
    Strings tokens;
    const bool marks = !m_tokens.legacy && !text.empty();
    std::string marked;
    if (marks) {
        marked = replaceAll(text, kSpaceMark, " ");
        if (m_tokens.addPrefixSpace)
            marked.insert(0, kSpaceMark);
        text = marked;
    }
    for (std::string& part : cut(text)) {
        if (part.empty())
            continue;
        if (m_tokens.idOf(part))
            tokens.push_back(std::move(part));
        else
            appendPieces(part, tokens);
    }
    if (marks && tokens.size() > 1 && tokens[0] == kSpaceMark && isSpecialToken(tokens[1]))
        tokens.erase(tokens.begin());
    return tokens;
}

std::vector<int> SentencePiece::encode(std::string_view text, bool addSpecialTokens) const
{
    std::vector<int> ids;
    if (addSpecialTokens && m_tokens.addBos)
        ids.push_back(*m_tokens.idOf(*m_tokens.bos));
    for (const std::string& token : tokensOf(text)) {
        const auto added = m_tokens.idOf(token);
        ids.push_back(added ? *added : m_model.PieceToId(token));
    }
    if (addSpecialTokens && m_tokens.addEos)
        ids.push_back(*m_tokens.idOf(*m_tokens.eos));
    return ids;
}

std::string SentencePiece::joined(const Strings& pieces) const
{
    std::string text;
    m_model.Decode(pieces, &text).IgnoreError(); // it fails on no pieces
    return text;
}

/// The text of pieces and special tokens.
std::string SentencePiece::textOf(Strings tokens) const
{
    if (m_tokens.addPrefixSpace && tokens[0].starts_with(kSpaceMark))
        tokens[0].erase(0, kSpaceMark.size());
    std::string text;
    Strings run;
    bool behindSpecial = false;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (isSpecialToken(tokens[i])) {
            if (!behindSpecial && i > 0 && m_tokens.legacy)
                text += ' ';
            text += joined(run) + tokens[i];
            run.clear();
            behindSpecial = true;
            continue;
        }
        if (behindSpecial && i == 1 && m_tokens.addPrefixSpace &&
            !tokens[i].starts_with(kSpaceMark))
            text += ' ';
        run.push_back(std::move(tokens[i]));
        behindSpecial = false;
    }
    return text + joined(run);
}

/// An added token that decoding puts into the text as it is, between stretches of other tokens.
bool SentencePiece::isAddedText(const std::string& token) const
{
    const auto id = m_tokens.idOf(token);
    return id && (!isSpecialToken(token) ||
                  (m_tokens.additional.contains(token) && *id >= m_model.GetPieceSize()));
}

std::string SentencePiece::decode(const std::vector<int>& ids, bool skipSpecialTokens) const
{
    std::string text;
    Strings run;
    const auto flush = [&] {
        if (!run.empty())
            text += textOf(std::exchange(run, {}));
    };
    for (const int id : ids) {
        std::string token = tokenOf(id).value_or("");
        if (skipSpecialTokens && isSpecialToken(token))
            continue;
        if (isAddedText(token)) {
            flush();
            text += token;
        } else {
            run.push_back(std::move(token));
        }
    }
    flush();
    return text;
}

std::optional<std::string> SentencePiece::tokenOf(int id) const
{
    if (const auto added = m_tokens.added.find(id); added != m_tokens.added.end())
        return added->second.content;
    if (id < 0 || id >= m_model.GetPieceSize())
        return std::nullopt;
    return m_model.IdToPiece(id);
}

std::optional<int> SentencePiece::idOf(std::string_view token) const
{
    if (const auto added = m_tokens.idOf(token))
        return added;
    const int id = m_model.PieceToId({token.data(), token.size()});
    return m_model.IdToPiece(id) == token ? std::optional<int>(id) : std::nullopt;
}

int SentencePiece::size() const
{
    const int added = m_tokens.added.empty() ? 0 : m_tokens.added.rbegin()->first + 1;
    return std::max(m_model.GetPieceSize(), added);
}

bool SentencePiece::isSpecial(int id) const
{
    const auto token = tokenOf(id);
    return token && isSpecialToken(*token);
}

} // namespace

Result<std::unique_ptr<TokenizerBackend>> openSentencePiece(const std::filesystem::path& file)
{
    MLA_TRY(model, readFile(file));
    auto tokenizer = std::make_unique<SentencePiece>();
    MLA_CHECK(tokenizer->load(std::move(model), file.parent_path()));
    return std::unique_ptr<TokenizerBackend>(std::move(tokenizer));
}

} // namespace mla::tok
