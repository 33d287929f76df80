// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluate/position_scores.h"

#include <atomic>
#include <bit>
#include <cmath>
#include <map>

#include "core/model/sampling.h"
#include "core/model/tensors.h"

namespace mla
{
namespace
{

constexpr int kFirstBucket = 32; // positions in it

/// Sums over the predictions of one bucket.
struct Sums {
    double originalNll = 0, nll = 0, kl = 0;
    std::int64_t tokens = 0;
};
using BucketSums = std::map<int, Sums>; // by first position

BucketSums sumsOf(const WindowScores& scores)
{
    BucketSums buckets;
    const int count = static_cast<int>(scores.nll.numel());
    for (int begin = 0; begin < count;) {
        const PositionBucket bucket = emptyBucketAt(begin);
        const int rows = std::min(bucket.last + 1, count) - begin;
        const auto sum = [&](const torch::Tensor& t) {
            return t.narrow(0, begin, rows).sum().item<double>();
        };
        buckets[bucket.first] = {sum(scores.referenceNll), sum(scores.nll), sum(scores.kl), rows};
        begin += rows;
    }
    return buckets;
}

PositionBucket meanOf(int first, const Sums& sums)
{
    PositionBucket bucket = emptyBucketAt(first);
    const auto n = static_cast<double>(sums.tokens);
    bucket.tokens = sums.tokens;
    bucket.originalPerplexity = std::exp(sums.originalNll / n);
    bucket.perplexity = std::exp(sums.nll / n);
    bucket.kl = sums.kl / n;
    return bucket;
}

Status checkWindow(const Decoder& model, const std::vector<int>& window)
{
    if (window.size() > kMostPositions)
        return usageError("a window of " + std::to_string(window.size()) +
                          " tokens: positions are scored up to " + std::to_string(kMostPositions));
    return checkIds(model.config(), window, static_cast<std::int64_t>(window.size()));
}

} // namespace

PositionBucket emptyBucketAt(int position)
{
    if (position < kFirstBucket)
        return {0, kFirstBucket - 1};
    const int first = static_cast<int>(std::bit_floor(static_cast<unsigned>(position)));
    return {first, 2 * first - 1};
}

Result<std::vector<PositionBucket>> scorePositions(JobContext& job, const Decoder& original,
                                                   const Decoder& draft,
                                                   const TokenWindows& windows, int workers)
{
    const int count = static_cast<int>(windows.size());
    std::vector<BucketSums> parts(windows.size());
    std::atomic<int> done = 0;
    MLA_CHECK(parallelFor(job, count, workers, [&](int index) -> Status {
        const auto i = static_cast<std::size_t>(index);
        MLA_CHECK(checkWindow(original, windows[i]));
        if (windows[i].size() > 1)
            parts[i] = sumsOf(scoreWindow(draft, &original, windows[i]));
        job.emitEvent(StageProgress{"positions", static_cast<double>(++done), count});
        return {};
    }));
    BucketSums all; // in the order of the windows, whatever the number of workers
    for (const BucketSums& part : parts)
        for (const auto& [first, sums] : part) {
            Sums& total = all[first];
            total.originalNll += sums.originalNll;
            total.nll += sums.nll;
            total.kl += sums.kl;
            total.tokens += sums.tokens;
        }
    if (all.empty())
        return badInput("nothing to score: at least two tokens are needed");
    std::vector<PositionBucket> buckets;
    for (const auto& [first, sums] : all)
        buckets.push_back(meanOf(first, sums));
    return buckets;
}

PositionBucket pooled(const std::vector<PositionBucket>& buckets)
{
    if (buckets.empty())
        return {};
    Sums sums;
    for (const PositionBucket& bucket : buckets) {
        const auto n = static_cast<double>(bucket.tokens);
        sums.originalNll += n * std::log(bucket.originalPerplexity);
        sums.nll += n * std::log(bucket.perplexity);
        sums.kl += n * bucket.kl;
        sums.tokens += bucket.tokens;
    }
    PositionBucket all = meanOf(buckets.front().first, sums);
    all.last = buckets.back().last;
    return all;
}

} // namespace mla
