// SPDX-License-Identifier: GPL-3.0-or-later
// What partial RoPE does to attention logits at long range (design section 5).
#pragma once

#include "core/base/torch.h"
#include "core/model/gqa_attention.h"
#include "core/model/mla_attention.h"
#include "core/store/records.h"

namespace mla
{

/// Fills record.distance and record.scoreResidual: mean |logit of `fullRankBlock` - original logit|
/// over heads and pairs (i, j), j <= i within the window, in log-spaced bins of i - j. x [B, T, d]
/// fp32, mask [B, T].
void measureScoreResidual(const GqaBlock& original, const MlaBlock& fullRankBlock,
                          const torch::Tensor& x, const torch::Tensor& mask, RopeRecord& record);

} // namespace mla
