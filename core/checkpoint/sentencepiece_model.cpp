// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/sentencepiece_model.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <unordered_set>

#include "core/checkpoint/tokenizer_unicode.h"

namespace mla::tok
{
namespace
{

static_assert(std::endian::native == std::endian::little);

std::uint32_t littleEndian32(std::string_view bytes)
{
    std::uint32_t value = 0;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
}

/// One field of a protocol buffer message.
struct Field {
    std::uint64_t number = 0;
    enum class Wire { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 } wire = Wire::Varint;
    std::uint64_t value = 0; ///< of the integer kinds
    std::string_view bytes;  ///< of Bytes
};

/// Reads a message field by field.
class Message
{
public:
    Message(std::string_view bytes, std::string name) : m_rest(bytes), m_name(std::move(name)) {}

    /// Nothing at the end.
    Result<std::optional<Field>> next()
    {
        if (m_rest.empty())
            return std::optional<Field>();
        MLA_TRY(tag, varint());
        Field field;
        field.number = tag >> 3U;
        field.wire = static_cast<Field::Wire>(tag & 7U);
        switch (field.wire) {
        case Field::Wire::Varint: {
            MLA_TRY(value, varint());
            field.value = value;
            return std::optional(field);
        }
        case Field::Wire::Fixed32:
        case Field::Wire::Fixed64: {
            const std::size_t size = field.wire == Field::Wire::Fixed32 ? 4 : 8;
            MLA_TRY(bytes, take(size));
            std::memcpy(&field.value, bytes.data(), size);
            return std::optional(field);
        }
        case Field::Wire::Bytes: {
            MLA_TRY(length, varint());
            MLA_TRY(bytes, take(length));
            field.bytes = bytes;
            return std::optional(field);
        }
        }
        return badInput(m_name + ": not a sentencepiece model (wire type " +
                        std::to_string(tag & 7U) + ")");
    }

private:
    Result<std::uint64_t> varint()
    {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64 && !m_rest.empty(); shift += 7) {
            const auto byte = static_cast<unsigned char>(m_rest.front());
            m_rest.remove_prefix(1);
            value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
            if (byte < 0x80)
                return value;
        }
        return truncated();
    }
    Result<std::string_view> take(std::uint64_t length)
    {
        if (length > m_rest.size())
            return truncated();
        const std::string_view bytes = m_rest.substr(0, length);
        m_rest.remove_prefix(length);
        return bytes;
    }
    [[nodiscard]] Error truncated() const
    {
        return badInput(m_name + ": not a sentencepiece model, or its end is missing");
    }

    std::string_view m_rest;
    std::string m_name;
};

/// Calls `visit` (field), which returns a Status, for every field.
template <typename Visit>
Status forEachField(std::string_view bytes, const std::string& name, Visit visit)
{
    Message message(bytes, name);
    while (true) {
        MLA_TRY(field, message.next());
        if (!field)
            return {};
        MLA_CHECK(visit(*field));
    }
}

using Pieces = std::unordered_set<std::string_view>;

Status checkPiece(std::string_view bytes, const std::string& name, Pieces& seen)
{
    return forEachField(bytes, name, [&](const Field& field) -> Status {
        if (field.number == 1 && field.wire == Field::Wire::Bytes) {
            if (field.bytes.empty() || !isValidUtf8(field.bytes) ||
                field.bytes.find('\0') != std::string_view::npos)
                return badInput(name + ".piece must be text, not empty and without NUL");
            if (!seen.insert(field.bytes).second)
                return badInput(name + ".piece '" + std::string(field.bytes) + "' is there twice");
        } else if (field.number == 2) {
            const auto score = std::bit_cast<float>(static_cast<std::uint32_t>(field.value));
            if (field.wire != Field::Wire::Fixed32 || !std::isfinite(score))
                return badInput(name + ".score must be a finite number");
        } else if (field.number == 3 && (field.value < 1 || field.value > 6)) {
            return badInput(name + ".type " + std::to_string(field.value) +
                            " is not one of 1 to 6");
        }
        return {};
    });
}

/// A double array of 32-bit units (darts-clone) with the strings that its values are offsets into.
/// A look-up goes from unit i to i ^ offset(i) ^ byte for any byte, so the whole block of 256
/// behind each unit must exist; the value of a unit that has one stands at i ^ offset(i).
Status checkCharsmap(std::string_view bytes, const std::string& name)
{
    const Error broken = badInput(name + ".precompiled_charsmap is damaged");
    if (bytes.empty())
        return {};
    if (bytes.size() < 4)
        return broken;
    const std::uint32_t size = littleEndian32(bytes);
    const std::string_view rest = bytes.substr(4);
    if (size >= rest.size() || size % 4 != 0 || size < 1024 || rest.back() != '\0')
        return broken;
    const std::uint32_t count = size / 4;
    const std::size_t strings = rest.size() - size;
    const auto unitAt = [&](std::uint32_t i) {
        return littleEndian32(rest.substr(4 * std::size_t{i}));
    };
    constexpr std::uint32_t isValue = 1U << 31U, hasValue = 1U << 8U;
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint32_t unit = unitAt(i);
        if ((unit & isValue) != 0)
            continue;
        const std::uint32_t target = i ^ ((unit >> 10U) << ((unit & 0x200U) >> 6U));
        if ((target | 0xFFU) >= count)
            return broken;
        if ((unit & hasValue) != 0 && (unitAt(target) & ~isValue) >= strings)
            return broken;
    }
    return {};
}

Status checkNormalizer(std::string_view bytes, const std::string& name)
{
    return forEachField(bytes, name, [&](const Field& field) -> Status {
        if (field.number != 2)
            return {};
        if (field.wire != Field::Wire::Bytes)
            return badInput(name + ".precompiled_charsmap must be bytes");
        return checkCharsmap(field.bytes, name);
    });
}

Status checkTrainer(std::string_view bytes)
{
    return forEachField(bytes, "trainer_spec", [&](const Field& field) -> Status {
        constexpr std::uint64_t unigram = 1, bpe = 2, word = 3;
        if (field.number != 3 || field.value == unigram || field.value == bpe)
            return {};
        return badInput("trainer_spec.model_type " +
                        std::string(field.value == word ? "WORD" : std::to_string(field.value)) +
                        " is not supported; known are UNIGRAM and BPE");
    });
}

} // namespace

Status checkSentencePieceModel(std::string_view bytes)
{
    std::size_t pieces = 0;
    Pieces seen;
    MLA_CHECK(forEachField(bytes, "the file", [&](const Field& field) -> Status {
        if (field.number < 1 || field.number > 5 || field.wire != Field::Wire::Bytes)
            return field.number == 0 || field.number <= 5
                       ? Status(badInput("not a sentencepiece model"))
                       : Status();
        switch (field.number) {
        case 1:
            return checkPiece(field.bytes, "pieces[" + std::to_string(pieces++) + "]", seen);
        case 2:
            return checkTrainer(field.bytes);
        case 3:
            return checkNormalizer(field.bytes, "normalizer_spec");
        case 5:
            return checkNormalizer(field.bytes, "denormalizer_spec");
        default:
            return {};
        }
    }));
    if (pieces == 0)
        return badInput("not a sentencepiece model: it has no pieces");
    return {};
}

} // namespace mla::tok
