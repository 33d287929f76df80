// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/tokenizer_regex.h"

#include <new>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/checkpoint/tokenizer_unicode.h"

namespace mla::tok
{
namespace
{

struct Free {
    void operator()(pcre2_code* p) const { pcre2_code_free(p); }
    void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
    void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
    void operator()(pcre2_compile_context* p) const { pcre2_compile_context_free(p); }
    void operator()(pcre2_jit_stack* p) const { pcre2_jit_stack_free(p); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

/// What matching writes to; one per thread, so that a Regex itself is immutable.
struct Workspace {
    Owned<pcre2_match_data> data{pcre2_match_data_create(1, nullptr)};
    Owned<pcre2_match_context> context{pcre2_match_context_create(nullptr)};
    Owned<pcre2_jit_stack> stack;

    Workspace()
    {
        constexpr std::size_t initial = 64 << 10, most = 512 << 20; // grows on demand
        stack.reset(pcre2_jit_stack_create(initial, most, nullptr));
        if (!data || !context || !stack)
            throw std::bad_alloc();
        // Translated patterns have no nested unbounded repeats: long searches, no endless ones.
        pcre2_set_match_limit(context.get(), UINT32_MAX);
        pcre2_set_heap_limit(context.get(), UINT32_MAX);
        pcre2_set_depth_limit(context.get(), UINT32_MAX);
        pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
    }
};

Workspace& workspace()
{
    thread_local Workspace space;
    return space;
}

} // namespace

struct Regex::Code {
    Owned<pcre2_code> code;
};

Result<Regex> Regex::compile(const std::string& pattern)
{
    MLA_TRY(translated, translateRegex(pattern));
    const Owned<pcre2_compile_context> context(pcre2_compile_context_create(nullptr));
    if (!context)
        return computeFailed("out of memory");
    pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
    int error = 0;
    std::size_t offset = 0;
    auto code = std::make_shared<Code>();
    code->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()),
                                   translated.size(),
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NO_UTF_CHECK,
                                   &error, &offset, context.get()));
    if (!code->code) {
        PCRE2_UCHAR message[128];
        pcre2_get_error_message(error, message, sizeof message);
        return badInput("regular expression '" + pattern +
                        "' is not supported: " + reinterpret_cast<const char*>(message));
    }
    pcre2_jit_compile(code->code.get(), PCRE2_JIT_COMPLETE); // without JIT it only runs slower
    Regex regex;
    regex.m_code = std::move(code);
    return regex;
}

void Regex::findAll(std::string_view text, std::vector<Match>& matches) const
{
    matches.clear();
    Workspace& space = workspace();
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    std::size_t from = 0;
    while (from <= text.size()) {
        int found = pcre2_match(m_code->code.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK,
                                space.data.get(), space.context.get());
        if (found == PCRE2_ERROR_JIT_STACKLIMIT)
            found = pcre2_match(m_code->code.get(), subject, text.size(), from,
                                PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, space.data.get(),
                                space.context.get());
        if (found == PCRE2_ERROR_NOMATCH)
            return;
        if (found < 0)
            throw std::bad_alloc(); // the only failure left: no memory to search with
        const std::size_t* bounds = pcre2_get_ovector_pointer(space.data.get());
        const Match match{bounds[0], bounds[1]};
        if (match.begin == match.end && !matches.empty() && matches.back().end == match.end) {
            if (from >= text.size())
                return;
            nextCodePoint(text, from);
            continue;
        }
        matches.push_back(match);
        from = match.end;
    }
}

Pattern Pattern::literal(std::string text)
{
    Pattern pattern;
    pattern.m_literal = std::move(text);
    return pattern;
}

Pattern Pattern::regex(Regex regex)
{
    Pattern pattern;
    pattern.m_regex = std::make_shared<const Regex>(std::move(regex));
    return pattern;
}

void Pattern::findAll(std::string_view text, std::vector<Match>& matches) const
{
    if (m_regex) {
        m_regex->findAll(text, matches);
        return;
    }
    matches.clear();
    for (std::size_t at = text.find(m_literal); at != std::string_view::npos;
         at = text.find(m_literal, at + m_literal.size()))
        matches.push_back({at, at + m_literal.size()});
}

} // namespace mla::tok
