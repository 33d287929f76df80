// SPDX-License-Identifier: GPL-3.0-or-later
// What one head of a layer attends to, in the original's block and in the draft's (design section
// 5).
#pragma once

#include "core/base/indices.h"
#include "core/base/torch.h"
#include "core/model/gqa_attention.h"
#include "core/model/mla_attention.h"

namespace mla
{

/// Causal attention probabilities of query head `head` for the states x [1, T, d] that enter the
/// block (after input_layernorm): [T, T] fp64 on the CPU, row = query, column = key. Rows sum to
/// one; zero above the diagonal and before the block's window.
torch::Tensor headProbabilities(const GqaBlock& block, const torch::Tensor& x, HeadIndex head);
torch::Tensor headProbabilities(const MlaBlock& block, const torch::Tensor& x, HeadIndex head);

} // namespace mla
