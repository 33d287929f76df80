// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluate/draft_length.h"

#include "core/evaluate/bootstrap.h"
#include "core/evaluate/expected_counts.h"

namespace mla
{

std::vector<DraftLength> sweepDraftLengths(std::span<const std::vector<double>> acceptProbability,
                                           int maxK, double draftCost,
                                           std::span<const double> verifyCosts)
{
    std::vector<DraftLength> lengths;
    for (int k = 1; k <= maxK; ++k) {
        const bool costed = draftCost > 0 && verifyCosts.size() > static_cast<std::size_t>(k);
        PromptSums sums;
        double plainSeconds = 0, seconds = 0;
        for (const std::vector<double>& text : acceptProbability) {
            const AlignedCounts counts = expectedCounts(text, k, /*prompt=*/0);
            for (const StepCount& step : counts.steps) {
                sums.add(step);
                if (costed)
                    seconds += step.weight * (step.drafted * draftCost +
                                              verifyCosts[static_cast<std::size_t>(step.drafted)]);
            }
            if (costed) {
                seconds += counts.plainSteps * verifyCosts[0];
                plainSeconds += static_cast<double>(text.size()) * verifyCosts[0];
            }
        }
        DraftLength length{k, sums.rate(), sums.length(), {}};
        if (seconds > 0)
            length.speedup = plainSeconds / seconds;
        lengths.push_back(length);
    }
    return lengths;
}

std::optional<int> bestDraftLength(std::span<const DraftLength> lengths)
{
    const DraftLength* best = nullptr;
    for (const DraftLength& length : lengths)
        if (length.speedup && (!best || *length.speedup > *best->speedup))
            best = &length;
    return best ? std::optional(best->k) : std::nullopt;
}

} // namespace mla
