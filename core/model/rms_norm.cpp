// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/rms_norm.h"

namespace mla
{

torch::Tensor rmsNorm(const torch::Tensor& x, const torch::Tensor& weight, double eps)
{
    return x * torch::rsqrt(x.pow(2).mean(-1, true) + eps) * weight;
}

} // namespace mla
