// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/command.h"
#include "app/cli/json_report.h"
#include "app/cli/options.h"
#include "core/pipeline/pipeline.h"

namespace mla::cli
{
namespace
{

class Refine : public Command
{
public:
    std::string name() const override { return "refine"; }
    std::string summary() const override
    {
        return "repair a converted draft layer by layer against the original's attention";
    }
    std::string examples() const override
    {
        return "functional matches each attention block's output; partial-rope is the baseline "
               "that\n"
               "matches keys and values. Layers are independent: an interrupted run goes on with "
               "--resume.\n"
               "Example: mla-draft refine drafts/t --original models/SmolLM2-135M -o "
               "drafts/t-functional \\\n"
               "      --objective functional --steps 200";
    }
    void declare(CLI::App& parser) override
    {
        addModelArgument(parser, m_draft, "DRAFT", "draft directory to refine");
        parser.add_option("--original", m_original, "the model it was converted from")
            ->type_name("DIR")
            ->required();
        addOutputOptions(parser, m_output, m_request.overwrite);
        RefineSettings& settings = m_request.settings;
        parser.add_option("--objective", settings.objective, "functional or partial-rope")
            ->type_name("NAME")
            ->required();
        parser.add_option("--steps", settings.steps, "optimizer steps per layer")
            ->type_name("N")
            ->check(atLeast(1))
            ->capture_default_str();
        parser.add_option("--lr", settings.learningRate, "peak learning rate")
            ->type_name("X")
            ->check(notNegative())
            ->default_str("2e-3 for transmla, 4e-3 for mha2mla");
        parser
            .add_option("--batch-tokens", settings.batchTokens, "tokens per step, whole sequences")
            ->type_name("N")
            ->check(atLeast(1))
            ->capture_default_str();
        parser
            .add_option("--layers", m_layers,
                        "refine these layers only, 0-based and inclusive; the others are copied")
            ->type_name("A-B")
            ->default_str("all");
        parser
            .add_option("--layout", m_request.layout,
                        "what it will be exported for: deepseek trains every block through the "
                        "latent norm of stock classes")
            ->type_name("NAME")
            ->capture_default_str();
        m_calibrationOption = addCalibrationOptions(parser, m_calibration, true);
        parser.add_flag("--resume", m_request.resume, "continue an interrupted refinement to DIR");
        addStudyOption(parser, m_study);
    }
    Result<Output> run(JobContext& job) override
    {
        if (!m_layers.empty()) {
            MLA_TRY(range, parseLayers(m_layers));
            m_request.settings.layers = range;
        }
        MLA_CHECK(validate(m_request.settings));
        if (m_calibrationOption->count() > 0) {
            MLA_CHECK(validate(m_calibration));
            m_request.calibration = m_calibration;
        }
        m_request.draft = m_draft;
        m_request.original = m_original;
        m_request.output = m_output;
        m_request.study = optionalPath(m_study);
        m_request.compute = common.compute;
        MLA_TRY(outcome, refineDraft(job, m_request));
        return runOutput(outcome);
    }

private:
    std::string m_draft, m_original, m_output, m_study, m_layers;
    CalibrationSettings m_calibration;
    RefineRequest m_request;
    CLI::Option* m_calibrationOption = nullptr;
};

} // namespace

std::unique_ptr<Command> makeRefine()
{
    return std::make_unique<Refine>();
}

} // namespace mla::cli
