// SPDX-License-Identifier: GPL-3.0-or-later
// Matched comparisons: did functional reconstruction help here, everything else being equal?
// Paper, section "Draft utility"; design section 7. No torch here.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/evaluate/acceptance.h"

namespace mla
{

/// What has to be equal in both halves of a comparison.
struct CellKey {
    std::string pair;      ///< draft and target checkpoint: "llama-3.2-1b>llama-3.1-8b"
    std::string family;    ///< "llama", "qwen": groups pairs in the crossover
    std::string converter; ///< transmla | mha2mla
    std::string backend;   ///< native | hf | vllm
    std::string task;
    std::string protocol; ///< k, method, temperature, lengths, template: whatever else decides
    auto operator<=>(const CellKey&) const = default;
};

/// One variant's measurement in a cell. For `original`, which has no converter, one entry per
/// converter it is compared with.
struct MeasuredVariant {
    CellKey cell;
    std::string variant;                 ///< original | converted | partial-rope | functional
    int prompts = 0;                     ///< prompts measured, those without a counted step too
    std::vector<StepCount> steps;        ///< raw, prompt = 0 .. prompts - 1
    std::vector<double> tokensPerSecond; ///< of repeated runs; empty where speed means nothing
};

enum class Verdict { Gain, Unchanged, Decline };
[[nodiscard]] std::string_view verdictName(Verdict verdict); ///< "gain", "unchanged", "decline"

/// A change of acceptance is material beyond this many percentage points (paper).
constexpr double materialPp = 0.5;

struct MatchedCell {
    CellKey key;
    double baselineRate = 0, functionalRate = 0; ///< pooled over steps, 0..1
    std::optional<double> originalRate, convertedRate;
    double deltaPp = 0;                 ///< functional - baseline, percentage points
    double deltaLow = 0, deltaHigh = 0; ///< 95 % bootstrap over prompts, drawn for both together
    Verdict verdict = Verdict::Unchanged;
    /// (functional - converted) / (original - converted): the part of what conversion cost that
    /// came back. Null where conversion lost nothing or a variant is missing.
    std::optional<double> recovery;
    /// Mean tokens/s, functional over baseline - 1, in percent; null where speed was not measured.
    std::optional<double> throughputPercent;
    /// The two variants' repeated runs do not overlap. Null with fewer than two runs of either.
    std::optional<bool> throughputMaterial;
};

/// Every cell that has both the baseline and `functional`, in key order. Cells whose two halves
/// were measured on different numbers of prompts are not matched and are left out of the result;
/// their keys are appended to `unmatched` when it is given.
[[nodiscard]] std::vector<MatchedCell> matchedCells(const std::vector<MeasuredVariant>& measured,
                                                    std::string_view baseline = "partial-rope",
                                                    std::uint64_t seed = 0,
                                                    std::vector<CellKey>* unmatched = nullptr);

struct VerdictCounts {
    int gain = 0, unchanged = 0, decline = 0;
    int gainWithThroughput = 0; ///< gains whose throughput rose materially as well
    [[nodiscard]] int cells() const { return gain + unchanged + decline; }
    bool operator==(const VerdictCounts&) const = default;
};
/// One sentence for a group: "gains", "mostly unchanged", "declines" when at least two thirds of
/// its cells agree, else "mixed"; "no cells" for none.
[[nodiscard]] std::string_view groupVerdict(const VerdictCounts& counts);

struct MatchedSummary {
    VerdictCounts all;
    std::map<std::pair<std::string, std::string>, VerdictCounts> crossover; ///< family, converter
};
[[nodiscard]] MatchedSummary summarize(const std::vector<MatchedCell>& cells);

/// The paper's own published result, to be shown beside one's own and labelled as the paper's.
struct PublishedVerdict {
    std::string_view family, converter, verdict;
};
inline constexpr VerdictCounts paperCounts{37, 26, 1, 12};
inline constexpr std::array<PublishedVerdict, 4> paperCrossover = {{
    {"llama", "transmla", "gains"},
    {"llama", "mha2mla", "mostly unchanged"},
    {"qwen", "transmla", "mixed"},
    {"qwen", "mha2mla", "gains"},
}};

} // namespace mla
