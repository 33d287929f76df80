// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>
#include <cstring>
#include <limits>

#include "core/checkpoint/gguf_header.h"
#include "core/checkpoint/tokenizer_unicode.h"

namespace mla
{

namespace
{

template <typename T>
T read(const std::byte* bytes)
{
    T value;
    std::memcpy(&value, bytes, sizeof(T)); // metadata is not aligned
    return value;
}

/// Any integer type; nothing for other types and for values beyond 63 bits.
std::optional<std::int64_t> integerAt(GgufType type, const std::byte* bytes)
{
    switch (type) {
    case GgufType::UInt8:
        return read<std::uint8_t>(bytes);
    case GgufType::Int8:
        return read<std::int8_t>(bytes);
    case GgufType::UInt16:
        return read<std::uint16_t>(bytes);
    case GgufType::Int16:
        return read<std::int16_t>(bytes);
    case GgufType::UInt32:
        return read<std::uint32_t>(bytes);
    case GgufType::Int32:
        return read<std::int32_t>(bytes);
    case GgufType::Int64:
        return read<std::int64_t>(bytes);
    case GgufType::UInt64: {
        const auto value = read<std::uint64_t>(bytes);
        if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
            return static_cast<std::int64_t>(value);
        return std::nullopt;
    }
    default:
        return std::nullopt;
    }
}

/// Any number type; nothing for other types and for NaN and infinities.
std::optional<double> numberAt(GgufType type, const std::byte* bytes)
{
    double value = 0;
    if (type == GgufType::Float32)
        value = read<float>(bytes);
    else if (type == GgufType::Float64)
        value = read<double>(bytes);
    else if (const auto integer = integerAt(type, bytes))
        value = static_cast<double>(*integer);
    else
        return std::nullopt;
    return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

/// The next string of an encoding whose extent was checked.
std::string_view takeText(std::span<const std::byte>& bytes)
{
    const auto length = read<std::uint64_t>(bytes.data());
    bytes = bytes.subspan(sizeof length);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), length);
    bytes = bytes.subspan(length);
    return text;
}

/// Decodes each element of an array with `decode`; nothing as soon as one is refused.
template <typename T, typename Decode>
std::optional<std::vector<T>> allOf(const GgufValue& value, Decode decode)
{
    const std::size_t size = ggufTypeBytes(value.type);
    if (size == 0)
        return std::nullopt;
    std::vector<T> all;
    all.reserve(value.count);
    for (std::uint64_t i = 0; i < value.count; ++i) {
        const std::optional<T> element = decode(value.type, value.bytes.data() + i * size);
        if (!element)
            return std::nullopt;
        all.push_back(*element);
    }
    return all;
}

} // namespace

Error GgufMetadata::wrongKind(const std::string& key, const char* expected) const
{
    return badInput("metadata key '" + key + "' must be " + expected, m_origin);
}

Result<GgufValue> GgufMetadata::value(const std::string& key, bool array) const
{
    const auto it = m_values.find(key);
    if (it == m_values.end())
        return badInput("metadata key '" + key + "' is missing", m_origin);
    if (it->second.isArray != array)
        return wrongKind(key, array ? "an array" : "a single value, not an array");
    return it->second;
}

Result<std::string> GgufMetadata::text(const std::string& key) const
{
    MLA_TRY(found, value(key, false));
    if (found.type != GgufType::String)
        return wrongKind(key, "a string");
    std::span<const std::byte> bytes = found.bytes;
    const std::string_view text = takeText(bytes);
    if (!tok::isValidUtf8(text))
        return wrongKind(key, "valid UTF-8");
    return std::string(text);
}

Result<bool> GgufMetadata::boolean(const std::string& key) const
{
    MLA_TRY(found, value(key, false));
    if (found.type != GgufType::Bool || read<std::uint8_t>(found.bytes.data()) > 1)
        return wrongKind(key, "true or false");
    return read<std::uint8_t>(found.bytes.data()) == 1;
}

Result<std::int64_t> GgufMetadata::integer(const std::string& key) const
{
    MLA_TRY(found, value(key, false));
    const auto integer =
        ggufTypeBytes(found.type) > 0 ? integerAt(found.type, found.bytes.data()) : std::nullopt;
    if (!integer)
        return wrongKind(key, "an integer of at most 63 bits");
    return *integer;
}

Result<double> GgufMetadata::number(const std::string& key) const
{
    MLA_TRY(found, value(key, false));
    const auto number =
        ggufTypeBytes(found.type) > 0 ? numberAt(found.type, found.bytes.data()) : std::nullopt;
    if (!number)
        return wrongKind(key, "a finite number");
    return *number;
}

Result<std::vector<std::string>> GgufMetadata::texts(const std::string& key) const
{
    MLA_TRY(found, value(key, true));
    if (found.type != GgufType::String)
        return wrongKind(key, "an array of strings");
    std::vector<std::string> all;
    all.reserve(found.count); // each one takes at least 8 bytes of the file
    std::span<const std::byte> bytes = found.bytes;
    for (std::uint64_t i = 0; i < found.count; ++i) {
        all.emplace_back(takeText(bytes));
        if (!tok::isValidUtf8(all.back()))
            return badInput("metadata key '" + key + "': element " + std::to_string(i) +
                                " is not valid UTF-8",
                            m_origin);
    }
    return all;
}

Result<std::vector<std::int64_t>> GgufMetadata::integers(const std::string& key) const
{
    MLA_TRY(found, value(key, true));
    auto all = allOf<std::int64_t>(found, integerAt);
    if (!all)
        return wrongKind(key, "an array of integers of at most 63 bits");
    return std::move(*all);
}

Result<std::vector<double>> GgufMetadata::numbers(const std::string& key) const
{
    MLA_TRY(found, value(key, true));
    auto all = allOf<double>(found, numberAt);
    if (!all)
        return wrongKind(key, "an array of finite numbers");
    return std::move(*all);
}

Result<std::string> GgufMetadata::text(const std::string& key, const std::string& fallback) const
{
    return has(key) ? text(key) : Result<std::string>(fallback);
}

Result<bool> GgufMetadata::boolean(const std::string& key, bool fallback) const
{
    return has(key) ? boolean(key) : Result<bool>(fallback);
}

Result<std::int64_t> GgufMetadata::integer(const std::string& key, std::int64_t fallback) const
{
    return has(key) ? integer(key) : Result<std::int64_t>(fallback);
}

Result<double> GgufMetadata::number(const std::string& key, double fallback) const
{
    return has(key) ? number(key) : Result<double>(fallback);
}

} // namespace mla
