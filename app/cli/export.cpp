// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <array>

#include "app/cli/command.h"
#include "app/cli/json_report.h"
#include "app/cli/options.h"
#include "app/cli/text.h"
#include "core/pipeline/pipeline.h"

namespace mla::cli
{
namespace
{

class Export : public Command
{
public:
    std::string name() const override { return "export"; }
    std::string summary() const override
    {
        return "write a draft for Transformers, optionally in another number format";
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
        parser.add_option("--layout", m_request.layout, "what the directory is for: huggingface")
            ->type_name("NAME")
            ->required();
        parser.add_option("--dtype", m_request.dtype, "fp32, fp16 or bf16")
            ->type_name("TYPE")
            ->default_str("as in the draft");
        parser.add_flag("--verify", m_request.verify,
                        "load the result and compare its logits with the draft's");
    }
    Result<Output> run(JobContext& job) override
    {
        MLA_CHECK(check());
        m_request.draft = m_draft;
        m_request.output = m_output;
        m_request.compute = common.compute;
        MLA_TRY(outcome, exportDraft(job, m_request));
        std::string text = "Draft written to " + outcome.output.string() + "\n";
        if (outcome.maxLogitDifference)
            text += "Largest difference of a logit: " + number(outcome.maxLogitDifference, 6) +
                    " of the logits' spread\n";
        return Output{{{"output", outcome.output.string()},
                       {"layout", m_request.layout},
                       {"dtype", orNull(m_request.dtype)},
                       {"max_logit_difference", orNull(outcome.maxLogitDifference)},
                       {"warnings", outcome.warnings}},
                      std::move(text),
                      outcome.warnings};
    }

private:
    Status check() const
    {
        if (m_request.layout == "deepseek" || m_request.layout == "vllm-plugin")
            return usageError("--layout " + m_request.layout + " is not available in this version",
                              "available: huggingface");
        if (m_request.layout != "huggingface")
            return usageError("--layout: '" + m_request.layout + "' is none of huggingface");
        const std::array<std::string, 3> types = {"fp32", "fp16", "bf16"};
        if (m_request.dtype &&
            std::find(types.begin(), types.end(), *m_request.dtype) == types.end())
            return usageError("--dtype: '" + *m_request.dtype + "' is none of fp32, fp16, bf16");
        return {};
    }

    std::string m_draft, m_output;
    ExportRequest m_request;
};

} // namespace

std::unique_ptr<Command> makeExport()
{
    return std::make_unique<Export>();
}

} // namespace mla::cli
