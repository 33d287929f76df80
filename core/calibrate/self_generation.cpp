// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/calibrate/self_generation.h"

#include <algorithm>
#include <atomic>

#include "core/model/sampling.h"
#include "core/model/tensors.h"

namespace mla
{
namespace
{

constexpr int kBatch =
    32; // sequences decoded together: each pass over the weights serves all of them
constexpr std::uint64_t kSelfStream = 0x5e1f;

} // namespace

Result<torch::Tensor> sampleSequences(JobContext& job, const Decoder& model,
                                      const std::vector<std::vector<int>>& prefixes, int length,
                                      std::uint64_t seed, int workers)
{
    const int count = static_cast<int>(prefixes.size());
    const int batches = (count + kBatch - 1) / kBatch;
    torch::Tensor ids = torch::zeros({count, length}, torch::kInt64);
    std::atomic<std::int64_t> sampledTokens = 0;
    MLA_CHECK(parallelFor(job, batches, workers, [&](int batch) -> Status {
        const int first = batch * kBatch, rows = std::min(kBatch, count - first);
        torch::Generator generator =
            seededGenerator(seed, kSelfStream, static_cast<std::uint64_t>(batch));
        torch::Tensor block = ids.narrow(0, first, rows);
        KvCache cache = model.makeCache(rows, length);
        torch::Tensor sampled; // [rows], the model's token for the next position
        for (int position = 0; position < length; ++position) {
            if (job.stopRequested())
                return cancelled();
            for (int row = 0; row < rows; ++row) {
                const std::vector<int>& prefix = prefixes[static_cast<std::size_t>(first + row)];
                const bool given = position < static_cast<int>(prefix.size());
                block[row][position] =
                    given ? torch::tensor(prefix[static_cast<std::size_t>(position)], torch::kInt64)
                          : sampled[row];
            }
            if (position + 1 == length)
                break;
            const torch::Tensor logits =
                model.stepLast(block.narrow(1, position, 1).to(model.device()), cache);
            sampled = sampleTokens(logits, 1.0, generator).to(torch::kCPU);
            const std::int64_t tokens = sampledTokens += rows;
            job.emitEvent(StageProgress{"calibrate", static_cast<double>(tokens) / length, count});
        }
        return {};
    }));
    return ids;
}

} // namespace mla
