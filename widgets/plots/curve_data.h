// SPDX-License-Identifier: GPL-3.0-or-later
// The points of one curve, with coarser copies that keep every extreme, so that drawing costs what
// the screen can show and not what was measured.
#pragma once

#include <cstddef>
#include <vector>

#include <qcustomplot.h>

namespace mla::ui
{

using GraphData = QSharedPointer<QCPGraphDataContainer>;

/// Minimum and maximum of every `bucket` consecutive points, in drawing order. A bucket that holds
/// a gap (NaN) ends with one, so gaps survive; a bucket of gaps becomes one gap.
std::vector<QCPGraphData> decimateMinMax(QCPGraphDataContainer::const_iterator begin,
                                         QCPGraphDataContainer::const_iterator end,
                                         std::size_t bucket);

class CurveData
{
public:
    /// Values that the axes can't show (NaN, infinite, not positive on a logarithmic axis) become
    /// gaps and are counted.
    explicit CurveData(bool logarithmicX = false, bool logarithmicY = false);

    /// Points before every other one are sorted in; appending at the end is O(1).
    void append(double x, double y);
    [[nodiscard]] int size() const { return m_raw->size(); }
    [[nodiscard]] const GraphData& raw() const { return m_raw; }
    /// Values lost to a logarithmic axis.
    [[nodiscard]] int hiddenByLog() const { return m_hiddenByLog; }
    /// Values that were not numbers.
    [[nodiscard]] int missing() const { return m_missing; }
    /// The finest copy with at most `budget` points between the two keys.
    [[nodiscard]] GraphData forRange(double lowKey, double highKey, int budget);
    /// Finite points with no finite neighbour: a line would not show them.
    [[nodiscard]] GraphData isolated() const;

private:
    void rebuildLevels();

    bool m_logX, m_logY;
    GraphData m_raw;
    std::vector<GraphData> m_coarse; ///< [i]: buckets of 16^(i+1) points
    int m_builtFrom = 0;             ///< size of m_raw that m_coarse was made from
    int m_hiddenByLog = 0, m_missing = 0;
};

/// Debiased exponential moving average; gaps stay gaps and do not move it.
class Smoother
{
public:
    explicit Smoother(double weight) : m_weight(weight) {}
    double next(double value);

private:
    double m_weight, m_sum = 0, m_norm = 0;
};

} // namespace mla::ui
