// SPDX-License-Identifier: GPL-3.0-or-later
#include <charconv>

#include "app/cli/command.h"
#include "app/cli/json_report.h"
#include "app/cli/options.h"
#include "core/pipeline/pipeline.h"

namespace mla::cli
{
namespace
{

const char* const transmlaGroup = "With --converter transmla";
const char* const mha2mlaGroup = "With --converter mha2mla";

class Convert : public Command
{
public:
    std::string name() const override { return "convert"; }
    std::string summary() const override
    {
        return "convert a model's GQA attention to MLA: a latent instead of keys and "
               "values";
    }
    std::string examples() const override
    {
        return "The converted cache holds R + n*D elements per token and layer, n = 1 for transmla "
               "and the\n"
               "number of KV heads for mha2mla; `mla-draft inspect CKPT` shows the original's "
               "size, and\n"
               "`mla-draft spectrum CKPT` which R keeps what share of keys and values.\n"
               "Examples:\n"
               "  mla-draft convert models/SmolLM2-135M -o drafts/t --converter transmla \\\n"
               "      --kv-lora-rank 76 --qk-rope-head-dim 32 --freqfold 4\n"
               "  mla-draft convert models/SmolLM2-135M -o drafts/m --converter mha2mla \\\n"
               "      --kv-lora-rank 84 --qk-rope-head-dim 8 --rope-select distance-weighted \\\n"
               "      --svd activation-aware\n"
               "Next: mla-draft refine drafts/t --original models/SmolLM2-135M -o "
               "drafts/t-functional \\\n"
               "      --objective functional";
    }
    void declare(CLI::App& parser) override
    {
        addModelArgument(parser, m_checkpoint, "CKPT", "model directory to convert");
        addOutputOptions(parser, m_output, m_request.overwrite);
        parser.add_option("--converter", m_request.settings.converter, "transmla or mha2mla")
            ->type_name("NAME")
            ->required();
        parser
            .add_option("--kv-lora-rank", m_request.settings.kvLoraRank,
                        "size of the latent that replaces keys and values")
            ->type_name("R")
            ->check(atLeast(1))
            ->required();
        parser
            .add_option("--qk-rope-head-dim", m_request.settings.qkRopeHeadDim,
                        "dimensions of a key head that keep rotary position, even")
            ->type_name("D")
            ->check(atLeast(2))
            ->required();
        declareConverterOptions(parser);
        addCalibrationOptions(parser, m_request.calibration, false);
        parser.add_flag("--resume", m_request.resume, "continue an interrupted conversion to DIR");
        addStudyOption(parser, m_study);
    }
    Result<Output> run(JobContext& job) override
    {
        MLA_CHECK(takeFreqfold());
        MLA_CHECK(checkConverterOptions());
        MLA_CHECK(validate(m_request.settings));
        MLA_CHECK(validate(m_request.calibration));
        m_request.checkpoint = m_checkpoint;
        m_request.output = m_output;
        m_request.study = optionalPath(m_study);
        m_request.compute = common.compute;
        MLA_TRY(outcome, convertCheckpoint(job, m_request));
        return runOutput(outcome);
    }

private:
    void declareConverterOptions(CLI::App& parser)
    {
        m_freqfoldOption =
            parser
                .add_option("--freqfold", m_freqfold,
                            "neighbouring frequencies treated as one, a multiple of\nhead_dim/D")
                ->type_name("N")
                ->default_str("head_dim/D, the smallest")
                ->group(transmlaGroup);
        m_ropeOption =
            parser
                .add_option("--rope-select", m_request.settings.ropeSelect,
                            "which frequencies stay rotary: 2-norm, high, low, uniform or\n"
                            "distance-weighted")
                ->type_name("NAME")
                ->capture_default_str()
                ->group(mha2mlaGroup);
        m_svdOption =
            parser
                .add_option(
                    "--svd", m_request.settings.svd,
                    "factorisation: joint, split or activation-aware (best at\nsmall ranks)")
                ->type_name("NAME")
                ->capture_default_str()
                ->group(mha2mlaGroup);
    }
    Status takeFreqfold()
    {
        if (m_freqfoldOption->count() == 0)
            return {};
        if (m_freqfold == "auto")
            return usageError("--freqfold auto is not available in this version",
                              "give a number, a multiple of head_dim / qk-rope-head-dim");
        const char* end = m_freqfold.data() + m_freqfold.size();
        const auto [stopped, problem] =
            std::from_chars(m_freqfold.data(), end, m_request.settings.freqfold);
        if (problem != std::errc() || stopped != end || m_request.settings.freqfold < 1)
            return usageError("--freqfold must be a whole number, at least 1, got '" + m_freqfold +
                              "'");
        return {};
    }
    /// validate() cannot see a default that was typed.
    Status checkConverterOptions() const
    {
        const std::string& converter = m_request.settings.converter;
        if (converter == "mha2mla" && m_freqfoldOption->count() > 0)
            return usageError("--freqfold belongs to --converter transmla, not mha2mla");
        for (const CLI::Option* option : {m_ropeOption, m_svdOption})
            if (converter == "transmla" && option->count() > 0)
                return usageError(option->get_name() +
                                  " belongs to --converter mha2mla, not transmla");
        return {};
    }

    std::string m_checkpoint, m_output, m_study, m_freqfold;
    ConvertRequest m_request;
    CLI::Option *m_freqfoldOption = nullptr, *m_ropeOption = nullptr, *m_svdOption = nullptr;
};

} // namespace

std::unique_ptr<Command> makeConvert()
{
    return std::make_unique<Convert>();
}

} // namespace mla::cli
