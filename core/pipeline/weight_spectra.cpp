// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pipeline/weight_spectra.h"

#include <cmath>

#include "core/base/mean.h"
#include "core/checkpoint/checkpoint.h"
#include "core/convert/rank_spectrum.h"
#include "core/model/layer_loading.h"

namespace mla
{

namespace
{

std::vector<int> spread(int layers, int most)
{
    const int count = std::max(1, std::min(layers, most));
    std::vector<int> chosen;
    for (int i = 0; i < count; ++i)
        chosen.push_back(count == 1 ? 0 : i * (layers - 1) / (count - 1));
    return chosen;
}

double lostOf(const std::vector<double>& values, int rank)
{
    double total = 0, lost = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double energy = values[i] * values[i];
        total += energy;
        if (i >= static_cast<std::size_t>(std::max(rank, 0)))
            lost += energy;
    }
    return total > 0 ? std::sqrt(lost / total) : 0;
}

} // namespace

Result<WeightSpectra> weightSpectra(JobContext& job, const std::filesystem::path& model, int most)
{
    MLA_TRY(checkpoint, Checkpoint::open(model));
    if (checkpoint.config().isMla())
        return badInput("is an MLA draft: it has latent projections in place of keys and values",
                        model.string());
    WeightSpectra spectra;
    for (const int layer : spread(checkpoint.config().numHiddenLayers, most)) {
        if (job.stopRequested())
            return cancelled();
        MLA_TRY(block, loadGqaBlock(checkpoint, LayerIndex(layer)));
        spectra.layers.push_back(layer);
        spectra.values.push_back(weightSpectrum(block));
    }
    return spectra;
}

double lostBeyondRank(const WeightSpectra& spectra, int rank)
{
    std::vector<double> lost;
    for (const std::vector<double>& values : spectra.values)
        lost.push_back(lostOf(values, rank));
    return mean(lost);
}

} // namespace mla
