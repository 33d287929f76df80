// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluate/bootstrap.h"

#include <algorithm>
#include <cassert>
#include <random>

namespace mla
{

namespace
{

constexpr int samples = 2000;
constexpr double tail = 0.025; // of a 95 % interval, on each side

/// Linear interpolation between order statistics.
double quantile(const std::vector<double>& sorted, double share)
{
    const double position = share * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(position);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] +
           (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

/// `statistic` of `count` indices drawn with replacement, again and again.
template <typename Statistic>
Interval interval(std::size_t count, std::uint64_t seed, const Statistic& statistic)
{
    if (count == 0)
        return {};
    std::mt19937_64 random(seed);
    std::vector<double> values;
    std::vector<std::size_t> drawn(count);
    for (int sample = 0; sample < samples; ++sample) {
        // The standard's distributions differ between libraries; this does not.
        for (std::size_t& index : drawn)
            index = random() % count;
        values.push_back(statistic(drawn));
    }
    std::ranges::sort(values);
    return {quantile(values, tail), quantile(values, 1 - tail)};
}

double rateOf(const std::vector<PromptSums>& prompts, const std::vector<std::size_t>& drawn)
{
    PromptSums sums;
    for (const std::size_t index : drawn)
        sums += prompts[index];
    return sums.rate();
}

} // namespace

void PromptSums::add(const StepCount& step)
{
    steps += step.weight;
    drafted += step.weight * step.drafted;
    accepted += step.weight * step.accepted;
}

PromptSums& PromptSums::operator+=(const PromptSums& other)
{
    steps += other.steps;
    drafted += other.drafted;
    accepted += other.accepted;
    return *this;
}

double PromptSums::rate() const
{
    return drafted > 0 ? accepted / drafted : 0;
}

double PromptSums::length() const
{
    return steps > 0 ? 1 + accepted / steps : 0;
}

Interval bootstrapRate(const std::vector<PromptSums>& prompts, std::uint64_t seed)
{
    return interval(prompts.size(), seed,
                    [&](const auto& drawn) { return rateOf(prompts, drawn); });
}

Interval bootstrapRateDifference(const std::vector<PromptSums>& first,
                                 const std::vector<PromptSums>& second, std::uint64_t seed)
{
    assert(first.size() == second.size());
    return interval(first.size(), seed, [&](const auto& drawn) {
        return rateOf(second, drawn) - rateOf(first, drawn);
    });
}

} // namespace mla
