// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/command.h"
#include "app/cli/options.h"
#include "core/backends/chat_template.h"
#include "core/checkpoint/tokenizer.h"
#include "core/pipeline/pipeline.h"

namespace mla::cli
{
namespace
{

/// Ids are a result even where no tokenizer can say their text.
Output describe(const std::vector<int>& ids, const Result<std::string>& text)
{
    if (text)
        return {{{"ids", ids}, {"text", *text}}, *text + "\n", {}};
    std::string line;
    for (const int id : ids)
        line += (line.empty() ? "" : ",") + std::to_string(id);
    return {{{"ids", ids}, {"text", nullptr}}, line + "\n", {"no text: " + text.error().text()}};
}

class Generate : public Command
{
public:
    std::string name() const override { return "generate"; }
    std::string summary() const override { return "continue a prompt, greedily or by sampling"; }
    std::string examples() const override
    {
        return "Example: mla-draft generate models/SmolLM2-135M --prompt \"Once upon a time\" -n "
               "32";
    }
    void declare(CLI::App& parser) override
    {
        addModelArgument(parser, m_model, "CKPT", "model directory: original or draft");
        m_promptOption =
            parser.add_option("--prompt", m_prompt, "text to continue")->type_name("TEXT");
        m_idsOption =
            parser.add_option("--ids", m_ids, "token ids to continue: 1,2,3")->type_name("IDS");
        parser
            .add_option("-n,--new-tokens", m_request.newTokens,
                        "at most this many new tokens; an end-of-text token ends earlier")
            ->type_name("N")
            ->check(atLeast(1))
            ->capture_default_str();
        parser
            .add_option("--min-new-tokens", m_request.minNewTokens,
                        "no end-of-text token before this many")
            ->type_name("N")
            ->check(atLeast(0))
            ->capture_default_str();
        parser.add_option("--temperature", m_request.temperature, "0 = greedy, else sampling")
            ->type_name("T")
            ->check(notNegative())
            ->capture_default_str();
        parser
            .add_flag("--no-special", m_noSpecial,
                      "encode the prompt without the special tokens that the tokenizer adds")
            ->needs(m_promptOption)
            ->excludes(
                addChatOptions(parser, m_chat, common.compute.python)->needs(m_promptOption));
    }
    Result<Output> run(JobContext& job) override
    {
        if (m_promptOption->count() + m_idsOption->count() != 1)
            return usageError("give exactly one of --prompt and --ids");
        if (m_request.minNewTokens > m_request.newTokens)
            return usageError("--min-new-tokens is above -n");
        MLA_TRY(ids, parseIds(m_ids, "--ids"));
        const Result<Tokenizer> tokenizer = Tokenizer::open(m_model);
        const bool prompted = m_promptOption->count() > 0;
        if (prompted && !tokenizer)
            return tokenizer.error();
        m_request.model = m_model;
        m_request.compute = common.compute;
        if (prompted) {
            MLA_TRY(encoded, encodePrompt(job, *tokenizer));
            ids = std::move(encoded);
        }
        m_request.ids = std::move(ids);
        if (m_request.ids.empty())
            return usageError("there is no token to continue: the prompt is empty");
        MLA_TRY(fresh, generateTokens(job, m_request));
        return describe(fresh, tokenizer ? tokenizer->decode(fresh)
                                         : Result<std::string>(tokenizer.error()));
    }

private:
    Result<std::vector<int>> encodePrompt(JobContext& job, const Tokenizer& tokenizer) const
    {
        if (!m_chat)
            return tokenizer.encode(m_prompt, !m_noSpecial);
        MLA_TRY(rendered, renderChat(job, m_model, {m_prompt}, common.compute.python));
        return std::move(rendered.ids.front());
    }

    std::string m_model, m_prompt, m_ids;
    GenerateRequest m_request;
    bool m_noSpecial = false, m_chat = false;
    CLI::Option *m_promptOption = nullptr, *m_idsOption = nullptr;
};

} // namespace

std::unique_ptr<Command> makeGenerate()
{
    return std::make_unique<Generate>();
}

} // namespace mla::cli
