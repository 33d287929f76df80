// SPDX-License-Identifier: GPL-3.0-or-later
// Reading JSON that others wrote: nothing in it is trusted, errors name the file and the key.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include <nlohmann/json.hpp>

namespace mla
{

/// Parses UTF-8 JSON. Nesting beyond 64 levels is refused; `origin` names the text in errors.
Result<nlohmann::json> parseJson(std::string_view text, const std::string& origin);
Result<nlohmann::json> readJsonFile(const std::filesystem::path& path);

/// Reads typed members of one JSON object. The first wrong one is kept in status() and every later
/// read returns its fallback, so that a caller checks once at the end. A key that is absent gives
/// the fallback; null does too, but only for the optional* readers.
class JsonReader
{
public:
    /// `prefix` names the object within its file, e.g. "rope_scaling"; empty for the whole file.
    JsonReader(const nlohmann::json& object, std::string origin, std::string prefix = {});

    [[nodiscard]] bool has(const char* key) const; ///< present and not null
    int integer(const char* key, int fallback, int lowest);
    int positive(const char* key, int fallback) { return integer(key, fallback, 1); }
    std::optional<int> optionalInteger(const char* key, std::optional<int> fallback, int lowest);
    double number(const char* key, double fallback); ///< finite
    bool boolean(const char* key, bool fallback);
    std::string text(const char* key, std::string fallback);
    /// An integer or a list of integers; null gives an empty list.
    std::vector<int> integers(const char* key, std::vector<int> fallback, int lowest);

    void require(const char* key); ///< fails when the key is absent or null
    void fail(const std::string& key, const std::string& problem);
    [[nodiscard]] const Status& status() const { return m_status; }

private:
    /// The member, or nullptr when it is absent or an error stands already.
    const nlohmann::json* find(const char* key) const;
    int toInteger(const std::string& key, const nlohmann::json& value, int fallback, int lowest);

    const nlohmann::json& m_object;
    std::string m_origin, m_prefix;
    Status m_status;
};

} // namespace mla
