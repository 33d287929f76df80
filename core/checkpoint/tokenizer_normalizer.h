// SPDX-License-Identifier: GPL-3.0-or-later
// The "normalizer" of a tokenizer.json.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/result.h"
#include "core/checkpoint/tokenizer_json.h"
#include "core/checkpoint/tokenizer_regex.h"
#include "core/checkpoint/tokenizer_unicode.h"

namespace mla::tok
{

/// {"String": …} or {"Regex": …} under "pattern" of a Split or Replace.
Result<Pattern> readPattern(const JsonNode& owner);

/// Replaces every match, as normalizer and as decoder.
struct Replacement {
    Pattern pattern;
    std::string content;

    static Result<Replacement> create(const JsonNode& node);
    [[nodiscard]] std::string apply(std::string_view text) const;
};

class Normalizer
{
public:
    /// A null node is the normalizer that changes nothing.
    static Result<Normalizer> create(const JsonNode& node);
    [[nodiscard]] bool isIdentity() const { return m_steps.empty(); }
    /// It may drop or replace the first characters, so that what was at the start no longer is.
    [[nodiscard]] bool mayCutStart() const;
    [[nodiscard]] std::string apply(std::string_view text) const;

private:
    struct Prepend {
        std::string text;
    };
    struct Lowercase {
    };
    struct ByteLevel {
    };
    struct Strip {
        bool left, right;
    };
    using Step = std::variant<NormalForm, Prepend, Replacement, Lowercase, Strip, ByteLevel>;

    Status add(const JsonNode& node);
    static std::string applyStep(const Step& step, const std::string& text);
    std::vector<Step> m_steps;
};

} // namespace mla::tok
