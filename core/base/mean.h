// SPDX-License-Identifier: GPL-3.0-or-later
// The mean of plain numbers.
#pragma once

#include <numeric>
#include <vector>

namespace mla
{

/// NaN of no values.
[[nodiscard]] inline double mean(const std::vector<double>& values)
{
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

} // namespace mla
