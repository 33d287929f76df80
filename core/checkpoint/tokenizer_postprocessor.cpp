// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/tokenizer_postprocessor.h"

namespace mla::tok
{
namespace
{

using HasId = std::function<bool(int)>;

Result<std::vector<int>> specialIds(const JsonNode& owner, const std::string& name,
                                    const HasId& hasId)
{
    MLA_TRY(tokens, owner.object("special_tokens"));
    MLA_TRY(token, tokens.object(name));
    MLA_TRY(nodes, token.array("ids"));
    std::vector<int> ids;
    for (const JsonNode& node : nodes) {
        MLA_TRY(id, node.asNumber());
        if (!hasId(id))
            return badInput("key '" + node.path() + "': id " + std::to_string(id) +
                            " is not in the vocabulary");
        ids.push_back(id);
    }
    return ids;
}

} // namespace

Result<PostProcessor> PostProcessor::create(const JsonNode& node, const HasId& hasId)
{
    PostProcessor processor;
    if (!node.isNull())
        MLA_CHECK(processor.add(node, hasId));
    return processor;
}

Status PostProcessor::add(const JsonNode& node, const HasId& hasId)
{
    MLA_TRY(type, node.type());
    if (type == "Sequence") {
        MLA_TRY(parts, node.array("processors"));
        for (const JsonNode& part : parts)
            MLA_CHECK(add(part, hasId));
        return {};
    }
    if (type == "TemplateProcessing")
        return addTemplate(node, hasId);
    if (type == "ByteLevel")
        return {}; // moves offsets only
    return node.unsupported("post-processor '" + type + "'");
}

Status PostProcessor::addTemplate(const JsonNode& node, const HasId& hasId)
{
    MLA_TRY(pieces, node.array("single"));
    std::vector<Piece> parts;
    for (const JsonNode& piece : pieces) {
        MLA_TRY(member, piece.onlyMember());
        MLA_TRY(id, member.second.string("id"));
        if (member.first == "Sequence") {
            if (id != "A")
                return piece.unsupported("sequence '" + id + "' for a single text");
            parts.push_back({true, {}});
        } else if (member.first == "SpecialToken") {
            MLA_TRY(ids, specialIds(node, id, hasId));
            parts.push_back({false, std::move(ids)});
        } else {
            return piece.unsupported("template piece '" + member.first + "'");
        }
    }
    m_templates.push_back(std::move(parts));
    return {};
}

std::vector<int> PostProcessor::apply(std::vector<int> ids, bool addSpecialTokens) const
{
    for (const std::vector<Piece>& pieces : m_templates) {
        std::vector<int> out;
        for (const Piece& piece : pieces) {
            if (piece.isText)
                out.insert(out.end(), ids.begin(), ids.end());
            else if (addSpecialTokens)
                out.insert(out.end(), piece.ids.begin(), piece.ids.end());
        }
        ids = std::move(out);
    }
    return ids;
}

} // namespace mla::tok
