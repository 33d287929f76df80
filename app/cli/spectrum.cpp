// SPDX-License-Identifier: GPL-3.0-or-later
#include <numeric>

#include "app/cli/command.h"
#include "app/cli/options.h"
#include "app/cli/text.h"
#include "core/pipeline/pipeline.h"

using nlohmann::json;

namespace mla::cli
{
namespace
{

/// Fewest leading singular values that hold `share` of the energy (sum of squares).
int rankFor(const std::vector<double>& values, double share)
{
    const double total = std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
    double kept = 0;
    int rank = 0;
    for (const double value : values) {
        if (kept >= share * total)
            break;
        kept += value * value;
        ++rank;
    }
    return rank;
}

constexpr double most = 0.9, nearly = 0.99, practically = 0.999;

json layerJson(const LayerRecord& layer)
{
    const SpectrumRecord spectrum = layer.spectrum.value_or(SpectrumRecord{});
    return {{"layer", layer.layer.value},
            {"weights", spectrum.weights},
            {"activations", spectrum.activations},
            {"effective_rank", spectrum.effectiveRank},
            {"rank_for_energy",
             {{"0.9", rankFor(spectrum.activations, most)},
              {"0.99", rankFor(spectrum.activations, nearly)},
              {"0.999", rankFor(spectrum.activations, practically)}}}};
}

std::string describe(const std::vector<LayerRecord>& layers)
{
    TextTable table({{"Layer"}, {"Values"}, {"Effective rank"}, {"90 %"}, {"99 %"}, {"99.9 %"}});
    for (const LayerRecord& layer : layers) {
        const SpectrumRecord spectrum = layer.spectrum.value_or(SpectrumRecord{});
        table.addRow(
            {std::to_string(layer.layer.value), std::to_string(spectrum.activations.size()),
             number(spectrum.effectiveRank, 1), std::to_string(rankFor(spectrum.activations, most)),
             std::to_string(rankFor(spectrum.activations, nearly)),
             std::to_string(rankFor(spectrum.activations, practically))});
    }
    return table.text() +
           "\nPercent columns: the rank that keeps this share of the energy of keys and "
           "values on calibration text.\n";
}

class Spectrum : public Command
{
public:
    std::string name() const override { return "spectrum"; }
    std::string summary() const override
    {
        return "rank spectra of keys and values per layer: which latent size fits";
    }
    std::string examples() const override
    {
        return "Example: mla-draft spectrum models/SmolLM2-135M --calibration book.txt --sequences "
               "32";
    }
    void declare(CLI::App& parser) override
    {
        addModelArgument(parser, m_model, "CKPT", "model directory with GQA attention");
        addCalibrationOptions(parser, m_calibration, false);
    }
    Result<Output> run(JobContext& job) override
    {
        MLA_CHECK(validate(m_calibration));
        MLA_TRY(layers, measureSpectrum(job, m_model, m_calibration, common.compute));
        json list = json::array();
        for (const LayerRecord& layer : layers)
            list.push_back(layerJson(layer));
        return Output{{{"layers", std::move(list)}}, describe(layers), {}};
    }

private:
    std::string m_model;
    CalibrationSettings m_calibration;
};

} // namespace

std::unique_ptr<Command> makeSpectrum()
{
    return std::make_unique<Spectrum>();
}

} // namespace mla::cli
