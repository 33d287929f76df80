// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/tokenizer.h"

#include <algorithm>

#include "core/base/file.h"
#include "core/checkpoint/gguf.h"
#include "core/checkpoint/tokenizer_backend.h"
#include "core/checkpoint/tokenizer_gguf.h"
#include "core/checkpoint/tokenizer_pipeline.h"
#include "core/checkpoint/tokenizer_sentencepiece.h"
#include "core/checkpoint/tokenizer_unicode.h"

namespace mla
{
namespace
{

using Backend = Result<std::unique_ptr<tok::TokenizerBackend>>;

Backend openJson(const std::filesystem::path& file)
{
    MLA_TRY(text, readFile(file));
    MLA_TRY(parsed, tok::parseTokenizerFile(text));
    return tok::makePipeline(parsed);
}

Backend openGguf(const std::filesystem::path& file)
{
    MLA_TRY(gguf, GgufFile::open(file));
    MLA_TRY(described, tok::tokenizerOfGguf(gguf.metadata()));
    return tok::makePipeline(described);
}

/// The file that holds the tokenizer of the model at `path`.
Result<std::filesystem::path> findTokenizer(const std::filesystem::path& path)
{
    std::error_code ignored;
    if (!std::filesystem::is_directory(path, ignored))
        return path;
    for (const char* name : {"tokenizer.json", "tokenizer.model"})
        if (std::filesystem::exists(path / name, ignored))
            return path / name;
    MLA_TRY(gguf, findGguf(path));
    if (gguf)
        return *gguf;
    return badInput("holds no tokenizer.json and no tokenizer.model", path.string());
}

} // namespace

Result<Tokenizer> Tokenizer::open(const std::filesystem::path& path)
{
    MLA_TRY(file, findTokenizer(path));
    Backend backend = file.extension() == ".gguf"    ? openGguf(file)
                      : file.extension() == ".model" ? tok::openSentencePiece(file)
                                                     : openJson(file);
    if (!backend) {
        // What stands beside a tokenizer.model names itself.
        Error error = std::move(backend).error();
        const auto place = file.has_parent_path() ? file.parent_path() : file;
        const bool named = error.text().find(place.string()) != std::string::npos;
        return named ? error : std::move(error).within(file.string());
    }
    Tokenizer tokenizer;
    tokenizer.m_backend = std::move(backend).value();
    return tokenizer;
}

std::vector<int> Tokenizer::encode(std::string_view text, bool addSpecialTokens) const
{
    if (tok::isValidUtf8(text))
        return m_backend->encode(text, addSpecialTokens);
    return m_backend->encode(tok::toValidUtf8(text), addSpecialTokens);
}

Result<std::string> Tokenizer::decode(const std::vector<int>& ids, bool skipSpecialTokens) const
{
    for (const int id : ids)
        if (!tokenOf(id))
            return badInput("token id " + std::to_string(id) + " is not in the vocabulary of " +
                            std::to_string(size()) + " tokens");
    return m_backend->decode(ids, skipSpecialTokens);
}

std::optional<std::string> Tokenizer::tokenOf(int id) const
{
    return m_backend->tokenOf(id);
}

std::optional<int> Tokenizer::idOf(std::string_view token) const
{
    return m_backend->idOf(token);
}

int Tokenizer::size() const
{
    return m_backend->size();
}

bool Tokenizer::isSpecial(int id) const
{
    return m_backend->isSpecial(id);
}

} // namespace mla
