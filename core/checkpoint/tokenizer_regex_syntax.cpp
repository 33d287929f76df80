// SPDX-License-Identifier: GPL-3.0-or-later
// Oniguruma → PCRE2, construct by construct. Differences that matter: classes (see
// tokenizer_regex_classes.h), \v and \h, inline options, intervals, and case folding of several
// characters at once.
#include <array>
#include <optional>

#include "core/checkpoint/tokenizer_regex.h"
#include "core/checkpoint/tokenizer_regex_classes.h"
#include "core/checkpoint/tokenizer_unicode.h"

namespace mla::tok
{
namespace
{

class Translator
{
public:
    explicit Translator(std::string_view pattern) : m_in(pattern) {}

    Result<std::string> run()
    {
        while (m_at < m_in.size())
            MLA_CHECK(step());
        if (m_groups.size() != 1)
            return refuse("an unclosed group");
        return std::move(m_out);
    }

private:
    struct Group {
        bool caseless = false;
        bool look = false;      ///< lookahead or lookbehind
        bool unbounded = false; ///< a part of it repeats without limit
    };
    enum class Last { Nothing, Atom, Group, Look };

    [[nodiscard]] Error refuse(const std::string& what) const
    {
        return badInput("regular expression '" + std::string(m_in) + "': " + what +
                        " is not supported");
    }
    [[nodiscard]] bool startsWith(std::string_view text) const
    {
        return m_in.substr(m_at).starts_with(text);
    }
    [[nodiscard]] bool caseless() const { return m_groups.back().caseless; }
    void atom(std::string_view text)
    {
        m_out += text;
        m_last = Last::Atom;
    }

    Status step()
    {
        const char c = m_in[m_at];
        if (c != '(' && c != ')' && static_cast<unsigned char>(c) < 0x80 && !isFoldable(c))
            m_run.clear();
        switch (c) {
        case '\\':
            return escape();
        case '[':
            return bracket();
        case '(':
            return open();
        case ')':
            return close();
        case '|':
            return plain("|", Last::Nothing);
        case '.':
            return plain(".", Last::Atom);
        case '^':
        case '$':
            return plain(std::string_view(&m_in[m_at], 1), Last::Nothing);
        case '*':
        case '+':
        case '?':
        case '{':
            return quantifier();
        case ']':
        case '}':
            return refuse(std::string("a bare '") + c + "'");
        default:
            return literal(nextCodePoint(m_in, m_at));
        }
    }
    Status plain(std::string_view text, Last last)
    {
        m_out += text;
        m_last = last;
        ++m_at;
        return {};
    }
    static bool isFoldable(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

    /// Under (?i) Oniguruma also folds "ss" to "ß", "fi" to "ﬁ" and so on; PCRE2 does not.
    Status literal(char32_t code)
    {
        if (caseless()) {
            if (code >= 0x80)
                return refuse("a character beyond ASCII under (?i)");
            m_run += static_cast<char>(code | (isFoldable(static_cast<char>(code)) ? 0x20U : 0U));
            for (const std::string_view pair : {"ss", "ff", "fi", "fl", "st"})
                if (m_run.ends_with(pair))
                    return refuse(std::string(pair) + " under (?i)");
        }
        atom(escapedCodePoint(code));
        return {};
    }

    /// The code point of an escape that stands for one character, or nothing.
    std::optional<char32_t> escapedCharacter()
    {
        const char c = m_in[m_at];
        constexpr std::string_view names = "tnrfvae", values = "\t\n\r\f\v\a\x1B";
        if (const std::size_t i = names.find(c); i != std::string_view::npos) {
            ++m_at;
            return static_cast<unsigned char>(values[i]);
        }
        if (c == 'u')
            return hexCodePoint(m_in, m_at, {1, 4, 4, false});
        if (c == 'x' && m_in.substr(m_at + 1).starts_with('{'))
            return hexCodePoint(m_in, m_at, {2, 1, 6, true});
        if (c == 'x') {
            const auto code = hexCodePoint(m_in, m_at, {1, 1, 2, false});
            return code && *code < 0x80 ? code : std::nullopt; // beyond that it means a raw byte
        }
        if (isFoldable(c) || (c >= '0' && c <= '9'))
            return std::nullopt;
        return nextCodePoint(m_in, m_at);
    }
    struct ClassEscape {
        std::string items;
        bool negated;
    };
    /// \s \d \w \p{…} and their negations; m_at stands on the letter.
    Result<std::optional<ClassEscape>> classEscape()
    {
        const char c = m_in[m_at];
        const bool upper = c >= 'A' && c <= 'Z';
        switch (c) {
        case 's':
        case 'S':
            ++m_at;
            return std::optional(ClassEscape{spaceItems(), upper});
        case 'd':
        case 'D':
            ++m_at;
            return std::optional(ClassEscape{*propertyItems("Nd"), upper});
        case 'w':
        case 'W':
            ++m_at;
            return std::optional(ClassEscape{wordItems(), upper});
        case 'p':
        case 'P':
            return property(upper);
        default:
            return std::optional<ClassEscape>();
        }
    }
    Result<std::optional<ClassEscape>> property(bool negated)
    {
        const std::size_t end = m_in.find('}', m_at);
        if (m_at + 1 >= m_in.size() || m_in[m_at + 1] != '{' || end == std::string_view::npos)
            return refuse("\\p without {name}");
        std::string name(m_in.substr(m_at + 2, end - m_at - 2));
        if (name.starts_with('^')) {
            negated = !negated;
            name.erase(0, 1);
        }
        auto items = propertyItems(name);
        if (!items)
            return refuse("\\p{" + name + "}");
        m_at = end + 1;
        return std::optional(ClassEscape{std::move(*items), negated});
    }

    Status escape()
    {
        if (++m_at >= m_in.size())
            return refuse("a trailing backslash");
        const char c = m_in[m_at];
        if (c == 'A' || c == 'z') {
            ++m_at;
            m_out += c == 'A' ? "\\A" : "\\z";
            m_last = Last::Nothing;
            return {};
        }
        MLA_TRY(set, classEscape());
        if (set) {
            if (caseless())
                return refuse(std::string("\\") + c + " under (?i)");
            atom((set->negated ? "[^" : "[") + set->items + "]");
            return {};
        }
        const auto code = escapedCharacter();
        if (!code)
            return refuse(std::string("\\") + c);
        return literal(*code);
    }

    Status bracket()
    {
        ++m_at;
        const bool negated = startsWith("^");
        if (negated)
            ++m_at;
        if (caseless() && negated)
            return refuse("a negated class under (?i)");
        std::string items;
        if (startsWith("]"))
            return refuse("']' at the start of a class");
        while (!startsWith("]")) {
            if (m_at >= m_in.size())
                return refuse("an unclosed class");
            MLA_TRY(item, classItem());
            items += item;
        }
        ++m_at;
        atom((negated ? "[^" : "[") + items + "]");
        return {};
    }
    /// One character, range or class escape inside brackets.
    Result<std::string> classItem()
    {
        if (startsWith("[") || startsWith("&&"))
            return refuse(startsWith("[") ? "a class inside a class" : "'&&' in a class");
        if (startsWith("\\")) {
            if (++m_at >= m_in.size())
                return refuse("a trailing backslash");
            const std::string letter(m_in.substr(m_at, 1));
            MLA_TRY(set, classEscape());
            if (set) {
                // \S of PCRE2 lacks only U+180E; other complements cannot be named as items.
                if (caseless() || (set->negated && letter != "S"))
                    return refuse("\\" + letter + (caseless() ? " under (?i)" : " in a class"));
                if (startsWith("-") && m_in.substr(m_at + 1, 1) != "]")
                    return refuse("'-' behind \\" + letter + " in a class");
                return set->negated ? std::string("\\S\\x{180E}") : std::move(set->items);
            }
            --m_at;
        }
        MLA_TRY(first, classCharacter());
        if (!startsWith("-") || m_in.substr(m_at + 1, 1) == "]")
            return escapedCodePoint(first);
        ++m_at;
        if (startsWith("[") || m_at >= m_in.size())
            return refuse("this use of '-' in a class");
        MLA_TRY(last, classCharacter());
        if (last < first)
            return refuse("a reversed range in a class");
        return escapedCodePoint(first) + "-" + escapedCodePoint(last);
    }
    Result<char32_t> classCharacter()
    {
        char32_t code = 0;
        if (startsWith("\\")) {
            if (++m_at >= m_in.size())
                return refuse("a trailing backslash");
            const std::string letter(m_in.substr(m_at, 1));
            const auto escaped = escapedCharacter();
            if (!escaped)
                return refuse("\\" + letter + " in a class");
            code = *escaped;
        } else {
            code = nextCodePoint(m_in, m_at);
        }
        if (caseless() && code >= 0x80)
            return refuse("a character beyond ASCII under (?i)");
        return code;
    }

    Status open()
    {
        struct Opening {
            std::string_view text, out;
            bool look;
        };
        constexpr std::array<Opening, 6> plainOpenings{{{"(?:", "(?:", false},
                                                        {"(?=", "(?=", true},
                                                        {"(?!", "(?!", true},
                                                        {"(?<=", "(?<=", true},
                                                        {"(?<!", "(?<!", true},
                                                        {"(?>", "(?>", false}}};
        const bool outerCaseless = caseless();
        for (const Opening& opening : plainOpenings)
            if (startsWith(opening.text))
                return push(opening.text.size(), opening.out, {outerCaseless, opening.look, false});
        if (startsWith("(?i:") || startsWith("(?-i:")) {
            const bool on = startsWith("(?i:");
            return push(on ? 4 : 5, on ? "(?i:" : "(?-i:", {on, false, false});
        }
        if (startsWith("(?i)") && m_at == 0) { // elsewhere Ruby ends it differently
            m_at += 4;
            m_groups.back().caseless = true;
            m_out += "(?i)";
            return {};
        }
        if (startsWith("(?") || startsWith("(*"))
            return refuse("the group " + std::string(m_in.substr(m_at, 3)));
        return push(1, "(?:", {outerCaseless, false, false}); // nothing can refer to a capture
    }
    Status push(std::size_t length, std::string_view out, Group group)
    {
        if (m_groups.size() > 100)
            return refuse("nesting deeper than 100 groups");
        m_at += length;
        m_out += out;
        m_groups.push_back(group);
        m_last = Last::Nothing;
        m_run.clear();
        return {};
    }
    Status close()
    {
        if (m_groups.size() == 1)
            return refuse("a ')' without '('");
        m_closed = m_groups.back();
        m_groups.pop_back();
        m_groups.back().unbounded |= m_closed.unbounded;
        m_run.clear();
        return plain(")", m_closed.look ? Last::Look : Last::Group);
    }

    Status quantifier()
    {
        if (m_last == Last::Nothing || m_last == Last::Look)
            return refuse("a repeat of nothing");
        std::string out(1, m_in[m_at]);
        bool unbounded = out == "*" || out == "+";
        const bool interval = out == "{";
        if (interval)
            MLA_CHECK(readInterval(out, unbounded));
        else
            ++m_at;
        if (startsWith("?") || startsWith("+")) {
            // Behind an interval '+' repeats again in Ruby, and {n}? is not lazy but optional.
            if (interval && (startsWith("+") || out.find(',') == std::string::npos))
                return refuse("'" + out + std::string(m_in.substr(m_at, 1)) + "'");
            out += m_in[m_at++];
        }
        if (m_last == Last::Group && unbounded && m_closed.unbounded)
            return refuse("an unlimited repeat inside another");
        m_groups.back().unbounded |= unbounded;
        m_out += out;
        m_last = Last::Nothing;
        return {};
    }
    Status readInterval(std::string& out, bool& unbounded)
    {
        const std::size_t end = m_in.find('}', m_at);
        const std::string body(m_in.substr(
            m_at + 1, end == std::string_view::npos ? std::string_view::npos : end - m_at - 1));
        const std::size_t comma = body.find(',');
        const std::string low = body.substr(0, comma);
        const std::string high = comma == std::string::npos ? "" : body.substr(comma + 1);
        const bool digits = (low + high).find_first_not_of("0123456789") == std::string::npos;
        if (end == std::string_view::npos || !digits || (low + high).empty() || low.size() > 4 ||
            high.size() > 4)
            return refuse("the interval '{" + body.substr(0, 20) + "'");
        if (!low.empty() && !high.empty() && std::stoi(low) > std::stoi(high))
            return refuse("the interval '{" + body + "}'");
        out =
            "{" + (low.empty() ? "0" : low) + (comma == std::string::npos ? "" : "," + high) + "}";
        unbounded = comma != std::string::npos && high.empty();
        m_at = end + 1;
        return {};
    }

    std::string_view m_in;
    std::size_t m_at = 0;
    std::string m_out;
    std::string m_run; ///< literal letters just passed under (?i), lower case
    std::vector<Group> m_groups{Group{}};
    Group m_closed;
    Last m_last = Last::Nothing;
};

} // namespace

Result<std::string> translateRegex(std::string_view pattern)
{
    if (!isValidUtf8(pattern))
        return badInput("a regular expression is not valid UTF-8");
    return Translator(pattern).run();
}

} // namespace mla::tok
