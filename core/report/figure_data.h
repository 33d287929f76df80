// SPDX-License-Identifier: GPL-3.0-or-later
// A figure as data: what the workbench draws, the report exports and the table twin lists.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/store/records.h"

namespace mla
{

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

/// values[row * columns + column]; row 0 is at the bottom.
struct Heatmap {
    int rows = 0, columns = 0;
    std::vector<double> values;
    std::string valueLabel, valueUnit;
    bool diverging = false; ///< centred at 0
};

struct Figure {
    std::string id; ///< file name stem, stable: "loss-transmla-functional"
    std::string title;
    Axis x, y;
    std::vector<Series> series;
    std::optional<Heatmap> heatmap;
    std::optional<double> verticalMark; ///< x of a marked position (the rank line)
    std::string caption;                ///< one sentence with the numbers
};

/// Train and held-out loss against steps. One layer, or all layers' held-out loss if `layer` is
/// null.
Figure lossCurves(const RunRecord& run, std::optional<LayerIndex> layer);
/// Relative functional error per layer; before and after refinement.
Figure layerErrors(const RunRecord& run);
/// The same for several runs side by side (one series per run).
Figure layerErrorComparison(const std::vector<const RunRecord*>& runs);
/// Singular values (log), normalised to the largest, of one layer or of all; rank marked.
Figure rankSpectrum(const RunRecord& run, std::optional<LayerIndex> layer);
/// Retained energy at the run's rank, per layer.
Figure retainedEnergy(const RunRecord& run);
/// [KV head x frequency pair] share of key energy that leaves the rotary path, one layer.
Figure ropeHeatmap(const RunRecord& run, LayerIndex layer);
/// Mean |change of attention logit| against token distance, one layer or all.
Figure ropeDistance(const RunRecord& run, std::optional<LayerIndex> layer);
/// Acceptance rate (%) by task with variants side by side; one figure per converter and k.
std::vector<Figure> acceptanceByTask(const StudyData& study);
/// Conditional and cumulative acceptance per draft position.
std::vector<Figure> acceptanceByPosition(const StudyData& study);

/// Every figure a report holds, in reading order; those without data are left out.
std::vector<Figure> allFigures(const StudyData& study);

} // namespace mla
