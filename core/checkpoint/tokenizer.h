// SPDX-License-Identifier: GPL-3.0-or-later
// A model's tokenizer, from one of three kinds of files:
//   tokenizer.json   BPE, byte-level and byte-fallback, as the `tokenizers` library does
//   tokenizer.model  BPE and unigram through the sentencepiece library, with the special and added
//                    tokens of the files beside it, as Transformers 4's LlamaTokenizer does
//   *.gguf           the tokenizer.json that the model was made from, as far as GGUF tells
// Output equals theirs; whatever is not supported is refused by name when the file is opened.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace mla
{

namespace tok
{
class TokenizerBackend;
}

class Tokenizer
{
public:
    /// `path`: one of these files, or a model directory. A directory's tokenizer.json comes before
    /// its tokenizer.model, and that before its only GGUF file.
    static Result<Tokenizer> open(const std::filesystem::path& path);

    /// Ids of UTF-8 `text`. With `addSpecialTokens` the post-processor's template is applied.
    /// Text that is not valid UTF-8 has its invalid bytes replaced by U+FFFD first.
    [[nodiscard]] std::vector<int> encode(std::string_view text,
                                          bool addSpecialTokens = true) const;
    /// Text of `ids`; keeps special tokens unless `skipSpecialTokens`. Ids outside the vocabulary
    /// are an error that names the id.
    Result<std::string> decode(const std::vector<int>& ids, bool skipSpecialTokens = false) const;
    /// The token string of an id as in the vocabulary ("Ġthe"), if there is one.
    [[nodiscard]] std::optional<std::string> tokenOf(int id) const;
    [[nodiscard]] std::optional<int> idOf(std::string_view token) const;
    [[nodiscard]] int size() const; ///< 1 + largest id
    [[nodiscard]] bool isSpecial(int id) const;

private:
    std::shared_ptr<const tok::TokenizerBackend> m_backend;
};

} // namespace mla
