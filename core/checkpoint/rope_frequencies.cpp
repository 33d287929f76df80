// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/checkpoint/model_config.h"

namespace mla
{

namespace
{

/// The base grows with the length (NTK), so that slow pairs stretch more than fast ones.
double dynamicTheta(const RopeConfig& rope, int dim, std::int64_t length)
{
    const double original = rope.originalMaxPositionEmbeddings;
    const double growth = std::max(static_cast<double>(length), original) / original;
    const double exponent = static_cast<double>(dim) / (dim - 2);
    return rope.theta * std::pow(rope.factor * growth - (rope.factor - 1), exponent);
}

/// Turns over the original context: many keep their frequency, few are slowed by the factor, those
/// in between are blended.
double llama3Frequency(const RopeConfig& rope, double frequency)
{
    const double turns = rope.originalMaxPositionEmbeddings * frequency / (2 * std::numbers::pi);
    const double smooth = (turns - rope.lowFreqFactor) / (rope.highFreqFactor - rope.lowFreqFactor);
    if (turns < rope.lowFreqFactor)
        return frequency / rope.factor;
    if (turns <= rope.highFreqFactor)
        return frequency * ((1 - smooth) / rope.factor + smooth);
    return frequency;
}

/// YaRN's ramp over the pairs: before its first end frequencies are kept, after its last they are
/// divided by the factor.
struct YarnRamp {
    double first = 0, last = 0;

    YarnRamp(const RopeConfig& rope, int dim)
    {
        const auto pairWith = [&](double turns) { // over the original context
            return dim *
                   std::log(rope.originalMaxPositionEmbeddings / (turns * 2 * std::numbers::pi)) /
                   (2 * std::log(rope.theta));
        };
        first = pairWith(rope.betaFast);
        last = pairWith(rope.betaSlow);
        if (rope.truncate) {
            first = std::floor(first);
            last = std::ceil(last);
        }
        first = std::max(first, 0.0);
        last = std::min(last, dim - 1.0);
        if (first == last)
            last += 0.001;
    }
    [[nodiscard]] double at(int pair) const
    {
        return std::clamp((pair - first) / (last - first), 0.0, 1.0);
    }
};

} // namespace

std::vector<double> inverseFrequencies(const RopeConfig& rope, int dim, std::int64_t length)
{
    std::vector<double> frequencies;
    frequencies.reserve(static_cast<std::size_t>(dim / 2));
    const double theta =
        rope.type == RopeType::Dynamic ? dynamicTheta(rope, dim, length) : rope.theta;
    for (int pair = 0; pair < dim / 2; ++pair) {
        const double plain = std::pow(theta, -2.0 * pair / dim);
        if (rope.type == RopeType::Linear)
            frequencies.push_back(plain / rope.factor);
        else if (rope.type == RopeType::Llama3)
            frequencies.push_back(llama3Frequency(rope, plain));
        else if (rope.type == RopeType::Yarn) {
            const double slowed = YarnRamp(rope, dim).at(pair);
            frequencies.push_back(plain * (1 - slowed) + plain / rope.factor * slowed);
        } else
            frequencies.push_back(plain);
    }
    return frequencies;
}

} // namespace mla
