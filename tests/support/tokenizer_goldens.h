// SPDX-License-Identifier: GPL-3.0-or-later
// Comparing a tokenizer with the files that make_tokenizer_goldens.py writes.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/checkpoint/tokenizer.h"

namespace mla::test
{

inline std::string goldenPath(const std::string& name)
{
    return std::string(MLA_TEST_DATA "/golden/tokenizer/") + name;
}

inline nlohmann::json readJson(const std::string& path)
{
    std::ifstream file(path);
    return nlohmann::json::parse(file);
}

/// The bytes of a corpus entry: {"text": …}, {"hex": …} or {"repeat": [text, times]}.
inline std::string bytesOf(const nlohmann::json& entry)
{
    if (entry.contains("text"))
        return entry["text"].get<std::string>();
    std::string bytes;
    if (entry.contains("repeat")) {
        for (int i = 0; i < entry["repeat"][1].get<int>(); ++i)
            bytes += entry["repeat"][0].get<std::string>();
        return bytes;
    }
    const auto hex = entry["hex"].get<std::string>();
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
        bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    return bytes;
}

inline std::string describe(const nlohmann::json& entry, const std::string& what,
                            const nlohmann::json& ours, const nlohmann::json& expected)
{
    constexpr auto replace = nlohmann::json::error_handler_t::replace;
    std::ostringstream text;
    text << what << " of " << entry.dump(-1, ' ', true).substr(0, 200) << "\n  ours     "
         << ours.dump(-1, ' ', true, replace).substr(0, 300) << "\n  expected "
         << expected.dump(-1, ' ', true).substr(0, 300);
    return text.str();
}

/// The first difference, or nothing: ids with and without special tokens, text decoded from them.
inline std::string compareWithGolden(const Tokenizer& tokenizer, const nlohmann::json& cases,
                                     const nlohmann::json& answers)
{
    if (cases.size() != answers.size())
        return "the golden file has " + std::to_string(answers.size()) + " answers to " +
               std::to_string(cases.size()) + " texts";
    for (std::size_t i = 0; i < cases.size(); ++i) {
        const nlohmann::json& answer = answers[i];
        const std::string text = bytesOf(cases[i]);
        const std::vector<int> ids = tokenizer.encode(text);
        if (ids != answer["ids"].get<std::vector<int>>())
            return describe(cases[i], "ids", ids, answer["ids"]);
        const auto& plain = answer.contains("plain") ? answer["plain"] : answer["ids"];
        if (const auto ours = tokenizer.encode(text, false); ours != plain.get<std::vector<int>>())
            return describe(cases[i], "ids without special tokens", ours, plain);
        for (const bool skip : {false, true}) {
            const auto& expected =
                skip && answer.contains("skipped") ? answer["skipped"] : answer["decoded"];
            const auto decoded = tokenizer.decode(ids, skip);
            if (!decoded)
                return decoded.error().text();
            if (*decoded != expected.get<std::string>())
                return describe(cases[i], "decoded text", *decoded, expected);
        }
    }
    return {};
}

} // namespace mla::test
