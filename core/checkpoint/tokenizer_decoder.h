// SPDX-License-Identifier: GPL-3.0-or-later
// The "decoder" of a tokenizer.json: from token strings back to text.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/base/result.h"
#include "core/checkpoint/tokenizer_json.h"
#include "core/checkpoint/tokenizer_normalizer.h"

namespace mla::tok
{

class Decoder
{
public:
    /// A null node is the decoder that joins the tokens with spaces.
    static Result<Decoder> create(const JsonNode& node);
    [[nodiscard]] std::string decode(std::vector<std::string> tokens) const;

private:
    struct ByteLevel {
    };
    struct ByteFallback {
    };
    struct Fuse {
    };
    struct Strip {
        char32_t content;
        int start, stop; ///< at most so many characters go at each end
    };
    struct Metaspace {
        char32_t replacement;
        bool dropFirst; ///< the mark of the first token stands for no space
    };
    using Step = std::variant<ByteLevel, ByteFallback, Fuse, Strip, Metaspace, Replacement>;

    Status add(const JsonNode& node);
    Status addMetaspace(const JsonNode& node);
    static void applyStep(const ByteLevel& step, std::vector<std::string>& tokens);
    static void applyStep(const ByteFallback& step, std::vector<std::string>& tokens);
    static void applyStep(const Fuse& step, std::vector<std::string>& tokens);
    static void applyStep(const Strip& step, std::vector<std::string>& tokens);
    static void applyStep(const Metaspace& step, std::vector<std::string>& tokens);
    static void applyStep(const Replacement& step, std::vector<std::string>& tokens);

    std::vector<Step> m_steps;
    bool m_joinsWithSpaces = false;
};

} // namespace mla::tok
