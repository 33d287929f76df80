// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluate/matched_cells.h"

#include <algorithm>

#include "core/base/mean.h"
#include "core/evaluate/bootstrap.h"

namespace mla
{

namespace
{

constexpr double percent = 100;
constexpr double rounding = 1e-9; // a change of exactly 0.5 pp is not beyond it

/// Drafted and accepted tokens of each prompt of one variant.
std::vector<PromptSums> perPrompt(const MeasuredVariant& variant)
{
    std::vector<PromptSums> sums(static_cast<std::size_t>(variant.prompts));
    for (const StepCount& step : variant.steps)
        sums.at(static_cast<std::size_t>(step.prompt)).add(step);
    return sums;
}

double pooledRate(const std::vector<PromptSums>& prompts)
{
    PromptSums all;
    for (const PromptSums& prompt : prompts)
        all += prompt;
    return all.rate();
}

Verdict verdictOf(double deltaPp)
{
    if (deltaPp > materialPp + rounding)
        return Verdict::Gain;
    return deltaPp < -materialPp - rounding ? Verdict::Decline : Verdict::Unchanged;
}

void compareThroughput(const std::vector<double>& baseline, const std::vector<double>& functional,
                       MatchedCell& cell)
{
    if (baseline.empty() || functional.empty())
        return;
    cell.throughputPercent = percent * (mean(functional) / mean(baseline) - 1);
    if (baseline.size() < 2 || functional.size() < 2)
        return;
    const auto [baseLow, baseHigh] = std::ranges::minmax(baseline);
    const auto [ownLow, ownHigh] = std::ranges::minmax(functional);
    cell.throughputMaterial = ownLow > baseHigh || ownHigh < baseLow;
}

using Variants = std::map<std::string, const MeasuredVariant*, std::less<>>;

const MeasuredVariant* find(const Variants& variants, std::string_view name)
{
    const auto it = variants.find(name);
    return it == variants.end() ? nullptr : it->second;
}

std::optional<double> rateOf(const Variants& variants, std::string_view name)
{
    const MeasuredVariant* variant = find(variants, name);
    return variant ? std::optional(pooledRate(perPrompt(*variant))) : std::nullopt;
}

MatchedCell compare(const CellKey& key, const MeasuredVariant& baseline,
                    const MeasuredVariant& functional, const Variants& variants, std::uint64_t seed)
{
    MatchedCell cell;
    cell.key = key;
    const std::vector<PromptSums> base = perPrompt(baseline), own = perPrompt(functional);
    cell.baselineRate = pooledRate(base);
    cell.functionalRate = pooledRate(own);
    cell.originalRate = rateOf(variants, "original");
    cell.convertedRate = rateOf(variants, "converted");
    cell.deltaPp = percent * (cell.functionalRate - cell.baselineRate);
    cell.verdict = verdictOf(cell.deltaPp);
    const Interval interval = bootstrapRateDifference(base, own, seed);
    cell.deltaLow = percent * interval.low;
    cell.deltaHigh = percent * interval.high;
    if (cell.originalRate && cell.convertedRate && *cell.originalRate > *cell.convertedRate)
        cell.recovery = (cell.functionalRate - *cell.convertedRate) /
                        (*cell.originalRate - *cell.convertedRate);
    compareThroughput(baseline.tokensPerSecond, functional.tokensPerSecond, cell);
    return cell;
}

void count(const MatchedCell& cell, VerdictCounts& counts)
{
    counts.gain += cell.verdict == Verdict::Gain;
    counts.unchanged += cell.verdict == Verdict::Unchanged;
    counts.decline += cell.verdict == Verdict::Decline;
    counts.gainWithThroughput += cell.verdict == Verdict::Gain &&
                                 cell.throughputMaterial.value_or(false) &&
                                 *cell.throughputPercent > 0;
}

} // namespace

std::string_view verdictName(Verdict verdict)
{
    switch (verdict) {
    case Verdict::Gain:
        return "gain";
    case Verdict::Decline:
        return "decline";
    case Verdict::Unchanged:
        break;
    }
    return "unchanged";
}

std::vector<MatchedCell> matchedCells(const std::vector<MeasuredVariant>& measured,
                                      std::string_view baseline, std::uint64_t seed,
                                      std::vector<CellKey>* unmatched)
{
    std::map<CellKey, Variants> byKey;
    for (const MeasuredVariant& variant : measured)
        byKey[variant.cell][variant.variant] = &variant;
    std::vector<MatchedCell> cells;
    for (const auto& [key, variants] : byKey) {
        const MeasuredVariant* base = find(variants, baseline);
        const MeasuredVariant* functional = find(variants, "functional");
        if (!base || !functional)
            continue;
        if (base->prompts == functional->prompts)
            cells.push_back(compare(key, *base, *functional, variants, seed));
        else if (unmatched)
            unmatched->push_back(key);
    }
    return cells;
}

std::string_view groupVerdict(const VerdictCounts& counts)
{
    const int cells = counts.cells();
    const auto most = [cells](int part) { return 3 * part >= 2 * cells; };
    if (cells == 0)
        return "no cells";
    if (most(counts.gain))
        return "gains";
    if (most(counts.unchanged))
        return "mostly unchanged";
    return most(counts.decline) ? "declines" : "mixed";
}

MatchedSummary summarize(const std::vector<MatchedCell>& cells)
{
    MatchedSummary summary;
    for (const MatchedCell& cell : cells) {
        count(cell, summary.all);
        count(cell, summary.crossover[{cell.key.family, cell.key.converter}]);
    }
    return summary;
}

} // namespace mla
