// SPDX-License-Identifier: GPL-3.0-or-later
// What stands behind a Tokenizer: one class for each way of tokenizing.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace mla::tok
{

/// The members mean what Tokenizer's of the same name say. `text` is valid UTF-8.
class TokenizerBackend
{
public:
    TokenizerBackend() = default;
    TokenizerBackend(const TokenizerBackend&) = delete;
    TokenizerBackend& operator=(const TokenizerBackend&) = delete;
    virtual ~TokenizerBackend() = default;

    [[nodiscard]] virtual std::vector<int> encode(std::string_view text,
                                                  bool addSpecialTokens) const = 0;
    /// Every id is known: tokenOf() answers for it.
    [[nodiscard]] virtual std::string decode(const std::vector<int>& ids,
                                             bool skipSpecialTokens) const = 0;
    [[nodiscard]] virtual std::optional<std::string> tokenOf(int id) const = 0;
    [[nodiscard]] virtual std::optional<int> idOf(std::string_view token) const = 0;
    [[nodiscard]] virtual int size() const = 0;
    [[nodiscard]] virtual bool isSpecial(int id) const = 0;
};

} // namespace mla::tok
