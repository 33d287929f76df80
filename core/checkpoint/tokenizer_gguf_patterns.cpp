// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/tokenizer_gguf_patterns.h"

#include <map>
#include <vector>

namespace mla::tok
{
namespace
{

using nlohmann::json;

constexpr const char* kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))";
constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+)"
    R"([\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// Splits at the matches of each pattern in turn, then maps bytes to characters.
json splits(const std::vector<const char*>& patterns)
{
    json parts = json::array();
    for (const char* pattern : patterns)
        parts.push_back({{"type", "Split"},
                         {"pattern", {{"Regex", pattern}}},
                         {"behavior", "Isolated"},
                         {"invert", false}});
    parts.push_back({{"type", "ByteLevel"},
                     {"add_prefix_space", false},
                     {"trim_offsets", true},
                     {"use_regex", false}});
    return {{"type", "Sequence"}, {"pretokenizers", std::move(parts)}};
}

/// GPT-2's own, which is the library's ByteLevel, perhaps behind a cut at every digit.
json byteLevel(bool digits)
{
    json step = {{"type", "ByteLevel"},
                 {"add_prefix_space", false},
                 {"trim_offsets", true},
                 {"use_regex", true}};
    if (!digits)
        return step;
    return {
        {"type", "Sequence"},
        {"pretokenizers", {{{"type", "Digits"}, {"individual_digits", true}}, std::move(step)}}};
}

using Table = std::map<std::string, GgufPreTokenizer>;

Table makeTable()
{
    const GgufPreTokenizer llama3{nullptr, splits({kLlama3}), true, true};
    const GgufPreTokenizer digits{nullptr, byteLevel(true), false, false};
    const GgufPreTokenizer gpt2{nullptr, byteLevel(false), false, false};
    Table table;
    for (const char* name : {"llama3", "llama-v3", "llama-bpe"})
        table[name] = llama3;
    for (const char* name : {"smollm", "starcoder", "refact", "codeshell"})
        table[name] = digits;
    for (const char* name : {"gpt-2", "phi-2"})
        table[name] = gpt2;
    for (const char* name : {"dbrx", "smaug-bpe"})
        table[name] = {nullptr, splits({kLlama3}), false, false};
    // llama.cpp does not normalize; the tokenizer.json of these models does.
    table["qwen2"] = {json{{"type", "NFC"}}, splits({kQwen2}), false, false};
    table["tekken"] = {nullptr, splits({kTekken}), true, true};
    for (const char* name : {"gpt-4o", "llama4"})
        table[name] = {nullptr, splits({kGpt4o}), false, false};
    table["default"] = {nullptr,
                        splits({R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}),
                        false, false};
    return table;
}

const Table& table()
{
    static const Table built = makeTable();
    return built;
}

} // namespace

std::optional<GgufPreTokenizer> ggufPreTokenizer(const std::string& name)
{
    const auto found = table().find(name);
    return found == table().end() ? std::nullopt : std::optional(found->second);
}

std::string knownGgufPreTokenizers()
{
    std::string names;
    for (const auto& [name, description] : table())
        names += (names.empty() ? "" : ", ") + name;
    return names;
}

} // namespace mla::tok
