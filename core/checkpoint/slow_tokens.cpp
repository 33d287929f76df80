// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/slow_tokens.h"

#include <array>
#include <charconv>
#include <vector>

#include "core/base/json.h"

namespace mla::tok
{
namespace
{

using nlohmann::json;
namespace fs = std::filesystem;

constexpr int kMaxId = (1 << 24) - 1;
/// In the order in which tokens that are not in the table get their ids.
constexpr std::array<const char*, 7> kRoles = {"bos_token", "eos_token", "unk_token", "sep_token",
                                               "pad_token", "cls_token", "mask_token"};

/// The object in a file, or an empty one if there is no such file.
Result<json> optionalObject(const fs::path& file)
{
    std::error_code ignored;
    if (!fs::exists(file, ignored))
        return json::object();
    MLA_TRY(document, readJsonFile(file));
    if (!document.is_object())
        return badInput("must be a JSON object", file.string());
    return document;
}

Result<bool> flag(const json& object, const char* key, bool whenAbsent, const std::string& owner)
{
    const auto found = object.find(key);
    if (found == object.end() || found->is_null())
        return whenAbsent;
    if (!found->is_boolean())
        return badInput("key '" + owner + key + "' must be true or false");
    return found->get<bool>();
}

/// A token as a string, or as an object with its flags.
Result<SlowToken> readToken(const json& value, const std::string& key)
{
    SlowToken token;
    const json* content = &value;
    if (value.is_object()) {
        const auto found = value.find("content");
        if (found == value.end())
            return badInput("key '" + key + ".content' is missing");
        content = &*found;
        MLA_TRY(singleWord, flag(value, "single_word", false, key + "."));
        MLA_TRY(lstrip, flag(value, "lstrip", false, key + "."));
        MLA_TRY(rstrip, flag(value, "rstrip", false, key + "."));
        token = {{}, singleWord, lstrip, rstrip};
    }
    if (!content->is_string() || content->get_ref<const std::string&>().empty())
        return badInput("key '" + key + "' must be a token, not empty");
    token.content = content->get<std::string>();
    return token;
}

Result<int> readId(std::string_view text, const std::string& key)
{
    int id = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
    if (error != std::errc() || end != text.data() + text.size() || id < 0 || id > kMaxId)
        return badInput("key '" + key + "': '" + std::string(text) + "' is not an id");
    return id;
}

class Reader
{
public:
    Reader(int pieceCount, const std::function<std::optional<int>(const std::string&)>& pieceId)
        : m_pieceCount(pieceCount), m_pieceId(pieceId)
    {
    }

    Status readOptions(const json& config)
    {
        MLA_TRY(legacy, flag(config, "legacy", true, ""));
        MLA_TRY(prefix, flag(config, "add_prefix_space", true, ""));
        MLA_TRY(bos, flag(config, "add_bos_token", true, ""));
        MLA_TRY(eos, flag(config, "add_eos_token", false, ""));
        m_out.legacy = legacy;
        m_out.addPrefixSpace = prefix;
        m_out.addBos = bos;
        m_out.addEos = eos;
        return {};
    }

    /// "added_tokens_decoder": id -> token.
    Status readDecoder(const json& decoder)
    {
        if (!decoder.is_object())
            return badInput("key 'added_tokens_decoder' must be an object");
        for (const auto& [text, value] : decoder.items()) {
            const std::string key = "added_tokens_decoder." + text;
            MLA_TRY(id, readId(text, "added_tokens_decoder"));
            MLA_TRY(token, readToken(value, key));
            MLA_CHECK(add(id, token, key));
        }
        return {};
    }

    /// The older added_tokens.json: token -> id.
    Status readAdded(const json& tokens)
    {
        for (const auto& [content, value] : tokens.items()) {
            const std::string key = "added_tokens.json: '" + content + "'";
            if (content.empty() || !value.is_number_integer())
                return badInput("key " + key + " must have an id");
            MLA_TRY(id, readId(value.dump(), "added_tokens.json"));
            MLA_CHECK(add(id, {content}, key));
        }
        return {};
    }

    /// Tokens with a role, and special ones without. Flags of the decoder's entry come first.
    Status readRoles(const json& config, bool decoderRules)
    {
        for (const char* role : kRoles) {
            const auto found = config.find(role);
            std::optional<SlowToken> token = defaultOf(role);
            if (found != config.end())
                token.reset();
            if (found != config.end() && !found->is_null()) {
                MLA_TRY(given, readToken(*found, role));
                token = given;
            }
            if (!token)
                continue;
            addSpecial(*token, decoderRules);
            if (auto* slot = slotOf(role))
                *slot = token->content;
        }
        const auto found = config.find("additional_special_tokens");
        if (found == config.end() || found->is_null())
            return {};
        if (!found->is_array())
            return badInput("key 'additional_special_tokens' must be an array");
        for (std::size_t i = 0; i < found->size(); ++i) {
            MLA_TRY(token,
                    readToken((*found)[i], "additional_special_tokens[" + std::to_string(i) + "]"));
            if (!m_out.specials.contains(token.content))
                m_out.additional.insert(token.content);
            addSpecial(token, decoderRules);
        }
        return {};
    }

    Result<SlowTokens> finish()
    {
        if (m_out.addBos && !m_out.bos)
            return badInput("key 'add_bos_token' is true, but 'bos_token' names no token");
        if (m_out.addEos && !m_out.eos)
            return badInput("key 'add_eos_token' is true, but 'eos_token' names no token");
        if (!m_out.legacy && !m_out.unknown)
            return badInput("key 'legacy' is false, which needs an 'unk_token'");
        return std::move(m_out);
    }

private:
    static std::optional<SlowToken> defaultOf(std::string_view role)
    {
        if (role == "bos_token")
            return SlowToken{"<s>"};
        if (role == "eos_token")
            return SlowToken{"</s>"};
        if (role == "unk_token")
            return SlowToken{"<unk>"};
        return std::nullopt;
    }
    std::optional<std::string>* slotOf(std::string_view role)
    {
        return role == "bos_token"   ? &m_out.bos
               : role == "eos_token" ? &m_out.eos
               : role == "unk_token" ? &m_out.unknown
                                     : nullptr;
    }
    Status add(int id, const SlowToken& token, const std::string& key)
    {
        if (const auto known = m_out.idOf(token.content))
            return badInput("key '" + key + "': '" + token.content + "' is also token " +
                            std::to_string(*known));
        if (m_out.added.contains(id))
            return badInput("key '" + key + "': id " + std::to_string(id) + " is given twice");
        put(id, token);
        return {};
    }
    void put(int id, const SlowToken& token)
    {
        if (const auto old = m_out.added.find(id); old != m_out.added.end()) {
            m_newTokens -= m_pieceId(old->second.content) ? 0 : 1;
            m_out.ids.erase(old->second.content);
        }
        m_newTokens += m_pieceId(token.content) ? 0 : 1;
        m_out.ids[token.content] = id;
        m_out.added.insert_or_assign(id, token);
    }
    void addSpecial(const SlowToken& token, bool decoderRules)
    {
        m_out.specials.insert(token.content);
        auto id = m_out.idOf(token.content);
        if (id && decoderRules)
            return;
        if (!id)
            id = m_pieceId(token.content);
        put(id.value_or(m_pieceCount + m_newTokens), token);
    }

    int m_pieceCount;
    const std::function<std::optional<int>(const std::string&)>& m_pieceId;
    SlowTokens m_out;
    int m_newTokens = 0; ///< that are not in the model's table
};

/// Other classes cut or mark the text in ways of their own.
Status checkClass(const json& config)
{
    const auto found = config.find("tokenizer_class");
    if (found == config.end() || found->is_null())
        return {};
    const std::string name = found->is_string() ? found->get<std::string>() : found->dump();
    for (const char* known : {"LlamaTokenizer", "LlamaTokenizerFast", "PreTrainedTokenizer",
                              "PreTrainedTokenizerFast", "TokenizersBackend"})
        if (name == known)
            return {};
    return badInput("key 'tokenizer_class': '" + name + "' from a tokenizer.model is not supported",
                    {}, "save the tokenizer as tokenizer.json");
}

} // namespace

std::optional<int> SlowTokens::idOf(std::string_view content) const
{
    const auto found = ids.find(content);
    return found == ids.end() ? std::nullopt : std::optional<int>(found->second);
}

Result<SlowTokens>
readSlowTokens(const fs::path& directory, int pieceCount,
               const std::function<std::optional<int>(const std::string&)>& pieceId)
{
    const fs::path configFile = directory / "tokenizer_config.json";
    const auto in = [](const fs::path& file, Status status) -> Status {
        if (status)
            return status;
        return std::move(status).error().within(file.string());
    };
    MLA_TRY(config, optionalObject(configFile));
    MLA_CHECK(in(configFile, checkClass(config)));
    Reader reader(pieceCount, pieceId);
    MLA_CHECK(in(configFile, reader.readOptions(config)));
    const bool decoderRules = config.contains("added_tokens_decoder");
    if (decoderRules) {
        MLA_CHECK(in(configFile, reader.readDecoder(config["added_tokens_decoder"])));
    } else {
        MLA_TRY(roles, optionalObject(directory / "special_tokens_map.json"));
        for (const auto& [key, value] : roles.items())
            config[key] = value;
        MLA_TRY(added, optionalObject(directory / "added_tokens.json"));
        MLA_CHECK(in(directory / "added_tokens.json", reader.readAdded(added)));
    }
    MLA_CHECK(in(configFile, reader.readRoles(config, decoderRules)));
    auto tokens = reader.finish();
    if (!tokens)
        return std::move(tokens).error().within(configFile.string());
    return tokens;
}

} // namespace mla::tok
