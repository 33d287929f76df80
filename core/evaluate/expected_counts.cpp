// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluate/expected_counts.h"

#include <algorithm>
#include <cassert>

namespace mla
{

AlignedCounts expectedCounts(std::span<const double> acceptProbability, int k, int prompt)
{
    const int length = static_cast<int>(acceptProbability.size());
    AlignedCounts out;
    std::vector<double> starts(acceptProbability.size() + 1, 0.0); // chance that a step starts here
    if (length > 0)
        starts[0] = 1;
    for (int p = 0; p < length; ++p) {
        const double start = starts[static_cast<std::size_t>(p)];
        const int drafted = std::min(std::max(k, 0), length - p - 1);
        // A step from here with `accepted` tokens, and the one that the target adds.
        const auto step = [&](int accepted, double weight) {
            if (weight <= 0)
                return;
            if (drafted > 0)
                out.steps.push_back({prompt, drafted, accepted, weight});
            else
                out.plainSteps += weight;
            starts[static_cast<std::size_t>(p + accepted + 1)] += weight;
        };
        double prefix = start; // a step starts here and its first tokens stand
        for (int a = 0; a < drafted; ++a) {
            const double accept = acceptProbability[static_cast<std::size_t>(p + a)];
            assert(accept >= 0 && accept <= 1);
            step(a, prefix * (1 - accept));
            prefix *= accept;
        }
        step(drafted, prefix);
    }
    return out;
}

} // namespace mla
