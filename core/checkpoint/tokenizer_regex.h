// SPDX-License-Identifier: GPL-3.0-or-later
// Regular expressions of tokenizer files. They are written for Oniguruma (Ruby syntax, Unicode 16);
// a pattern is translated to PCRE2 so that it matches exactly the same text, and a construct for
// which that is not certain is refused by name.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace mla::tok
{

/// The PCRE2 pattern (options UTF, UCP, MULTILINE; newline = LF) equal to an Oniguruma one.
Result<std::string> translateRegex(std::string_view pattern);

struct Match {
    std::size_t begin, end; ///< bytes
};

class Regex
{
public:
    static Result<Regex> compile(const std::string& pattern);
    /// All matches from left to right; an empty match right behind the previous one is skipped.
    /// `text` is valid UTF-8. Safe to call from several threads.
    void findAll(std::string_view text, std::vector<Match>& matches) const;

private:
    struct Code;
    std::shared_ptr<const Code> m_code;
};

/// What a Split or Replace looks for: a literal string or a regex.
class Pattern
{
public:
    static Pattern literal(std::string text); ///< `text` is not empty
    static Pattern regex(Regex regex);
    void findAll(std::string_view text, std::vector<Match>& matches) const;

private:
    std::string m_literal;
    std::shared_ptr<const Regex> m_regex;
};

} // namespace mla::tok
