// SPDX-License-Identifier: GPL-3.0-or-later
// What an MLA draft's attention is stored as. No torch here.
#pragma once

#include <vector>

#include "core/checkpoint/checkpoint.h"

namespace mla
{

/// Names within self_attn and shapes of one layer's tensors, in the layout of `config.mla`.
[[nodiscard]] std::vector<ExpectedTensor> mlaTensors(const ModelConfig& config, int layer);

} // namespace mla
