// SPDX-License-Identifier: GPL-3.0-or-later
// The mean of plain numbers.
#pragma once

#include <cmath>
#include <numeric>
#include <vector>

namespace mla
{

/// NaN of no values.
[[nodiscard]] inline double mean(const std::vector<double>& values)
{
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Of the finite ones; NaN if there is none.
[[nodiscard]] inline double meanOfFinite(const std::vector<double>& values)
{
    std::vector<double> finite;
    for (const double value : values)
        if (std::isfinite(value))
            finite.push_back(value);
    return mean(finite);
}

} // namespace mla
