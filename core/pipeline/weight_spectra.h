// SPDX-License-Identifier: GPL-3.0-or-later
// What a rank will keep of a checkpoint's keys and values, before anything is converted. No torch
// in this header.
#pragma once

#include <filesystem>
#include <vector>

#include "core/base/job.h"
#include "core/base/result.h"

namespace mla
{

struct WeightSpectra {
    std::vector<int> layers;                 ///< those looked at
    std::vector<std::vector<double>> values; ///< per layer: of the stacked [W_k; W_v], descending
};

/// Singular values of up to `most` layers, the first and the last among them, evenly spread.
/// BadInput for an MLA draft, which has no such weights; Cancelled between layers.
Result<WeightSpectra> weightSpectra(JobContext& job, const std::filesystem::path& model, int most);

/// Relative Frobenius error of the best joint factors of rank r (Eckart-Young), mean over the
/// layers: sqrt(sum_{i > r} s_i^2 / sum s_i^2). NaN without layers.
[[nodiscard]] double lostBeyondRank(const WeightSpectra& spectra, int rank);

} // namespace mla
