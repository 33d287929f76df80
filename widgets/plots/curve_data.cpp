// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/curve_data.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mla::ui
{
namespace
{

constexpr double kGap = std::numeric_limits<double>::quiet_NaN();
constexpr int kFactor = 16;         // points of one level per bucket of the next
constexpr int kSmallestLevel = 512; // a level below this is never worth having

using Iterator = QCPGraphDataContainer::const_iterator;

int pointsBetween(const GraphData& data, double low, double high)
{
    return static_cast<int>(data->findEnd(high) - data->findBegin(low));
}

void appendBucket(std::vector<QCPGraphData>& out, Iterator begin, Iterator end)
{
    Iterator low = end, high = end;
    bool gap = false;
    for (Iterator it = begin; it != end; ++it) {
        if (std::isnan(it->value)) {
            gap = true;
            continue;
        }
        if (low == end || it->value < low->value)
            low = it;
        if (high == end || it->value > high->value)
            high = it;
    }
    if (low != end) {
        const Iterator first = std::min(low, high), second = std::max(low, high);
        out.push_back(*first);
        if (second != first)
            out.push_back(*second);
    }
    if (gap)
        out.emplace_back((end - 1)->key, kGap);
}

} // namespace

std::vector<QCPGraphData> decimateMinMax(Iterator begin, Iterator end, std::size_t bucket)
{
    std::vector<QCPGraphData> out;
    const auto count = static_cast<std::size_t>(end - begin);
    out.reserve(2 * (count / std::max<std::size_t>(bucket, 1) + 1));
    for (std::size_t start = 0; start < count; start += bucket)
        appendBucket(out, begin + static_cast<std::ptrdiff_t>(start),
                     begin + static_cast<std::ptrdiff_t>(std::min(count, start + bucket)));
    return out;
}

CurveData::CurveData(bool logarithmicX, bool logarithmicY)
    : m_logX(logarithmicX), m_logY(logarithmicY), m_raw(new QCPGraphDataContainer)
{
}

void CurveData::append(double x, double y)
{
    if (!std::isfinite(x)) {
        ++m_missing;
        return;
    }
    if (m_logX && x <= 0) {
        ++m_hiddenByLog;
        return;
    }
    if (!std::isfinite(y)) {
        ++m_missing;
        y = kGap;
    } else if (m_logY && y <= 0) {
        ++m_hiddenByLog;
        y = kGap;
    }
    m_raw->add(QCPGraphData(x, y));
}

void CurveData::rebuildLevels()
{
    m_coarse.clear();
    m_builtFrom = m_raw->size();
    for (std::size_t bucket = kFactor;; bucket *= kFactor) {
        std::vector<QCPGraphData> points =
            decimateMinMax(m_raw->constBegin(), m_raw->constEnd(), bucket);
        if (points.size() < kSmallestLevel)
            return;
        GraphData level(new QCPGraphDataContainer);
        level->set(QVector<QCPGraphData>(points.begin(), points.end()), true);
        m_coarse.push_back(level);
    }
}

GraphData CurveData::forRange(double lowKey, double highKey, int budget)
{
    if (pointsBetween(m_raw, lowKey, highKey) <= budget)
        return m_raw;
    if (m_builtFrom != m_raw->size())
        rebuildLevels();
    for (const GraphData& level : m_coarse)
        if (pointsBetween(level, lowKey, highKey) <= budget)
            return level;
    return m_coarse.empty() ? m_raw : m_coarse.back();
}

GraphData CurveData::isolated() const
{
    GraphData points(new QCPGraphDataContainer);
    const auto begin = m_raw->constBegin(), end = m_raw->constEnd();
    for (auto it = begin; it != end; ++it) {
        const bool left = it != begin && !std::isnan((it - 1)->value);
        const bool right = it + 1 != end && !std::isnan((it + 1)->value);
        if (!std::isnan(it->value) && !left && !right)
            points->add(*it);
    }
    return points;
}

double Smoother::next(double value)
{
    if (std::isnan(value))
        return value;
    m_sum = m_weight * m_sum + (1 - m_weight) * value;
    m_norm = m_weight * m_norm + (1 - m_weight);
    return m_sum / m_norm;
}

} // namespace mla::ui
