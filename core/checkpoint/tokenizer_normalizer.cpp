// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/tokenizer_normalizer.h"

#include <algorithm>
#include <array>

#include "core/checkpoint/tokenizer_bytelevel.h"

namespace mla::tok
{
namespace
{

std::string_view strip(std::string_view text, bool left, bool right)
{
    std::size_t begin = 0, end = text.size();
    for (std::size_t at = 0; left && at < end;) {
        if (!isWhitespace(nextCodePoint(text, at)))
            break;
        begin = at;
    }
    for (std::size_t at = end; right && at > begin;) {
        if (!isWhitespace(previousCodePoint(text, at)))
            break;
        end = at;
    }
    return text.substr(begin, end - begin);
}

} // namespace

Result<Pattern> readPattern(const JsonNode& owner)
{
    MLA_TRY(node, owner.object("pattern"));
    MLA_TRY(member, node.onlyMember());
    MLA_TRY(text, member.second.asString());
    if (member.first == "String") {
        if (text.empty())
            return member.second.unsupported("an empty pattern");
        return Pattern::literal(text);
    }
    if (member.first != "Regex")
        return node.unsupported("pattern kind '" + member.first + "'");
    auto regex = Regex::compile(text);
    if (!regex)
        return std::move(regex).error().within("key '" + member.second.path() + "'");
    return Pattern::regex(std::move(regex).value());
}

Result<Replacement> Replacement::create(const JsonNode& node)
{
    MLA_TRY(pattern, readPattern(node));
    MLA_TRY(content, node.string("content"));
    return Replacement{std::move(pattern), std::move(content)};
}

std::string Replacement::apply(std::string_view text) const
{
    if (text.empty())
        return {};
    std::vector<Match> matches;
    pattern.findAll(text, matches);
    std::string out;
    out.reserve(text.size());
    std::size_t done = 0;
    for (const Match& match : matches) {
        out += text.substr(done, match.begin - done);
        out += content;
        done = match.end;
    }
    out += text.substr(done);
    return out;
}

Result<Normalizer> Normalizer::create(const JsonNode& node)
{
    Normalizer normalizer;
    if (!node.isNull())
        MLA_CHECK(normalizer.add(node));
    return normalizer;
}

Status Normalizer::add(const JsonNode& node)
{
    MLA_TRY(type, node.type());
    constexpr std::array<std::pair<std::string_view, NormalForm>, 4> forms{
        {{"NFC", NormalForm::NFC},
         {"NFD", NormalForm::NFD},
         {"NFKC", NormalForm::NFKC},
         {"NFKD", NormalForm::NFKD}}};
    for (const auto& [name, form] : forms)
        if (type == name) {
            m_steps.emplace_back(form);
            return {};
        }
    if (type == "Sequence") {
        MLA_TRY(parts, node.array("normalizers"));
        for (const JsonNode& part : parts)
            MLA_CHECK(add(part));
    } else if (type == "Prepend") {
        MLA_TRY(text, node.string("prepend"));
        m_steps.emplace_back(Prepend{text});
    } else if (type == "Replace") {
        MLA_TRY(replacement, Replacement::create(node));
        m_steps.emplace_back(std::move(replacement));
    } else if (type == "Lowercase") {
        m_steps.emplace_back(Lowercase{});
    } else if (type == "ByteLevel") {
        m_steps.emplace_back(ByteLevel{});
    } else if (type == "Strip") {
        MLA_TRY(left, node.flag("strip_left"));
        MLA_TRY(right, node.flag("strip_right"));
        m_steps.emplace_back(Strip{left, right});
    } else {
        return node.unsupported("normalizer '" + type + "'");
    }
    return {};
}

bool Normalizer::mayCutStart() const
{
    return std::any_of(m_steps.begin(), m_steps.end(), [](const Step& step) {
        return std::holds_alternative<Strip>(step) || std::holds_alternative<Replacement>(step);
    });
}

std::string Normalizer::applyStep(const Step& step, const std::string& text)
{
    if (const auto* form = std::get_if<NormalForm>(&step))
        return normalize(text, *form);
    if (const auto* prepend = std::get_if<Prepend>(&step))
        return text.empty() ? text : prepend->text + text;
    if (const auto* replacement = std::get_if<Replacement>(&step))
        return replacement->apply(text);
    if (const auto* sides = std::get_if<Strip>(&step))
        return std::string(strip(text, sides->left, sides->right));
    if (std::holds_alternative<Lowercase>(step))
        return toLower(text);
    std::string mapped;
    appendByteLevel(mapped, text);
    return mapped;
}

std::string Normalizer::apply(std::string_view text) const
{
    std::string out(text);
    for (const Step& step : m_steps)
        out = applyStep(step, out);
    return out;
}

} // namespace mla::tok
