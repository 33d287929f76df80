// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluate/acceptance.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <map>

#include "core/evaluate/bootstrap.h"

namespace mla
{

namespace
{

std::vector<PromptSums> sumsByPrompt(std::span<const StepCount> steps)
{
    std::map<int, PromptSums> prompts;
    for (const StepCount& step : steps)
        prompts[step.prompt].add(step);
    std::vector<PromptSums> sums;
    for (const auto& [prompt, sum] : prompts)
        sums.push_back(sum);
    return sums;
}

void countPositions(std::span<const StepCount> steps, AcceptanceMetrics& metrics)
{
    const std::size_t k = metrics.perPosition.size();
    for (std::size_t i = 0; i < k; ++i) {
        const int position = static_cast<int>(i);
        double reached = 0, passed = 0;
        for (const StepCount& step : steps) {
            if (step.drafted > position && step.accepted >= position)
                reached += step.weight;
            if (step.accepted > position)
                passed += step.weight;
        }
        if (metrics.steps > 0)
            metrics.perPosition[i] = passed / metrics.steps;
        metrics.conditional[i] =
            reached > 0 ? passed / reached : std::numeric_limits<double>::quiet_NaN();
    }
    for (const StepCount& step : steps)
        metrics.histogram[static_cast<std::size_t>(step.accepted)] += step.weight;
}

} // namespace

AcceptanceMetrics acceptanceMetrics(std::span<const StepCount> steps, int k, std::uint64_t seed)
{
    PromptSums pooled;
    for (const StepCount& step : steps) {
        assert(step.accepted >= 0 && step.accepted <= step.drafted);
        pooled.add(step);
        k = std::max(k, step.drafted);
    }
    AcceptanceMetrics metrics;
    metrics.steps = pooled.steps;
    metrics.draftTokens = pooled.drafted;
    metrics.acceptedTokens = pooled.accepted;
    metrics.acceptanceRate = pooled.rate();
    metrics.meanAcceptanceLength = pooled.length();
    const auto positions = static_cast<std::size_t>(std::max(k, 0));
    metrics.perPosition.assign(positions, 0);
    metrics.conditional.assign(positions, 0);
    metrics.histogram.assign(positions + 1, 0);
    countPositions(steps, metrics);

    const std::vector<PromptSums> prompts = sumsByPrompt(steps);
    if (prompts.empty())
        return metrics;
    for (const PromptSums& prompt : prompts) {
        metrics.perPromptMeanRate += prompt.rate() / static_cast<double>(prompts.size());
        metrics.perPromptMeanLength += prompt.length() / static_cast<double>(prompts.size());
    }
    const Interval interval = bootstrapRate(prompts, seed);
    metrics.rateLow = interval.low;
    metrics.rateHigh = interval.high;
    return metrics;
}

AlignedCounts alignedCounts(const std::vector<bool>& matches, int k, int prompt)
{
    const int length = static_cast<int>(matches.size());
    std::vector<StepStart> begun;
    for (int p = 0; p < length;) {
        int accepted = 0;
        while (accepted < std::min(k, length - p - 1) &&
               matches[static_cast<std::size_t>(p + accepted)])
            ++accepted;
        begun.push_back({p, accepted});
        p += accepted + 1; // the target adds one token of its own
    }
    return alignedSteps(begun, length, k, prompt);
}

AlignedCounts alignedSteps(std::span<const StepStart> begun, int length, int k, int prompt)
{
    AlignedCounts counts;
    int next = 0; // first token that no step has accounted for
    for (const StepStart& step : begun) {
        if (step.position >= length)
            break;
        counts.plainSteps += step.position - next;
        const int drafted = std::min(k, length - step.position - 1);
        const int accepted = std::min(step.accepted, drafted);
        if (drafted > 0)
            counts.steps.push_back({prompt, drafted, accepted});
        else
            ++counts.plainSteps;
        next = std::min(step.position + accepted + 1, length);
    }
    counts.plainSteps += length - next;
    return counts;
}

} // namespace mla
