// SPDX-License-Identifier: GPL-3.0-or-later
// The linear maps of a model's forward pass, and how their weights are kept in memory.
#pragma once

#include "core/base/torch.h"

namespace mla
{

/// x W^T + b: [.., K] x [N, K] -> [.., N]; `bias` may be undefined. As torch::linear, but a bf16 W
/// may stand beside an fp32 x (`keptNarrow`), and a few rows on the CPU (decoding, verification of
/// k + 1 tokens) run at the speed of memory (core/model/thin_product.h). Differentiable.
torch::Tensor linearMap(const torch::Tensor& x, const torch::Tensor& weight,
                     const torch::Tensor& bias);

/// The same weights in half the memory where that loses nothing: an fp32 matrix on the CPU whose
/// values are all bf16 numbers, as those of most checkpoints are, comes back in bf16. Others come
/// back as they are. For weights that only pass through linearMap().
torch::Tensor keptNarrow(const torch::Tensor& weight);

/// What tensors computed from this weight are made of: fp32 for one that was kept narrow.
torch::TensorOptions computeOptions(const torch::Tensor& weight);

} // namespace mla
