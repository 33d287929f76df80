// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/json.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/base/file.h"

namespace mla
{

namespace
{

constexpr int maximalDepth = 64;

/// Deepest nesting of brackets outside strings: looked at before parsing, since a document of
/// nothing but brackets would otherwise cost a hundred times its size in memory.
int nestingDepth(std::string_view text)
{
    int depth = 0;
    int deepest = 0;
    bool inString = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (inString && c == '\\')
            ++i;
        else if (c == '"')
            inString = !inString;
        else if (!inString && (c == '{' || c == '['))
            deepest = std::max(deepest, ++depth);
        else if (!inString && (c == '}' || c == ']'))
            --depth;
    }
    return deepest;
}

} // namespace

Result<nlohmann::json> parseJson(std::string_view text, const std::string& origin)
{
    if (nestingDepth(text) > maximalDepth)
        return badInput("JSON is nested deeper than " + std::to_string(maximalDepth) + " levels",
                        origin);
    // The parser would take a NUL for the end of the text and ignore what follows.
    if (text.find('\0') != std::string_view::npos)
        return badInput("is not valid JSON: it contains a NUL byte", origin);
    try {
        return nlohmann::json::parse(text);
    } catch (const nlohmann::json::exception& error) {
        return badInput(std::string("is not valid JSON: ") + error.what(), origin);
    }
}

Result<nlohmann::json> readJsonFile(const std::filesystem::path& path)
{
    MLA_TRY(text, readFile(path));
    return parseJson(text, path.string());
}

JsonReader::JsonReader(const nlohmann::json& object, std::string origin, std::string prefix)
    : m_object(object), m_origin(std::move(origin)), m_prefix(std::move(prefix))
{
    if (!object.is_object())
        m_status = badInput(m_prefix.empty() ? "a JSON object is expected"
                                             : "'" + m_prefix + "' must be a JSON object",
                            m_origin);
    if (!m_prefix.empty())
        m_prefix += '.';
}

void JsonReader::fail(const std::string& key, const std::string& problem)
{
    if (m_status)
        m_status = badInput("'" + m_prefix + key + "' " + problem, m_origin);
}

const nlohmann::json* JsonReader::find(const char* key) const
{
    if (!m_status)
        return nullptr;
    const auto it = m_object.find(key);
    return it == m_object.end() ? nullptr : &*it;
}

bool JsonReader::has(const char* key) const
{
    const nlohmann::json* value = find(key);
    return value && !value->is_null();
}

void JsonReader::require(const char* key)
{
    if (m_status && !has(key))
        fail(key, "is missing");
}

int JsonReader::toInteger(const std::string& key, const nlohmann::json& value, int fallback,
                          int lowest)
{
    constexpr int highest = std::numeric_limits<int>::max();
    if (!value.is_number_integer()) {
        fail(key, "must be an integer, not " + value.dump().substr(0, 80));
        return fallback;
    }
    const bool tooLarge = value.is_number_unsigned() && value.get<std::uint64_t>() > highest;
    if (tooLarge || value.get<std::int64_t>() < lowest) {
        fail(key, "is " + value.dump() + ", an integer from " + std::to_string(lowest) + " to " +
                      std::to_string(highest) + " is expected");
        return fallback;
    }
    return value.get<int>();
}

int JsonReader::integer(const char* key, int fallback, int lowest)
{
    const nlohmann::json* value = find(key);
    return value ? toInteger(key, *value, fallback, lowest) : fallback;
}

std::optional<int> JsonReader::optionalInteger(const char* key, std::optional<int> fallback,
                                               int lowest)
{
    const nlohmann::json* value = find(key);
    if (!value)
        return fallback;
    if (value->is_null())
        return std::nullopt;
    return toInteger(key, *value, lowest, lowest);
}

double JsonReader::number(const char* key, double fallback)
{
    const nlohmann::json* value = find(key);
    if (!value)
        return fallback;
    if (!value->is_number() || !std::isfinite(value->get<double>())) {
        fail(key, "must be a finite number, not " + value->dump().substr(0, 80));
        return fallback;
    }
    return value->get<double>();
}

bool JsonReader::boolean(const char* key, bool fallback)
{
    const nlohmann::json* value = find(key);
    if (!value)
        return fallback;
    if (!value->is_boolean()) {
        fail(key, "must be true or false, not " + value->dump().substr(0, 80));
        return fallback;
    }
    return value->get<bool>();
}

std::string JsonReader::text(const char* key, std::string fallback)
{
    const nlohmann::json* value = find(key);
    if (!value || value->is_null())
        return fallback;
    if (!value->is_string()) {
        fail(key, "must be a string, not " + value->dump().substr(0, 80));
        return fallback;
    }
    return value->get<std::string>();
}

std::vector<int> JsonReader::integers(const char* key, std::vector<int> fallback, int lowest)
{
    const nlohmann::json* value = find(key);
    if (!value)
        return fallback;
    std::vector<int> list;
    if (value->is_null())
        return list;
    if (!value->is_array())
        return {toInteger(key, *value, lowest, lowest)};
    for (const nlohmann::json& item : *value)
        list.push_back(toInteger(key, item, lowest, lowest));
    return list;
}

} // namespace mla
