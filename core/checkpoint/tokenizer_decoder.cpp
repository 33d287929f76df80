// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/tokenizer_decoder.h"

#include <charconv>
#include <optional>

#include "core/checkpoint/tokenizer_bytelevel.h"
#include "core/checkpoint/tokenizer_unicode.h"

namespace mla::tok
{
namespace
{

constexpr const char* kReplacementCharacter = "\xEF\xBF\xBD";

std::string join(const std::vector<std::string>& tokens, const char* separator)
{
    std::string text;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (i > 0)
            text += separator;
        text += tokens[i];
    }
    return text;
}

/// The byte of a token "<0x0A>".
std::optional<char> fallbackByte(const std::string& token)
{
    if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>')
        return std::nullopt;
    // The library's number parser takes a plus sign, too.
    const char* begin = token.data() + (token[3] == '+' ? 4 : 3);
    const char* end = token.data() + 5;
    unsigned value = 0;
    const auto [stop, error] = std::from_chars(begin, end, value, 16);
    if (error != std::errc() || stop != end)
        return std::nullopt;
    return static_cast<char>(value);
}

/// The bytes that a byte-level token stands for, or the token itself if it is not one.
std::string byteLevelBytes(const std::string& token)
{
    std::string bytes;
    for (std::size_t at = 0; at < token.size();) {
        const auto byte = byteOfCharacter(nextCodePoint(token, at));
        if (!byte)
            return token;
        bytes += static_cast<char>(*byte);
    }
    return bytes;
}

} // namespace

Result<Decoder> Decoder::create(const JsonNode& node)
{
    Decoder decoder;
    decoder.m_joinsWithSpaces = node.isNull();
    if (!node.isNull())
        MLA_CHECK(decoder.add(node));
    return decoder;
}

Status Decoder::add(const JsonNode& node)
{
    MLA_TRY(type, node.type());
    if (type == "Sequence") {
        MLA_TRY(parts, node.array("decoders"));
        for (const JsonNode& part : parts)
            MLA_CHECK(add(part));
    } else if (type == "ByteLevel") {
        m_steps.emplace_back(ByteLevel{});
    } else if (type == "ByteFallback") {
        m_steps.emplace_back(ByteFallback{});
    } else if (type == "Fuse") {
        m_steps.emplace_back(Fuse{});
    } else if (type == "Strip") {
        MLA_TRY(content, node.character("content"));
        MLA_TRY(start, node.number("start"));
        MLA_TRY(stop, node.number("stop"));
        m_steps.emplace_back(Strip{content, start, stop});
    } else if (type == "Replace") {
        MLA_TRY(replacement, Replacement::create(node));
        m_steps.emplace_back(std::move(replacement));
    } else if (type == "Metaspace") {
        return addMetaspace(node);
    } else {
        return node.unsupported("decoder '" + type + "'");
    }
    return {};
}

Status Decoder::addMetaspace(const JsonNode& node)
{
    MLA_TRY(replacement, node.character("replacement"));
    MLA_TRY(prefix, node.flag("add_prefix_space", true));
    std::string scheme = "always";
    if (!node.lacks("prepend_scheme")) {
        MLA_TRY(given, node.string("prepend_scheme"));
        scheme = given;
    }
    if (scheme != "always" && scheme != "first" && scheme != "never")
        return node.unsupported("prepend_scheme '" + scheme + "'");
    if (!prefix && scheme != "never")
        return badInput("key '" + node.path() +
                        "': add_prefix_space is false but prepend_scheme '" + scheme + "'");
    m_steps.emplace_back(Metaspace{replacement, scheme != "never"});
    return {};
}

std::string Decoder::decode(std::vector<std::string> tokens) const
{
    for (const Step& step : m_steps)
        std::visit([&](const auto& concrete) { applyStep(concrete, tokens); }, step);
    return join(tokens, m_joinsWithSpaces ? " " : "");
}

void Decoder::applyStep(const ByteLevel& /*step*/, std::vector<std::string>& tokens)
{
    std::string bytes;
    for (const std::string& token : tokens)
        bytes += byteLevelBytes(token);
    tokens = {toValidUtf8(bytes)};
}

void Decoder::applyStep(const ByteFallback& /*step*/, std::vector<std::string>& tokens)
{
    std::vector<std::string> out;
    std::string bytes;
    const auto flush = [&] {
        if (isValidUtf8(bytes) && !bytes.empty())
            out.push_back(bytes);
        else
            out.insert(out.end(), bytes.size(), kReplacementCharacter);
        bytes.clear();
    };
    for (std::string& token : tokens) {
        if (const auto byte = fallbackByte(token)) {
            bytes += *byte;
            continue;
        }
        flush();
        out.push_back(std::move(token));
    }
    flush();
    tokens = std::move(out);
}

void Decoder::applyStep(const Fuse& /*step*/, std::vector<std::string>& tokens)
{
    tokens = {join(tokens, "")};
}

void Decoder::applyStep(const Strip& step, std::vector<std::string>& tokens)
{
    for (std::string& token : tokens) {
        std::size_t begin = 0, end = token.size();
        for (int i = 0; i < step.start && begin < token.size(); ++i) {
            std::size_t at = begin;
            if (nextCodePoint(token, at) != step.content)
                break;
            begin = at;
        }
        for (int i = 0; i < step.stop && end > begin; ++i) {
            std::size_t at = end;
            if (previousCodePoint(token, at) != step.content)
                break;
            end = at;
        }
        token = token.substr(begin, end - begin);
    }
}

void Decoder::applyStep(const Metaspace& step, std::vector<std::string>& tokens)
{
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        std::string text;
        for (std::size_t at = 0; at < tokens[i].size();) {
            const char32_t code = nextCodePoint(tokens[i], at);
            if (code != step.replacement)
                appendUtf8(text, code);
            else if (i > 0 || !step.dropFirst)
                text += ' ';
        }
        tokens[i] = std::move(text);
    }
}

void Decoder::applyStep(const Replacement& step, std::vector<std::string>& tokens)
{
    for (std::string& token : tokens)
        token = step.apply(token);
}

} // namespace mla::tok
