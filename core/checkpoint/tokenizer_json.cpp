// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/tokenizer_json.h"

#include <limits>
#include <utility>

#include "core/checkpoint/tokenizer_unicode.h"

namespace mla::tok
{
namespace
{

using nlohmann::json;

constexpr std::size_t kMaxDepth = 64;

/// SAX handler. Builds `document` node by node, but streams the entries of model.vocab and
/// model.merges straight into the vectors of TokenizerFile.
class FileHandler : public nlohmann::json_sax<json>
{
public:
    explicit FileHandler(TokenizerFile& file) : m_file(file) {}
    [[nodiscard]] const std::string& error() const { return m_error; }

    bool null() override { return scalar(nullptr, "null"); }
    bool boolean(bool value) override { return scalar(value, "a boolean"); }
    bool number_float(number_float_t value, const string_t& /*text*/) override
    {
        return scalar(value, "a fraction");
    }
    bool binary(binary_t& /*value*/) override { return fail("binary data is not JSON"); }

    bool number_integer(number_integer_t value) override
    {
        if (m_place == Place::Vocab)
            return fail("model.vocab: the id of '" + m_token + "' is negative");
        return scalar(value, "a number");
    }
    bool number_unsigned(number_unsigned_t value) override
    {
        if (m_place != Place::Vocab)
            return scalar(value, "a number");
        if (value > static_cast<number_unsigned_t>(std::numeric_limits<int>::max()))
            return fail("model.vocab: the id of '" + m_token + "' is out of range");
        m_file.vocab.emplace_back(std::move(m_token), static_cast<int>(value));
        return true;
    }
    bool string(string_t& value) override
    {
        if (m_place == Place::Merges)
            return mergeLine(value);
        if (m_place == Place::MergePair) {
            if (m_pairSize == 2)
                return fail(mergeName() + " has more than two parts");
            (m_pairSize++ == 0 ? m_pair.first : m_pair.second) = std::move(value);
            return true;
        }
        return scalar(std::move(value), "a string");
    }

    bool start_object(std::size_t /*elements*/) override
    {
        if (m_place != Place::Document)
            return wrongType("an object");
        if (at("vocab")) {
            m_place = Place::Vocab;
            m_file.hasVocab = true;
            m_file.vocab.clear();
            return true;
        }
        return push(json::object());
    }
    bool key(string_t& value) override
    {
        (m_place == Place::Vocab ? m_token : m_key) = std::move(value);
        return true;
    }
    bool end_object() override
    {
        if (m_place == Place::Vocab)
            m_place = Place::Document;
        else
            m_stack.pop_back();
        return true;
    }
    bool start_array(std::size_t /*elements*/) override
    {
        if (m_place == Place::Merges) {
            m_place = Place::MergePair;
            m_pairSize = 0;
            return true;
        }
        if (m_place != Place::Document)
            return wrongType("an array");
        if (at("merges")) {
            m_place = Place::Merges;
            m_file.hasMerges = true;
            m_file.merges.clear();
            return true;
        }
        return push(json::array());
    }
    bool end_array() override
    {
        if (m_place == Place::MergePair) {
            if (m_pairSize != 2)
                return fail(mergeName() + " must have two parts");
            m_file.merges.push_back(std::move(m_pair));
            m_pair = {};
            m_place = Place::Merges;
        } else if (m_place == Place::Merges) {
            m_place = Place::Document;
        } else {
            m_stack.pop_back();
        }
        return true;
    }
    bool parse_error(std::size_t position, const std::string& /*token*/,
                     const nlohmann::detail::exception& /*exception*/) override
    {
        return fail("not valid JSON near byte " + std::to_string(position));
    }

private:
    enum class Place { Document, Vocab, Merges, MergePair };

    bool fail(std::string message)
    {
        m_error = std::move(message);
        return false;
    }
    bool wrongType(const std::string& what)
    {
        if (m_place == Place::Vocab)
            return fail("model.vocab: the id of '" + m_token + "' must be a number, not " + what);
        return fail(mergeName() + " must be a string or a pair of strings, not " + what);
    }
    [[nodiscard]] std::string mergeName() const
    {
        return "model.merges[" + std::to_string(m_file.merges.size()) + "]";
    }
    /// The next value belongs to `key` of the object "model" at the root.
    [[nodiscard]] bool at(std::string_view key) const
    {
        return m_stack.size() == 2 && m_model == m_stack.back() && m_key == key;
    }
    json* place(json value)
    {
        if (m_stack.empty()) {
            m_file.document = std::move(value);
            return &m_file.document;
        }
        json& parent = *m_stack.back();
        if (parent.is_array()) {
            parent.push_back(std::move(value));
            return &parent.back();
        }
        json& slot = parent[m_key];
        slot = std::move(value);
        return &slot;
    }
    bool push(json container)
    {
        if (m_stack.size() >= kMaxDepth)
            return fail("nested deeper than " + std::to_string(kMaxDepth) + " levels");
        json* node = place(std::move(container));
        if (m_stack.size() == 1 && m_stack[0]->is_object() && m_key == "model") {
            m_model = node;
            m_file.hasVocab = m_file.hasMerges = false; // of a repeated key the last one counts
        }
        m_stack.push_back(node);
        return true;
    }
    bool scalar(json value, const char* what)
    {
        if (m_place != Place::Document)
            return wrongType(what);
        place(std::move(value));
        return true;
    }
    /// "a b", the older form. A line "#version: …" is a comment there.
    bool mergeLine(const std::string& line)
    {
        if (line.starts_with("#version"))
            return true;
        const std::size_t space = line.find(' ');
        if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos)
            return fail(mergeName() + " '" + line + "' must be two parts and one space");
        m_file.merges.emplace_back(line.substr(0, space), line.substr(space + 1));
        return true;
    }

    TokenizerFile& m_file;
    std::vector<json*> m_stack; ///< open containers of the document
    const json* m_model = nullptr;
    Place m_place = Place::Document;
    std::string m_key, m_token, m_error;
    std::pair<std::string, std::string> m_pair;
    int m_pairSize = 0;
};

} // namespace

Result<TokenizerFile> parseTokenizerFile(std::string_view text)
{
    // The parser would take a NUL byte for the end of the text.
    if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos)
        return badInput("not valid JSON near byte " + std::to_string(nul));
    TokenizerFile file;
    FileHandler handler(file);
    if (!json::sax_parse(text.begin(), text.end(), &handler))
        return badInput(handler.error());
    if (!file.document.is_object())
        return badInput("must be a JSON object");
    return file;
}

bool JsonNode::lacks(const std::string& key) const
{
    const auto found = m_value->find(key);
    return found == m_value->end() || found->is_null();
}

Result<JsonNode> JsonNode::member(const std::string& key) const
{
    const std::string path = m_path.empty() ? key : m_path + "." + key;
    if (!m_value->is_object())
        return expected("an object");
    const auto found = m_value->find(key);
    if (found == m_value->end())
        return badInput("key '" + path + "' is missing");
    return JsonNode(*found, path);
}

Result<JsonNode> JsonNode::object(const std::string& key) const
{
    MLA_TRY(node, member(key));
    if (!node.m_value->is_object())
        return node.expected("an object");
    return node;
}

Result<std::vector<JsonNode>> JsonNode::array(const std::string& key) const
{
    MLA_TRY(node, member(key));
    return node.elements();
}

Result<std::string> JsonNode::string(const std::string& key) const
{
    MLA_TRY(node, member(key));
    return node.asString();
}

Result<bool> JsonNode::flag(const std::string& key) const
{
    MLA_TRY(node, member(key));
    if (!node.m_value->is_boolean())
        return node.expected("true or false");
    return node.m_value->get<bool>();
}

Result<bool> JsonNode::flag(const std::string& key, bool whenAbsent) const
{
    return lacks(key) ? Result<bool>(whenAbsent) : flag(key);
}

Result<int> JsonNode::number(const std::string& key) const
{
    MLA_TRY(node, member(key));
    return node.asNumber();
}

Result<char32_t> JsonNode::character(const std::string& key) const
{
    MLA_TRY(text, string(key));
    std::size_t end = 0;
    const char32_t code = text.empty() ? 0 : nextCodePoint(text, end);
    if (text.empty() || end != text.size())
        return badInput("key '" + m_path + "." + key + "' must be one character");
    return code;
}

Result<std::vector<JsonNode>> JsonNode::elements() const
{
    if (!m_value->is_array())
        return expected("an array");
    std::vector<JsonNode> nodes;
    nodes.reserve(m_value->size());
    for (const json& element : *m_value)
        nodes.emplace_back(element, m_path + "[" + std::to_string(nodes.size()) + "]");
    return nodes;
}

Result<std::string> JsonNode::asString() const
{
    if (!m_value->is_string())
        return expected("a string");
    return m_value->get<std::string>();
}

Result<int> JsonNode::asNumber() const
{
    constexpr std::int64_t limit = std::numeric_limits<int>::max();
    const bool isLarge = m_value->is_number_unsigned() &&
                         m_value->get<std::uint64_t>() > static_cast<std::uint64_t>(limit);
    if (!m_value->is_number_integer() || isLarge || m_value->get<std::int64_t>() < 0)
        return expected("a whole number from 0 to 2147483647");
    return static_cast<int>(m_value->get<std::int64_t>());
}

Result<std::pair<std::string, JsonNode>> JsonNode::onlyMember() const
{
    if (!m_value->is_object() || m_value->size() != 1)
        return expected("an object with one key");
    const auto entry = m_value->begin();
    return std::pair(entry.key(), JsonNode(entry.value(), m_path + "." + entry.key()));
}

Error JsonNode::expected(const std::string& what) const
{
    return badInput("key '" + m_path + "' must be " + what);
}

Error JsonNode::unsupported(const std::string& what) const
{
    return badInput("key '" + m_path + "': " + what + " is not supported");
}

} // namespace mla::tok
