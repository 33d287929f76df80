// SPDX-License-Identifier: GPL-3.0-or-later
// A figure as data: what the workbench draws, the report exports and the table twin lists.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/store/records.h"

namespace mla
{

struct StudyCells;

struct Axis {
    std::string label; ///< "Optimizer step", "Relative error"
    std::string unit;  ///< "tokens", "%", "" when dimensionless
    bool logarithmic = false;
    std::vector<std::string> categories; ///< tick labels at 0, 1, 2, ... for a categorical axis
};

struct Series {
    enum class Kind { Line, Bars, Points };
    std::string name; ///< legend text
    std::string role; ///< stable colour key: variant name, "train", "heldout", or ""
    Kind kind = Kind::Line;
    std::vector<double> x, y;      ///< equal length; NaN in y is a gap
    std::vector<double> low, high; ///< error interval per point, or empty
    std::optional<int> layer;      ///< the layer it belongs to, for linked selection
};

/// low to high, both inclusive.
struct Band {
    double low = 0, high = 0;
};

/// values[row * columns + column]; row 0 is at the bottom.
struct Heatmap {
    int rows = 0, columns = 0;
    std::vector<double> values;
    std::string valueLabel, valueUnit;
    bool diverging = false;              ///< centred at 0
    std::vector<std::string> texts = {}; ///< written into the cells, as many as values, or empty
    std::optional<Band> range = {};      ///< what the colours span; null: what the values do
};

struct Figure {
    std::string id; ///< file name stem, stable: "loss-transmla-functional"
    std::string title;
    Axis x, y;
    std::vector<Series> series;
    std::optional<Heatmap> heatmap;
    std::optional<double> verticalMark; ///< x of a marked position (the rank line)
    std::optional<Band> horizontalBand; ///< of y: nothing is said to have changed within
    std::string caption;                ///< one sentence with the numbers
};

/// Train and held-out loss against steps. One layer, or all layers' held-out loss if `layer` is
/// null.
Figure lossCurves(const RunRecord& run, std::optional<LayerIndex> layer);
/// Relative functional error per layer; before and after refinement.
Figure layerErrors(const RunRecord& run);
/// The same for several runs side by side (one series per run).
Figure layerErrorComparison(const std::vector<const RunRecord*>& runs);
/// Perplexity (log) at the stages that each last draft of a line went through, from the original's.
Figure stagePerplexities(const StudyData& study);
/// Singular values (log), normalised to the largest, of one layer or of all; rank marked.
Figure rankSpectrum(const RunRecord& run, std::optional<LayerIndex> layer);
/// Retained energy at the run's rank, per layer.
Figure retainedEnergy(const RunRecord& run);
/// [KV head x frequency pair] share of key energy that leaves the rotary path, one layer.
Figure ropeHeatmap(const RunRecord& run, LayerIndex layer);
/// Mean |change of attention logit| against token distance, one layer or all.
Figure ropeDistance(const RunRecord& run, std::optional<LayerIndex> layer);
/// Relative functional error per layer by its source: rotary alone, low rank alone, both, after
/// refinement. What is absent has no series.
Figure errorSources(const RunRecord& run);
/// Mean KL(original || draft) and perplexity of both by position in the text.
Figure positionKl(const RunRecord& run);
Figure positionPerplexity(const RunRecord& run);
/// [query x key] probabilities of original and draft on one colour scale, then draft - original.
std::vector<Figure> attentionMaps(const RunRecord& run, const AttentionMapRecord& map);
/// Acceptance rate (%) by task with variants side by side; one figure per converter and k.
std::vector<Figure> acceptanceByTask(const StudyData& study);
/// Conditional and cumulative acceptance per draft position.
std::vector<Figure> acceptanceByPosition(const StudyData& study);
/// Share of steps (%) by accepted length, variants side by side; one figure per converter and k.
std::vector<Figure> acceptedLengths(const StudyData& study);
/// Of replays: the speed-up that measured costs predict (where `accept --sweep-k` measured them)
/// and the mean acceptance length, against the draft length k; a figure each per converter.
std::vector<Figure> draftLengths(const StudyData& study);
/// Acceptance rate (%) against the mean relative error of the attention blocks: a point per draft
/// and task; one figure per way of measuring.
std::vector<Figure> acceptanceAgainstFidelity(const StudyData& study);
/// Tokens per second against acceptance rate (%), likewise.
std::vector<Figure> speedAgainstAcceptance(const StudyData& study);
/// Functional - partial-rope in percentage points with the band of +-0.5; one figure per pair.
std::vector<Figure> matchedDeltas(const StudyCells& cells);
/// Family x converter: mean difference, verdict and counts.
Figure crossoverGrid(const StudyCells& cells);

/// Every figure a report holds, in reading order; those without data are left out.
std::vector<Figure> allFigures(const StudyData& study);

} // namespace mla
