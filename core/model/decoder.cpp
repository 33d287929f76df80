// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/decoder.h"

#include "core/model/layer_loading.h"
#include "core/model/linear.h"

namespace mla
{

torch::Tensor attentionInput(const DecoderLayer& layer, const torch::Tensor& hidden)
{
    return rmsNorm(hidden, layer.inputNorm, layer.eps);
}

torch::Tensor attend(const DecoderLayer& layer, const torch::Tensor& input)
{
    return std::visit([&](const auto& block) { return attend(block, input); }, layer.attention);
}

torch::Tensor finishLayer(const DecoderLayer& layer, const torch::Tensor& hidden,
                          const torch::Tensor& attentionOutput)
{
    const torch::Tensor mid = hidden + attentionOutput;
    const torch::Tensor x = rmsNorm(mid, layer.postNorm, layer.eps);
    torch::Tensor inner = torch::silu(linearMap(x, layer.gate, layer.gateBias));
    inner.mul_(linearMap(x, layer.up, layer.upBias));
    return mid + linearMap(inner, layer.down, layer.downBias);
}

torch::Tensor DecoderEnds::embed(const torch::Tensor& ids) const
{
    return torch::embedding(embedding, ids).to(finalNorm.scalar_type());
}

torch::Tensor DecoderEnds::logits(const torch::Tensor& hidden) const
{
    return linearMap(rmsNorm(hidden, finalNorm, eps), head, {});
}

namespace
{

void keepNarrow(GqaBlock& block)
{
    for (torch::Tensor* weight : {&block.wq, &block.wk, &block.wv, &block.wo})
        *weight = keptNarrow(*weight);
}

/// The up-projections stay: absorbed attention multiplies by them as they stand.
void keepNarrow(MlaBlock& block)
{
    for (torch::Tensor* weight : {&block.wq, &block.wdkv, &block.wkr, &block.wo})
        *weight = keptNarrow(*weight);
}

void keepNarrow(DecoderLayer& layer)
{
    std::visit([](auto& block) { keepNarrow(block); }, layer.attention);
    for (torch::Tensor* weight : {&layer.gate, &layer.up, &layer.down})
        *weight = keptNarrow(*weight);
}

void keepNarrow(DecoderEnds& ends)
{
    const bool tied = ends.head.is_same(ends.embedding);
    ends.embedding = keptNarrow(ends.embedding);
    ends.head = tied ? ends.embedding : keptNarrow(ends.head);
}

} // namespace

Result<Decoder> Decoder::load(const Checkpoint& checkpoint, torch::Device device)
{
    Decoder decoder;
    decoder.m_config = checkpoint.config();
    MLA_TRY(ends, loadEnds(checkpoint, device));
    decoder.m_ends = std::move(ends);
    keepNarrow(decoder.m_ends);
    for (int i = 0; i < checkpoint.config().numHiddenLayers; ++i) {
        MLA_TRY(layer, loadLayer(checkpoint, LayerIndex(i), device));
        keepNarrow(layer);
        decoder.m_layers.push_back(std::move(layer));
    }
    return decoder;
}

torch::Tensor Decoder::hiddenStates(const torch::Tensor& ids) const
{
    torch::Tensor hidden = m_ends.embed(ids);
    for (const DecoderLayer& layer : m_layers)
        hidden = finishLayer(layer, hidden, attend(layer, attentionInput(layer, hidden)));
    return hidden;
}

torch::Tensor Decoder::logits(const torch::Tensor& ids) const
{
    return m_ends.logits(hiddenStates(ids));
}

KvCache Decoder::makeCache(std::int64_t batch, std::int64_t capacity) const
{
    std::vector<LayerCache> layers;
    for (const DecoderLayer& layer : m_layers)
        layers.push_back(
            std::visit([&](const auto& block) { return mla::makeCache(block, batch, capacity); },
                       layer.attention));
    return {std::move(layers), capacity};
}

torch::Tensor Decoder::stepHidden(const torch::Tensor& ids, KvCache& cache) const
{
    TORCH_CHECK(cache.length() + ids.size(1) <= cache.capacity(), "KV cache of ", cache.capacity(),
                " tokens is full");
    torch::Tensor hidden = m_ends.embed(ids);
    for (std::size_t i = 0; i < m_layers.size(); ++i) {
        const torch::Tensor out = std::visit(
            [&](const auto& block) {
                return attendCached(block, attentionInput(m_layers[i], hidden), cache.layer(i),
                                    cache.length());
            },
            m_layers[i].attention);
        hidden = finishLayer(m_layers[i], hidden, out);
    }
    cache.advance(ids.size(1));
    return hidden;
}

torch::Tensor Decoder::step(const torch::Tensor& ids, KvCache& cache) const
{
    return m_ends.logits(stepHidden(ids, cache));
}

torch::Tensor Decoder::stepLast(const torch::Tensor& ids, KvCache& cache) const
{
    return m_ends.logits(stepHidden(ids, cache).select(1, -1));
}

} // namespace mla
