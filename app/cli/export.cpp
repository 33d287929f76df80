// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <array>
#include <cmath>

#include "app/cli/command.h"
#include "app/cli/json_report.h"
#include "app/cli/options.h"
#include "app/cli/text.h"
#include "core/pipeline/pipeline.h"

namespace mla::cli
{
namespace
{

nlohmann::json acceptanceJson(const std::optional<LayoutLoss::Acceptance>& acceptance)
{
    if (!acceptance)
        return nullptr;
    return {{"draft_acceptance_rate", acceptance->draft},
            {"exported_acceptance_rate", acceptance->exported},
            {"prompts", acceptance->prompts},
            {"tokens", acceptance->tokens},
            {"k", acceptance->draftLength}};
}

nlohmann::json layoutLossJson(const std::optional<LayoutLoss>& loss)
{
    if (!loss)
        return nullptr;
    return {{"kl", loss->kl},
            {"argmax_agreement", loss->agreement},
            {"draft_perplexity", loss->draftPerplexity},
            {"exported_perplexity", loss->exportedPerplexity},
            {"acceptance", acceptanceJson(loss->acceptance)},
            {"exact", loss->exact}};
}

class Export : public Command
{
public:
    std::string name() const override { return "export"; }
    std::string summary() const override
    {
        return "write a draft for the programs that serve it, optionally in another number format";
    }
    std::string examples() const override
    {
        return "Example: mla-draft export drafts/t-functional -o out --layout huggingface --dtype "
               "bf16 --verify\n"
               "Load it with AutoModelForCausalLM.from_pretrained(\"out\", "
               "trust_remote_code=True).";
    }
    void declare(CLI::App& parser) override
    {
        addModelArgument(parser, m_draft, "DRAFT", "draft directory");
        addOutputOptions(parser, m_output, m_request.overwrite);
        parser.get_option("--output")->required(false); // --dry-run needs none
        parser.add_option("--layout", m_request.layout, "what the directory is for: " + layouts())
            ->type_name("NAME")
            ->required();
        parser.add_option("--dtype", m_request.dtype, "fp32, fp16 or bf16")
            ->type_name("TYPE")
            ->default_str("as in the draft");
        parser
            .add_option("--max-shard-size", m_request.maxShardBytes,
                        "weights beyond it go to several files: bytes, or with KB, MB, GB")
            ->transform(CLI::AsSizeValue(true))
            ->type_name("SIZE")
            ->default_str("5GB");
        parser.add_flag("--verify", m_request.verify,
                        "run the result in this program, in Transformers and in vLLM, as far as "
                        "they are there, and compare logits and texts");
        parser.add_flag("--dry-run", m_dryRun,
                        "only say what the layout keeps and loses of the draft");
        addStudyOption(parser, m_study);
        parser
            .add_option(
                "--python", common.compute.python,
                "Python interpreter to verify with: with Transformers, and vLLM if possible")
            ->type_name("FILE")
            ->default_str("MLA_PYTHON, else what installer/setup.sh made");
    }
    Result<Output> run(JobContext& job) override
    {
        MLA_CHECK(check());
        if (m_dryRun)
            return describe();
        m_request.draft = m_draft;
        m_request.output = m_output;
        m_request.compute = common.compute;
        m_request.study = optionalPath(m_study);
        MLA_TRY(outcome, exportDraft(job, m_request));
        return report(outcome);
    }

private:
    static std::string layouts()
    {
        std::string names;
        for (const std::string& name : exportLayoutNames())
            names += (names.empty() ? "" : ", ") + name;
        return names;
    }

    /// Exit status 3 for a draft that the layout cannot hold, as without --dry-run.
    Result<Output> describe() const
    {
        MLA_TRY(described, describeExport(m_draft, m_request.layout));
        if (!described.refusal.empty())
            return badInput("the layout " + m_request.layout +
                                " cannot hold this draft: " + described.refusal,
                            m_draft);
        return Output{{{"layout", described.layout},
                       {"loads_in", described.loadsIn},
                       {"keeps", described.keeps},
                       {"loses", described.loses}},
                      "Loads in " + described.loadsIn + ".\n" + list("Keeps", described.keeps) +
                          list("Loses", described.loses),
                      {}};
    }

    static std::string list(const std::string& title, const std::vector<std::string>& entries)
    {
        std::string text;
        for (const std::string& entry : entries)
            text += title + ": " + entry + "\n";
        return text;
    }

    Output report(const ExportOutcome& outcome) const
    {
        nlohmann::json checks = nlohmann::json::array();
        std::string text = "Draft written to " + outcome.output.string() + "\n" +
                           list("Loses", outcome.record.loses);
        if (outcome.loss && outcome.loss->exact) // else among what it loses
            text += "Against the draft, " + layoutLossText(*outcome.loss) + "\n";
        for (const ExportCheckRecord& check : outcome.record.checks) {
            checks.push_back({{"stack", check.stack},
                              {"tried", check.tried()},
                              {"software", check.software},
                              {"class", check.modelClass},
                              {"compared_with", check.reference},
                              {"logit_difference", check.logitDifference},
                              {"bound", check.bound},
                              {"greedy_tokens", check.greedyTokens},
                              {"equal_tokens", check.equalTokens},
                              {"passed", check.passed},
                              {"remark", check.remark}});
            if (check.tried())
                text += check.stack + ": logits within " + number(check.logitDifference, 6) +
                        " of their spread of " + check.reference +
                        (std::isfinite(check.bound) ? ", at most " + number(check.bound, 3) : "") +
                        "; " + count(check.equalTokens) + " of " + count(check.greedyTokens) +
                        " greedy tokens equal" + (check.remark.empty() ? "" : "; " + check.remark) +
                        "\n";
        }
        return {{{"output", outcome.output.string()},
                 {"layout", m_request.layout},
                 {"dtype", orNull(m_request.dtype)},
                 {"max_logit_difference", orNull(outcome.maxLogitDifference)},
                 {"keeps", outcome.record.keeps},
                 {"loses", outcome.record.loses},
                 {"loss", layoutLossJson(outcome.loss)},
                 {"weight_bytes", outcome.record.weightBytes},
                 {"checks", std::move(checks)},
                 {"warnings", outcome.warnings}},
                std::move(text),
                outcome.warnings};
    }

    Status check() const
    {
        const std::vector<std::string> known = exportLayoutNames();
        if (std::ranges::find(known, m_request.layout) == known.end())
            return usageError("--layout: '" + m_request.layout + "' is none of " + layouts());
        const std::array<std::string, 3> types = {"fp32", "fp16", "bf16"};
        if (m_request.dtype &&
            std::find(types.begin(), types.end(), *m_request.dtype) == types.end())
            return usageError("--dtype: '" + *m_request.dtype + "' is none of fp32, fp16, bf16");
        if (m_output.empty() && !m_dryRun)
            return usageError("-o is required", "only --dry-run needs none");
        return {};
    }

    std::string m_draft, m_output, m_study;
    bool m_dryRun = false;
    ExportRequest m_request;
};

} // namespace

std::unique_ptr<Command> makeExport()
{
    return std::make_unique<Export>();
}

} // namespace mla::cli
