// SPDX-License-Identifier: GPL-3.0-or-later
// Rotary position embedding, half-split layout: dim i is rotated with dim i + m, m = dims / 2.
#pragma once

#include "core/base/torch.h"

namespace mla
{

/// cos and sin of position * frequency, fp32, from fp64 angles: [heads, T, m].
struct RopeAngles {
    torch::Tensor cos, sin;
};

/// Angles of positions offset .. offset + length - 1 for `frequencies` [heads, m] (fp64, radians
/// per position).
RopeAngles ropeAngles(const torch::Tensor& frequencies, std::int64_t offset, std::int64_t length);

/// x [..., heads, T, 2 m] -> rotated, same shape. `heads` of the angles may be 1 (shared).
torch::Tensor applyRope(const torch::Tensor& x, const RopeAngles& angles);

} // namespace mla
