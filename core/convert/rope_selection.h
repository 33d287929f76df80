// SPDX-License-Identifier: GPL-3.0-or-later
// Which frequency pairs of each KV head stay rotary (MHA2MLA's partial RoPE, design section 4).
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/torch.h"
#include "core/model/gqa_attention.h"

namespace mla
{

std::vector<std::string> ropeSelections(); ///< 2-norm, high, low, uniform, distance-weighted

/// Queries or keys before RoPE of x [n, d], with QK-norm where the block has it: [n, heads, h]
/// fp64.
torch::Tensor queryHeads(const GqaBlock& block, const torch::Tensor& x);
torch::Tensor keyHeads(const GqaBlock& block, const torch::Tensor& x);

/// mean |k_pair| * sum over the group's query heads of mean |q_pair|: [G, h/2] fp64. x [n, d] fp64.
torch::Tensor pairScores(const GqaBlock& block, const torch::Tensor& x);

/// Mean over distances 0 <= D < 256 of sqrt(2 (1 - cos(theta D))): how much rotating a pair of
/// frequency theta matters. [h/2] fp64.
torch::Tensor rotationImportance(const torch::Tensor& frequencies);

/// `count` pair indices per KV head, ascending: [G][count]. `scores` as pairScores() gives them
/// (unused by high, low, uniform).
Result<std::vector<std::vector<int>>> selectPairs(const std::string& mode, int count,
                                                  const torch::Tensor& scores,
                                                  const torch::Tensor& frequencies);

} // namespace mla
