// SPDX-License-Identifier: GPL-3.0-or-later
// Settings as JSON, read strictly: a key nobody asked for or of the wrong type is an error that
// names its path within the document. (What others wrote is read by core/base/json.h.)
#pragma once

#include <filesystem>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/result.h"
#include "core/base/settings.h"

namespace mla
{

/// Reads one JSON object field by field. The first failure is kept and later reads do nothing, so
/// that a reader is a plain list of fields.
class ObjectReader
{
public:
    ObjectReader(const nlohmann::json& object, std::string prefix)
        : m_object(object), m_prefix(std::move(prefix))
    {
        if (!m_object.is_object())
            m_status = badInput("settings: " + (m_prefix.empty() ? "the plan" : m_prefix) +
                                " must be an object, got " + m_object.type_name());
    }

    void read(const char* key, std::string& value)
    {
        if (const nlohmann::json* found = take(key);
            found && expect(found->is_string(), key, "a string"))
            value = found->get<std::string>();
    }
    void read(const char* key, std::filesystem::path& value)
    {
        std::string text = value.string();
        read(key, text);
        value = text;
    }
    void read(const char* key, bool& value)
    {
        if (const nlohmann::json* found = take(key);
            found && expect(found->is_boolean(), key, "true or false"))
            value = found->get<bool>();
    }
    void read(const char* key, double& value)
    {
        if (const nlohmann::json* found = take(key);
            found && expect(found->is_number(), key, "a number"))
            value = found->get<double>();
    }
    void read(const char* key, int& value)
    {
        const nlohmann::json* found = take(key);
        if (found && expect(fitsInt(*found), key, "a whole number of 32 bits"))
            value = found->get<int>();
    }
    void read(const char* key, std::uint64_t& value)
    {
        const nlohmann::json* found = take(key);
        if (found && expect(found->is_number_unsigned() ||
                                (found->is_number_integer() && found->get<std::int64_t>() >= 0),
                            key, "a whole number that is not negative"))
            value = found->get<std::uint64_t>();
    }
    template <typename T>
    void read(const char* key, std::optional<T>& value)
    {
        const auto found = m_object.is_object() ? m_object.find(key) : m_object.end();
        if (found != m_object.end() && found->is_null()) {
            m_known.insert(key);
            value.reset();
            return;
        }
        T present = value.value_or(T{});
        if (found != m_object.end()) {
            read(key, present);
            value = present;
        }
    }
    /// Any value: the caller looks at its type.
    void read(const char* key, nlohmann::json& value)
    {
        if (const nlohmann::json* found = take(key))
            value = *found;
    }
    void read(const char* key, LayerRange& value)
    {
        readWith(key, [&](ObjectReader& inner) {
            inner.read("first", value.first);
            inner.read("last", value.last);
        });
    }
    template <typename T>
    void readList(const char* key, std::vector<T>& values)
    {
        const nlohmann::json* found = take(key);
        if (!found || !expect(found->is_array(), key, "a list"))
            return;
        values.clear();
        for (const nlohmann::json& item : *found) {
            if (!expect(item.is_string(), key, "a list of strings"))
                return;
            values.emplace_back(item.get<std::string>());
        }
    }
    template <typename Fields>
    void readWith(const char* key, Fields fields)
    {
        if (const nlohmann::json* found = take(key))
            keep(readObject(*found, name(key), fields));
    }
    template <typename T, typename Fields>
    void readObjects(const char* key, std::vector<T>& values, Fields fields)
    {
        const nlohmann::json* found = take(key);
        if (!found || !expect(found->is_array(), key, "a list"))
            return;
        values.clear();
        for (const nlohmann::json& item : *found) {
            const std::string where = name(key) + "[" + std::to_string(values.size()) + "]";
            T& value = values.emplace_back();
            keep(readObject(item, where, [&](ObjectReader& inner) { fields(inner, value); }));
        }
    }
    /// Keeps a problem of `key`'s value that only the caller can see.
    void refuse(const char* key, const std::string& problem)
    {
        keep(badInput("settings: '" + name(key) + "' " + problem));
    }
    /// Ok when every key of the object was read and had the right type.
    [[nodiscard]] Status finish() const
    {
        MLA_CHECK(m_status);
        for (const auto& [key, value] : m_object.items())
            if (!m_known.contains(key))
                return badInput("settings: unknown key '" + name(key) + "'");
        return {};
    }

    template <typename Fields>
    static Status readObject(const nlohmann::json& object, const std::string& prefix, Fields fields)
    {
        ObjectReader reader(object, prefix);
        fields(reader);
        return reader.finish();
    }

private:
    [[nodiscard]] std::string name(const std::string& key) const
    {
        return m_prefix.empty() ? key : m_prefix + "." + key;
    }
    const nlohmann::json* take(const char* key)
    {
        m_known.insert(key);
        if (!m_status)
            return nullptr;
        const auto found = m_object.find(key);
        return found == m_object.end() ? nullptr : &*found;
    }
    bool expect(bool right, const char* key, const char* what)
    {
        if (!right)
            keep(badInput("settings: key '" + name(key) + "' must be " + what + ", got " +
                          m_object.at(key).dump()));
        return right;
    }
    void keep(Status status)
    {
        if (m_status && !status)
            m_status = std::move(status);
    }
    static bool fitsInt(const nlohmann::json& value)
    {
        if (value.is_number_unsigned())
            return value.get<std::uint64_t>() <= std::numeric_limits<int>::max();
        return value.is_number_integer() &&
               value.get<std::int64_t>() >= std::numeric_limits<int>::min() &&
               value.get<std::int64_t>() <= std::numeric_limits<int>::max();
    }

    const nlohmann::json& m_object;
    std::string m_prefix;
    std::set<std::string> m_known;
    Status m_status;
};

/// The settings of one stage, as they stand in a study plan and in a grid.
void readFields(ObjectReader& in, CalibrationSettings& settings);
void readFields(ObjectReader& in, ConvertSettings& settings);
void readFields(ObjectReader& in, RefineSettings& settings);
void readFields(ObjectReader& in, AcceptSettings& settings);

} // namespace mla
