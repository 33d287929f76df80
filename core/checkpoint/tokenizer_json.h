// SPDX-License-Identifier: GPL-3.0-or-later
// Reading a tokenizer.json: one streaming pass that keeps vocabulary and merges (megabytes) out of
// the document tree, and typed access to the rest with errors that name the key.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/result.h"

namespace mla::tok
{

struct TokenizerFile {
    nlohmann::json document; ///< everything but model.vocab and model.merges
    std::vector<std::pair<std::string, int>> vocab;
    std::vector<std::pair<std::string, std::string>> merges; ///< in order of rank
    bool hasVocab = false, hasMerges = false;
};

/// Parses and checks the syntax; `text` is hostile input (depth, ids and types are bounded).
Result<TokenizerFile> parseTokenizerFile(std::string_view text);

/// A value of the document with its place, "pre_tokenizer.pretokenizers[0]", for messages.
class JsonNode
{
public:
    JsonNode(const nlohmann::json& value, std::string path)
        : m_value(&value), m_path(std::move(path))
    {
    }
    [[nodiscard]] const std::string& path() const { return m_path; }
    [[nodiscard]] bool isNull() const { return m_value->is_null(); }
    /// Null or absent.
    [[nodiscard]] bool lacks(const std::string& key) const;
    Result<JsonNode> object(const std::string& key) const;
    Result<std::vector<JsonNode>> array(const std::string& key) const;
    Result<std::string> string(const std::string& key) const;
    Result<bool> flag(const std::string& key) const;
    Result<bool> flag(const std::string& key, bool whenAbsent) const;
    Result<int> number(const std::string& key) const; ///< a count or id, 0 … 2^31−1
    /// One character ("▁").
    Result<char32_t> character(const std::string& key) const;
    Result<std::string> type() const { return string("type"); }

    Result<std::vector<JsonNode>> elements() const; ///< this value is an array
    Result<std::string> asString() const;
    Result<int> asNumber() const;
    /// The only member of this object (`{"String": " "}`), as key and value.
    Result<std::pair<std::string, JsonNode>> onlyMember() const;

    [[nodiscard]] Error expected(const std::string& what) const;
    /// "… is not supported", naming this place.
    [[nodiscard]] Error unsupported(const std::string& what) const;

private:
    Result<JsonNode> member(const std::string& key) const;
    const nlohmann::json* m_value;
    std::string m_path;
};

} // namespace mla::tok
