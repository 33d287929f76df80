// SPDX-License-Identifier: GPL-3.0-or-later
// From tensor names to blocks and back: the only place that knows both.
#pragma once

#include <string>
#include <vector>

#include "core/base/indices.h"
#include "core/base/result.h"
#include "core/base/torch.h"
#include "core/checkpoint/checkpoint.h"
#include "core/model/gqa_attention.h"
#include "core/model/mla_attention.h"

namespace mla
{

Result<GqaBlock> loadGqaBlock(const Checkpoint& checkpoint, LayerIndex layer,
                              torch::Device device = torch::kCPU);
/// From any DraftLayout. What another layout stores apart becomes part of the weights: interleaved
/// rotary rows are made half-split, factored queries multiplied, separate latents joined.
Result<MlaBlock> loadMlaBlock(const Checkpoint& checkpoint, LayerIndex layer,
                              torch::Device device = torch::kCPU);

/// The block's own tensors under a draft's names ("q_proj.weight", "kv_a_proj_with_mqa.bias", ...,
/// without o_proj, which is the source's): contiguous fp32 on the CPU.
std::vector<std::pair<std::string, torch::Tensor>> draftTensors(const MlaBlock& block);

/// "model.layers.N.self_attn."
std::string attentionPrefix(LayerIndex layer);

/// Inverse frequencies [n_r, d_r / 2] (fp64) of each rotary head's chosen pairs.
torch::Tensor pairFrequencies(const ModelConfig& config,
                              const std::vector<std::vector<int>>& pairs);

} // namespace mla
