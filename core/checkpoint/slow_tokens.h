// SPDX-License-Identifier: GPL-3.0-or-later
// What stands beside a tokenizer.model: the special and added tokens of tokenizer_config.json,
// special_tokens_map.json and added_tokens.json, by the rules of Transformers 4's slow tokenizers.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace mla::tok
{

struct SlowToken {
    std::string content;
    bool singleWord = false, lstrip = false, rstrip = false;
};

struct SlowTokens {
    bool legacy = true; ///< how text behind an added token, and its first space, are treated
    bool addPrefixSpace = true, addBos = true, addEos = false;
    std::optional<std::string> bos, eos, unknown;
    std::map<int, SlowToken> added;              ///< by id, special ones included
    std::map<std::string, int, std::less<>> ids; ///< of `added`, by content
    std::set<std::string, std::less<>> specials;
    std::set<std::string, std::less<>> additional; ///< specials without a role

    [[nodiscard]] std::optional<int> idOf(std::string_view content) const;
};

/// Reads the files that exist in `directory`. `pieceCount` and `pieceId` describe the model's own
/// table; tokens that are not in it get ids behind it.
Result<SlowTokens>
readSlowTokens(const std::filesystem::path& directory, int pieceCount,
               const std::function<std::optional<int>(const std::string&)>& pieceId);

} // namespace mla::tok
