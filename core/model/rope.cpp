// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/rope.h"

namespace mla
{

RopeAngles ropeAngles(const torch::Tensor& frequencies, std::int64_t offset, std::int64_t length)
{
    const torch::Tensor positions =
        torch::arange(offset, offset + length, frequencies.options().dtype(torch::kFloat64));
    // [heads, T, m]
    const torch::Tensor angles = positions.view({1, -1, 1}) * frequencies.unsqueeze(1);
    return {angles.cos().to(torch::kFloat32), angles.sin().to(torch::kFloat32)};
}

torch::Tensor applyRope(const torch::Tensor& x, const RopeAngles& angles)
{
    const std::vector<torch::Tensor> halves = x.chunk(2, -1);
    const torch::Tensor& a = halves[0];
    const torch::Tensor& b = halves[1];
    return torch::cat({a * angles.cos - b * angles.sin, b * angles.cos + a * angles.sin}, -1);
}

} // namespace mla
