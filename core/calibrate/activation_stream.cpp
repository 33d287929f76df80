// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/calibrate/activation_stream.h"

#include "core/model/tensors.h"

namespace mla
{
namespace
{

constexpr std::int64_t kChunk =
    4; // sequences a product; fixed, so that results don't depend on workers

} // namespace

Result<ActivationStream> ActivationStream::create(const Checkpoint& checkpoint,
                                                  const CalibrationSet& set, torch::Device device,
                                                  int workers)
{
    MLA_TRY(embedding,
            loadTensor(checkpoint, "model.embed_tokens.weight", torch::kFloat32, device));
    if (set.ids.max().item<std::int64_t>() >= checkpoint.config().vocabSize)
        return badInput("calibration holds token ids outside the vocabulary of " +
                            std::to_string(checkpoint.config().vocabSize),
                        set.source);
    const torch::NoGradGuard noGrad;
    return ActivationStream(checkpoint, torch::embedding(embedding, set.ids.to(device)), workers);
}

Result<std::optional<LayerActivations>> ActivationStream::next(JobContext& job)
{
    if (m_next >= m_checkpoint->config().numHiddenLayers)
        return std::optional<LayerActivations>();
    const torch::NoGradGuard noGrad;
    MLA_TRY(weights, loadLayer(*m_checkpoint, LayerIndex(m_next), m_hidden.device()));
    LayerActivations out{LayerIndex(m_next), std::move(weights), torch::empty_like(m_hidden),
                         torch::empty_like(m_hidden)};
    const std::int64_t count = m_hidden.size(0);
    const int chunks = static_cast<int>((count + kChunk - 1) / kChunk);
    MLA_CHECK(parallelFor(job, chunks, m_workers, [&](int chunk) -> Status {
        const std::int64_t first = chunk * kChunk, rows = std::min(kChunk, count - first);
        torch::Tensor hidden = m_hidden.narrow(0, first, rows);
        const torch::Tensor input = attentionInput(out.weights, hidden);
        const torch::Tensor output = attend(out.weights, input);
        out.input.narrow(0, first, rows).copy_(input);
        out.output.narrow(0, first, rows).copy_(output);
        hidden.copy_(finishLayer(out.weights, hidden, output));
        return {};
    }));
    if (!out.output.isfinite().all().item<bool>())
        return computeFailed("the original's attention output is not finite",
                             "layer " + std::to_string(m_next));
    ++m_next;
    return std::optional<LayerActivations>(std::move(out));
}

} // namespace mla
