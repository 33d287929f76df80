// SPDX-License-Identifier: GPL-3.0-or-later
// The "post_processor" of a tokenizer.json: the special tokens around a text.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/checkpoint/tokenizer_json.h"

namespace mla::tok
{

class PostProcessor
{
public:
    /// A null node adds nothing. `hasId` tells whether an id is in the token table.
    static Result<PostProcessor> create(const JsonNode& node,
                                        const std::function<bool(int)>& hasId);
    [[nodiscard]] std::vector<int> apply(std::vector<int> ids, bool addSpecialTokens) const;

private:
    /// The text itself (`isText`), or special tokens.
    struct Piece {
        bool isText;
        std::vector<int> ids;
    };
    Status add(const JsonNode& node, const std::function<bool(int)>& hasId);
    Status addTemplate(const JsonNode& node, const std::function<bool(int)>& hasId);
    std::vector<std::vector<Piece>> m_templates; ///< applied one behind the other
};

} // namespace mla::tok
