// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/tokenizer_gguf.h"

#include <algorithm>
#include <unordered_map>

#include "core/base/file.h"
#include "core/checkpoint/tokenizer_gguf_patterns.h"
#include "core/checkpoint/tokenizer_unicode.h"

namespace mla
{
namespace tok
{
namespace
{

using nlohmann::json;

constexpr const char* kSpaceMark = "\u2581";
/// Of a piece with a score. Real ones have a tenth of it; the time to derive merges grows with the
/// square of it.
constexpr std::size_t kLongestPiece = 256;

/// Numbers of "tokenizer.ggml.token_type".
enum Kind : std::int64_t { Normal = 1, Unknown, Control, UserDefined, Unused, Byte };

std::string key(const std::string& name)
{
    return "tokenizer.ggml." + name;
}

std::string place(const std::string& name, std::size_t index)
{
    return "key '" + key(name) + "[" + std::to_string(index) + "]'";
}

struct Table {
    std::vector<std::string> tokens;
    std::vector<std::int64_t> kinds;

    [[nodiscard]] bool isUnused(std::size_t id) const { return kinds[id] == Unused; }
};

Result<Table> readTable(const GgufMetadata& metadata)
{
    MLA_TRY(tokens, metadata.texts(key("tokens")));
    MLA_TRY(kinds, metadata.integers(key("token_type")));
    if (kinds.size() != tokens.size())
        return badInput("key '" + key("token_type") + "' has " + std::to_string(kinds.size()) +
                        " entries for " + std::to_string(tokens.size()) + " tokens");
    for (std::size_t id = 0; id < kinds.size(); ++id)
        if (kinds[id] < Normal || kinds[id] > Byte)
            return badInput(place("token_type", id) + ": type " + std::to_string(kinds[id]) +
                            " is not one of 1 to 6");
    return Table{std::move(tokens), std::move(kinds)};
}

/// Every token but those that only pad the table.
Status fillVocabulary(const Table& table, TokenizerFile& file)
{
    std::unordered_map<std::string_view, std::size_t> seen;
    for (std::size_t id = 0; id < table.tokens.size(); ++id) {
        if (table.isUnused(id))
            continue;
        const auto [entry, isNew] = seen.emplace(table.tokens[id], id);
        if (!isNew)
            return badInput(place("tokens", id) + ": '" + table.tokens[id] + "' is also token " +
                            std::to_string(entry->second));
        file.vocab.emplace_back(table.tokens[id], static_cast<int>(id));
    }
    file.hasVocab = true;
    return {};
}

json addedTokens(const Table& table)
{
    json added = json::array();
    for (std::size_t id = 0; id < table.tokens.size(); ++id) {
        const std::int64_t kind = table.kinds[id];
        if (table.tokens[id].empty() || (kind != Control && kind != UserDefined && kind != Unknown))
            continue;
        added.push_back({{"id", id},
                         {"content", table.tokens[id]},
                         {"single_word", false},
                         {"lstrip", false},
                         {"rstrip", false},
                         {"normalized", false},
                         {"special", kind != UserDefined}});
    }
    return added;
}

/// The token that key `name` (an id) stands for.
Result<std::string> tokenOfKey(const GgufMetadata& metadata, const Table& table,
                               const std::string& name)
{
    MLA_TRY(id, metadata.integer(key(name)));
    if (id < 0 || id >= static_cast<std::int64_t>(table.tokens.size()) ||
        table.isUnused(static_cast<std::size_t>(id)))
        return badInput("key '" + key(name) + "': id " + std::to_string(id) +
                        " is not in the vocabulary");
    return table.tokens[static_cast<std::size_t>(id)];
}

/// BOS before and EOS behind a text, as the file says.
Result<json> postProcessor(const GgufMetadata& metadata, const Table& table, bool bosByDefault)
{
    MLA_TRY(addsBos, metadata.boolean(key("add_bos_token"), bosByDefault));
    MLA_TRY(addsEos, metadata.boolean(key("add_eos_token"), false));
    const auto sequence = [](const char* name, int type) {
        return json{{"Sequence", {{"id", name}, {"type_id", type}}}};
    };
    json single = json::array({sequence("A", 0)});
    json pair = json::array({sequence("A", 0), sequence("B", 1)});
    json specials = json::object();
    const auto add = [&](const std::string& name, bool inFront) -> Status {
        MLA_TRY(token, tokenOfKey(metadata, table, name));
        MLA_TRY(id, metadata.integer(key(name)));
        const json piece = {{"SpecialToken", {{"id", token}, {"type_id", 0}}}};
        for (json* pieces : {&single, &pair})
            pieces->insert(inFront ? pieces->begin() : pieces->end(), piece);
        specials[token] = {
            {"id", token}, {"ids", json::array({id})}, {"tokens", json::array({token})}};
        return {};
    };
    if (addsBos)
        MLA_CHECK(add("bos_token_id", true));
    if (addsEos)
        MLA_CHECK(add("eos_token_id", false));
    return json{{"type", "TemplateProcessing"},
                {"single", single},
                {"pair", pair},
                {"special_tokens", specials}};
}

json modelOptions()
{
    return {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", false}};
}

Status readMerges(const GgufMetadata& metadata, TokenizerFile& file)
{
    MLA_TRY(lines, metadata.texts(key("merges")));
    file.merges.reserve(lines.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const std::size_t space = lines[i].find(' ', 1);
        if (lines[i].empty() || space == std::string::npos)
            return badInput(place("merges", i) + ": '" + lines[i] +
                            "' must be two parts and one space");
        file.merges.emplace_back(lines[i].substr(0, space), lines[i].substr(space + 1));
    }
    file.hasMerges = true;
    return {};
}

Status describeByteLevel(const GgufMetadata& metadata, const Table& table, TokenizerFile& file)
{
    auto name = metadata.text(key("pre"));
    if (!name)
        return Error{ErrorCode::BadInput, name.error().message, name.error().context,
                     "it names the pre-tokenizer, which cannot be guessed: convert the model anew, "
                     "or put its tokenizer.json beside it"};
    const auto pre = ggufPreTokenizer(*name);
    if (!pre)
        return badInput("key '" + key("pre") + "': pre-tokenizer '" + *name + "' is not supported",
                        {}, "known are " + knownGgufPreTokenizers());
    MLA_CHECK(readMerges(metadata, file));
    MLA_TRY(post, postProcessor(metadata, table, pre->addsBos));
    json& document = file.document;
    document["normalizer"] = pre->normalizer;
    document["pre_tokenizer"] = pre->preTokenizer;
    document["post_processor"] = std::move(post);
    document["decoder"] = {{"type", "ByteLevel"},
                           {"add_prefix_space", true},
                           {"trim_offsets", true},
                           {"use_regex", true}};
    document["model"] = modelOptions();
    document["model"]["ignore_merges"] = pre->ignoreMerges;
    return {};
}

struct Merge {
    std::string left, right;
    double score = 0;                            ///< of what the two make together
    std::size_t leftLength = 0, rightLength = 0; ///< in characters
    int leftId = 0, rightId = 0;
};

/// All ways to make the piece out of two, by the ids of the two.
std::vector<Merge> splitsOf(const std::string& piece, double score,
                            const std::unordered_map<std::string_view, int>& ids)
{
    std::vector<Merge> merges;
    std::size_t length = 0;
    for (std::size_t at = 0; at < piece.size(); ++length)
        nextCodePoint(piece, at);
    std::size_t leftLength = 0;
    for (std::size_t at = 0; at < piece.size();) {
        nextCodePoint(piece, at);
        ++leftLength;
        const auto left = ids.find(std::string_view(piece).substr(0, at));
        const auto right = ids.find(std::string_view(piece).substr(at));
        if (at < piece.size() && left != ids.end() && right != ids.end())
            merges.push_back({piece.substr(0, at), piece.substr(at), score, leftLength,
                              length - leftLength, left->second, right->second});
    }
    std::sort(merges.begin(), merges.end(), [](const Merge& a, const Merge& b) {
        return std::pair(a.leftId, a.rightId) < std::pair(b.leftId, b.rightId);
    });
    return merges;
}

/// Merges from scores, in the order that Transformers gives them: best score first, of equal ones
/// the longer left part, then the longer right part. Tokens that are found in the text before any
/// merging need none.
Status deriveMerges(const GgufMetadata& metadata, const Table& table, TokenizerFile& file)
{
    MLA_TRY(scores, metadata.numbers(key("scores")));
    if (scores.size() != table.tokens.size())
        return badInput("key '" + key("scores") + "' has " + std::to_string(scores.size()) +
                        " entries for " + std::to_string(table.tokens.size()) + " tokens");
    std::unordered_map<std::string_view, int> ids;
    for (const auto& [token, id] : file.vocab)
        ids.emplace(token, id);
    std::vector<Merge> merges;
    for (std::size_t id = 0; id < scores.size(); ++id) {
        if (table.kinds[id] != Normal)
            continue;
        if (table.tokens[id].size() > kLongestPiece)
            return badInput(place("tokens", id) + ": a piece of " +
                            std::to_string(table.tokens[id].size()) + " bytes is longer than " +
                            std::to_string(kLongestPiece));
        auto found = splitsOf(table.tokens[id], scores[id], ids);
        std::move(found.begin(), found.end(), std::back_inserter(merges));
    }
    std::stable_sort(merges.begin(), merges.end(), [](const Merge& a, const Merge& b) {
        return std::tuple(a.score, a.leftLength, a.rightLength) >
               std::tuple(b.score, b.leftLength, b.rightLength);
    });
    for (Merge& merge : merges)
        file.merges.emplace_back(std::move(merge.left), std::move(merge.right));
    file.hasMerges = true;
    return {};
}

/// SentencePiece would cut an unused piece into smaller ones again; merges cannot say that.
Status refuseWhatScoresCannotSay(const GgufMetadata& metadata, const Table& table)
{
    MLA_TRY(collapses, metadata.boolean(key("remove_extra_whitespaces"), false));
    if (collapses)
        return badInput("key '" + key("remove_extra_whitespaces") + "': true is not supported");
    if (metadata.has(key("precompiled_charsmap")))
        return badInput("key '" + key("precompiled_charsmap") + "' is not supported");
    for (std::size_t id = 0; id < table.tokens.size(); ++id)
        if (table.isUnused(id) && !table.tokens[id].starts_with("[PAD") &&
            !table.tokens[id].starts_with("<pad"))
            return badInput(place("token_type", id) + ": the unused piece '" + table.tokens[id] +
                            "' is not supported");
    return {};
}

Status describeScored(const GgufMetadata& metadata, const Table& table, TokenizerFile& file)
{
    MLA_CHECK(refuseWhatScoresCannotSay(metadata, table));
    MLA_CHECK(deriveMerges(metadata, table, file));
    MLA_TRY(post, postProcessor(metadata, table, true));
    MLA_TRY(prefix, metadata.boolean(key("add_space_prefix"), true));
    MLA_TRY(unknown, tokenOfKey(metadata, table, "unknown_token_id"));
    const auto replace = [](const char* from, const char* to) {
        return json{{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
    };
    json normalizers = json::array();
    json decoders = json::array(
        {replace(kSpaceMark, " "), json{{"type", "ByteFallback"}}, json{{"type", "Fuse"}}});
    if (prefix) {
        normalizers.push_back({{"type", "Prepend"}, {"prepend", kSpaceMark}});
        decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    }
    normalizers.push_back(replace(" ", kSpaceMark));
    json& document = file.document;
    document["normalizer"] = {{"type", "Sequence"}, {"normalizers", std::move(normalizers)}};
    document["pre_tokenizer"] = nullptr;
    document["post_processor"] = std::move(post);
    document["decoder"] = {{"type", "Sequence"}, {"decoders", std::move(decoders)}};
    document["model"] = modelOptions();
    document["model"].update({{"unk_token", unknown}, {"fuse_unk", true}, {"byte_fallback", true}});
    return {};
}

} // namespace

Result<TokenizerFile> tokenizerOfGguf(const GgufMetadata& metadata)
{
    MLA_TRY(model, metadata.text(key("model")));
    if (model != "gpt2" && model != "llama")
        return badInput("key '" + key("model") + "': tokenizer '" + model + "' is not supported",
                        {}, "known are gpt2 and llama");
    MLA_TRY(table, readTable(metadata));
    TokenizerFile file;
    file.document = {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}};
    file.document["added_tokens"] = addedTokens(table);
    MLA_CHECK(fillVocabulary(table, file));
    if (model == "gpt2")
        MLA_CHECK(describeByteLevel(metadata, table, file));
    else
        MLA_CHECK(describeScored(metadata, table, file));
    return file;
}

} // namespace tok

Status writeTokenizerJson(const GgufFile& gguf, const std::filesystem::path& path)
{
    auto file = tok::tokenizerOfGguf(gguf.metadata());
    if (!file)
        return std::move(file).error().within(gguf.path().string());
    nlohmann::json vocabulary = nlohmann::json::object();
    for (const auto& [token, id] : file->vocab)
        vocabulary[token] = id;
    nlohmann::json merges = nlohmann::json::array();
    for (const auto& [left, right] : file->merges)
        merges.push_back({left, right});
    file->document["model"]["vocab"] = std::move(vocabulary);
    file->document["model"]["merges"] = std::move(merges);
    return writeFileAtomically(path, file->document.dump(1, ' ') + "\n");
}

} // namespace mla
