// SPDX-License-Identifier: GPL-3.0-or-later
// Functional reconstruction of one layer: AdamW on the projections that the converter introduced,
// everything else frozen (paper section 3, design section 6).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/indices.h"
#include "core/base/job.h"
#include "core/base/result.h"
#include "core/base/torch.h"
#include "core/model/key_basis.h"
#include "core/refine/objective.h"
#include "core/store/records.h"

namespace mla
{

struct RefineOptions {
    int steps = 60;
    double learningRate = 2e-3;
    int batchSequences = 4;
    double clip = 1.0; ///< global gradient norm; 0 = off
    double warmup = 0.05;
    std::uint64_t seed = 0; ///< batches are drawn from (seed, layer)
};

struct LayerData {
    LayerIndex layer;
    torch::Tensor input;  ///< [N, T, d]
    torch::Tensor target; ///< [N, T, d]
    torch::Tensor mask;   ///< [N, T] bool
    int heldout = 1;      ///< the last that many sequences are never trained on
};

struct RefinedLayer {
    MlaBlock block;
    LossCurve curve;
    double lossBefore = 0, lossAfter = 0; ///< held-out, as reported by the objective
    bool keptConverted = false;           ///< nothing was better than the start
    std::vector<std::string> warnings;    ///< NaN or Inf met, by name
};

/// Mean loss of the held-out sequences, in batches of `batchSequences`.
double heldoutLoss(const Objective& objective, const MlaBlock& block, const LayerData& data,
                   int batchSequences);

/// Trains a copy of `start`. The best step by held-out loss is kept; a layer never ends worse than
/// it began. Stops early when the held-out loss has not improved for half of the evaluations. A
/// loss or gradient that is not finite ends the layer with its best weights and a warning that
/// names it. Single-threaded and reproducible bit for bit on one CPU model.
Result<RefinedLayer> refineLayer(JobContext& job, const MlaBlock& start, const KeyBasis& basis,
                                 const Objective& objective, const LayerData& data,
                                 const RefineOptions& options);

} // namespace mla
