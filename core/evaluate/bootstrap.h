// SPDX-License-Identifier: GPL-3.0-or-later
// Percentile bootstrap over prompts: the steps of one prompt depend on each other, so prompts, not
// steps, are drawn with replacement. No torch here.
#pragma once

#include <cstdint>
#include <vector>

#include "core/evaluate/acceptance.h"

namespace mla
{

/// Drafted and accepted tokens of one prompt.
struct PromptSums {
    double steps = 0, drafted = 0, accepted = 0;
    void add(const StepCount& step);
    PromptSums& operator+=(const PromptSums& other);
    [[nodiscard]] double rate() const;   ///< accepted / drafted; 0 without drafts
    [[nodiscard]] double length() const; ///< 1 + accepted / steps; 0 without steps
};

struct Interval {
    double low = 0, high = 0; ///< 2.5 % and 97.5 % quantiles
};
/// Of the pooled rate. {0, 0} without prompts.
[[nodiscard]] Interval bootstrapRate(const std::vector<PromptSums>& prompts, std::uint64_t seed);
/// Of rate(second) - rate(first), the same prompts drawn for both: equal sizes.
[[nodiscard]] Interval bootstrapRateDifference(const std::vector<PromptSums>& first,
                                               const std::vector<PromptSums>& second,
                                               std::uint64_t seed);

} // namespace mla
