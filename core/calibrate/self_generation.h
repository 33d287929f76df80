// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/calibrate/corpus.h"
#include "core/model/decoder.h"

namespace mla
{

/// Samples sequences of T tokens from `model`: sequence i begins with prefixes[i] (at least one id)
/// and is continued at temperature 1 with random numbers of (seed, i / batch). Returns [N, T]
/// int64. The batch size is fixed, so that the result does not depend on `workers`.
Result<torch::Tensor> sampleSequences(JobContext& job, const Decoder& model,
                                      const std::vector<std::vector<int>>& prefixes, int length,
                                      std::uint64_t seed, int workers);

} // namespace mla
