// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/command.h"
#include "app/cli/options.h"
#include "app/cli/text.h"
#include "core/pipeline/pipeline.h"

namespace mla::cli
{
namespace
{

class Perplexity : public Command
{
public:
    std::string name() const override { return "perplexity"; }
    std::string summary() const override { return "perplexity of a text, for any model directory"; }
    std::string examples() const override
    {
        return "The text is encoded once and cut into disjoint windows; every window is scored "
               "from its\n"
               "second token.\n"
               "Example: mla-draft perplexity drafts/my-draft --text held-out.txt";
    }
    void declare(CLI::App& parser) override
    {
        addModelArgument(parser, m_model, "CKPT", "model directory: original or draft");
        parser.add_option("--text", m_text, "text file to score")->type_name("FILE")->required();
        parser.add_option("--length", m_length, "tokens per window")
            ->type_name("L")
            ->check(atLeast(2))
            ->capture_default_str();
        parser.add_flag("--no-special", m_noSpecial,
                        "encode without the special tokens that the tokenizer adds");
    }
    Result<Output> run(JobContext& job) override
    {
        MLA_TRY(result,
                measurePerplexity(job, m_model, m_text, m_length, !m_noSpecial, common.compute));
        return Output{{{"perplexity", result.perplexity}, {"tokens", result.tokens}},
                      "perplexity " + number(result.perplexity, 3) + " over " +
                          count(result.tokens) + " scored tokens\n",
                      {}};
    }

private:
    static constexpr int defaultLength = 512;
    std::string m_model, m_text;
    int m_length = defaultLength;
    bool m_noSpecial = false;
};

} // namespace

std::unique_ptr<Command> makePerplexity()
{
    return std::make_unique<Perplexity>();
}

} // namespace mla::cli
