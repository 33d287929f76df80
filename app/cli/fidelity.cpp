// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/command.h"
#include "app/cli/options.h"
#include "app/cli/text.h"
#include "core/pipeline/pipeline.h"

using nlohmann::json;

namespace mla::cli
{
namespace
{

Output describe(const FidelityReport& report)
{
    json layers = json::array();
    TextTable table({{"Layer"}, {"Relative error"}, {"Cosine"}, {"Attention KL (nats)"}});
    for (const LayerRecord& layer : report.layers) {
        const FidelityRecord fidelity = layer.after.value_or(FidelityRecord{});
        layers.push_back({{"layer", layer.layer.value},
                          {"relative_error", fidelity.relativeError},
                          {"cosine", fidelity.cosine},
                          {"attention_kl", fidelity.attentionKl}});
        table.addRow({std::to_string(layer.layer.value), number(fidelity.relativeError, 4),
                      number(fidelity.cosine, 4), number(fidelity.attentionKl, 4)});
    }
    return {{{"layers", std::move(layers)}, {"mean_relative_error", report.meanRelativeError}},
            table.text() + "\nMean relative error " + number(report.meanRelativeError, 4) + "\n",
            {}};
}

class Fidelity : public Command
{
public:
    std::string name() const override { return "fidelity"; }
    std::string summary() const override
    {
        return "how closely a draft's attention blocks compute what the original's do";
    }
    std::string examples() const override
    {
        return "Example: mla-draft fidelity drafts/my-draft --original models/SmolLM2-135M";
    }
    void declare(CLI::App& parser) override
    {
        addModelArgument(parser, m_draft, "DRAFT", "draft directory");
        parser.add_option("--original", m_original, "the model it was converted from")
            ->type_name("DIR")
            ->required();
        m_calibrationOption = addCalibrationOptions(parser, m_calibration, true);
    }
    Result<Output> run(JobContext& job) override
    {
        std::optional<CalibrationSettings> calibration;
        if (m_calibrationOption->count() > 0) {
            MLA_CHECK(validate(m_calibration));
            calibration = m_calibration;
        }
        MLA_TRY(report, measureFidelity(job, m_draft, m_original, calibration, common.compute));
        return describe(report);
    }

private:
    std::string m_draft, m_original;
    CalibrationSettings m_calibration;
    CLI::Option* m_calibrationOption = nullptr;
};

} // namespace

std::unique_ptr<Command> makeFidelity()
{
    return std::make_unique<Fidelity>();
}

} // namespace mla::cli
