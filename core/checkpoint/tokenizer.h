// SPDX-License-Identifier: GPL-3.0-or-later
// tokenizer.json of the `tokenizers` library: BPE models, byte-level and byte-fallback. Output
// equals that library's; whatever is not supported is refused by name when the file is opened.
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

class Tokenizer
{
public:
    /// `path`: a tokenizer.json or a directory that holds one.
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
    struct Impl;
    std::shared_ptr<const Impl> m_impl;
};

/// Checks that two models share one token table, as speculative decoding needs: every id below the
/// smaller size has the same token string in both (or none in both). Sizes may differ
/// (padding); the first differing id and both its tokens are named in the error.
Status checkSameTokens(const Tokenizer& target, const Tokenizer& draft);

} // namespace mla
