// SPDX-License-Identifier: GPL-3.0-or-later
// How far a layer's MLA block is from the attention block it replaces (design section 5).
#pragma once

#include "core/base/torch.h"
#include "core/model/gqa_attention.h"
#include "core/model/mla_attention.h"
#include "core/store/records.h"

namespace mla
{

/// input, target [B, T, d] (target = the original's attention output for input), mask [B, T] bool.
/// relativeError = sqrt(sum |dA|^2 / sum |A|^2) over valid tokens; cosine = mean over valid tokens;
/// attentionKl = KL(original || draft) in nats, mean over heads and valid queries.
FidelityRecord blockFidelity(const GqaBlock& original, const MlaBlock& draft,
                             const torch::Tensor& input, const torch::Tensor& target,
                             const torch::Tensor& mask);
/// The same of a GQA block with other weights.
FidelityRecord blockFidelity(const GqaBlock& original, const GqaBlock& changed,
                             const torch::Tensor& input, const torch::Tensor& target,
                             const torch::Tensor& mask);

} // namespace mla
