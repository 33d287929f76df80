// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/command.h"
#include "app/cli/options.h"
#include "app/cli/text.h"
#include "core/pipeline/pipeline.h"

namespace mla::cli
{
namespace
{

class Forward : public Command
{
public:
    std::string name() const override { return "forward"; }
    std::string summary() const override { return "one forward pass: the most likely next tokens"; }
    std::string examples() const override
    {
        return "Example: mla-draft forward models/SmolLM2-135M --ids 1,2,3 --out "
               "logits.safetensors";
    }
    bool stoppable() const override { return false; }
    void declare(CLI::App& parser) override
    {
        addModelArgument(parser, m_model, "CKPT", "model directory: original or draft");
        parser.add_option("--ids", m_ids, "input token ids: 1,2,3")->type_name("IDS")->required();
        CLI::Option* out =
            parser
                .add_option("--out", m_out,
                            "safetensors file for the logits: one fp32 tensor 'logits' [T, vocab]")
                ->type_name("FILE");
        parser.add_flag("--overwrite", m_overwrite, "replace the --out file if it exists")
            ->needs(out);
    }
    Result<Output> run(JobContext&) override
    {
        MLA_TRY(ids, parseIds(m_ids, "--ids"));
        if (ids.empty())
            return usageError("--ids: at least one token id is needed");
        MLA_TRY(result,
                forwardModel(m_model, ids, optionalPath(m_out), m_overwrite, common.compute));
        TextTable table({{"Position"}, {"Token id"}, {"Most likely next id"}});
        for (std::size_t i = 0; i < ids.size() && i < result.argmax.size(); ++i)
            table.addRow(
                {std::to_string(i), std::to_string(ids[i]), std::to_string(result.argmax[i])});
        return Output{{{"argmax", result.argmax}}, table.text(), {}};
    }

private:
    std::string m_model, m_ids, m_out;
    bool m_overwrite = false;
};

} // namespace

std::unique_ptr<Command> makeForward()
{
    return std::make_unique<Forward>();
}

} // namespace mla::cli
