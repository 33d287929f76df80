// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluate/expected_counts.h"

#include <algorithm>
#include <cassert>

namespace mla
{

namespace
{

void addTo(std::vector<double>& sums, const std::vector<double>& values)
{
    sums.resize(std::max(sums.size(), values.size()), 0.0);
    for (std::size_t i = 0; i < values.size(); ++i)
        sums[i] += values[i];
}

} // namespace

ExpectedCounts& ExpectedCounts::operator+=(const ExpectedCounts& other)
{
    steps += other.steps;
    plainSteps += other.plainSteps;
    draftTokens += other.draftTokens;
    acceptedTokens += other.acceptedTokens;
    addTo(histogram, other.histogram);
    addTo(reached, other.reached);
    addTo(passed, other.passed);
    return *this;
}

ExpectedCounts expectedCounts(std::span<const double> acceptProbability, int k)
{
    const std::size_t n = acceptProbability.size();
    const auto longest = static_cast<std::size_t>(std::max(k, 0));
    ExpectedCounts out;
    out.histogram.assign(longest + 1, 0.0);
    out.reached.assign(longest, 0.0);
    out.passed.assign(longest, 0.0);
    std::vector<double> starts(n + 1, 0.0); // chance that a step starts here
    if (n > 0)
        starts[0] = 1;
    for (std::size_t p = 0; p < n; ++p) {
        const std::size_t drafted = std::min(longest, n - p - 1);
        if (drafted == 0) {
            out.plainSteps += starts[p];
            starts[p + 1] += starts[p];
            continue;
        }
        out.steps += starts[p];
        out.draftTokens += starts[p] * static_cast<double>(drafted);
        double prefix = starts[p]; // a step starts here and its first a tokens stand
        for (std::size_t a = 0; a < drafted; ++a) {
            const double accept = acceptProbability[p + a];
            assert(accept >= 0 && accept <= 1);
            out.reached[a] += prefix;
            out.histogram[a] += prefix * (1 - accept);
            starts[p + a + 1] += prefix * (1 - accept);
            prefix *= accept;
            out.passed[a] += prefix;
            out.acceptedTokens += prefix;
        }
        out.histogram[drafted] += prefix;
        starts[p + drafted + 1] += prefix;
    }
    return out;
}

} // namespace mla
