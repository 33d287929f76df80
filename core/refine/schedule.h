// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cmath>

namespace mla
{

/// Learning rate of 0-based step s of S: linear decay from `peak` to 0 with a linear warm-up over
/// max(1, floor(warmup * S)) steps.
inline double learningRateAt(int step, int steps, double peak, double warmup)
{
    const double decay = 1.0 - static_cast<double>(step) / steps;
    const double ramp = (step + 1.0) / std::max(1.0, std::floor(warmup * steps));
    return peak * decay * std::min(1.0, ramp);
}

} // namespace mla
