// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/torch.h"

namespace mla
{

/// x * rsqrt(mean(x^2) + eps) * weight over the last dimension.
torch::Tensor rmsNorm(const torch::Tensor& x, const torch::Tensor& weight, double eps);

} // namespace mla
