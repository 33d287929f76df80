// SPDX-License-Identifier: GPL-3.0-or-later
// A Llama-style decoder: embedding, layers of (RMSNorm, attention, RMSNorm, SwiGLU MLP), final
// norm, head. The attention of a layer is GQA (a source model) or MLA (a draft). Layers are loaded
// in fp32; a whole Decoder keeps bf16 weights in bf16 (core/model/linear.h) and computes in fp32.
#pragma once

#include <variant>
#include <vector>

#include "core/base/indices.h"
#include "core/base/result.h"
#include "core/base/torch.h"
#include "core/checkpoint/checkpoint.h"
#include "core/model/gqa_attention.h"
#include "core/model/kv_cache.h"
#include "core/model/mla_attention.h"
#include "core/model/rms_norm.h"

namespace mla
{

struct DecoderLayer {
    torch::Tensor inputNorm, postNorm; ///< [d]
    std::variant<GqaBlock, MlaBlock> attention;
    torch::Tensor gate, up, down;             ///< [f, d], [f, d], [d, f]
    torch::Tensor gateBias, upBias, downBias; ///< undefined when absent
    double eps = 0;
};

/// Reads one layer's weights; nothing else is touched, so a model can be streamed.
Result<DecoderLayer> loadLayer(const Checkpoint& checkpoint, LayerIndex layer,
                               torch::Device device = torch::kCPU);

/// Post-`input_layernorm` states: what the attention of this layer sees. [B, T, d]
torch::Tensor attentionInput(const DecoderLayer& layer, const torch::Tensor& hidden);
/// Attention output after W_O for that input, whole sequences.
torch::Tensor attend(const DecoderLayer& layer, const torch::Tensor& input);
/// hidden + attention output, then the MLP block with its residual.
torch::Tensor finishLayer(const DecoderLayer& layer, const torch::Tensor& hidden,
                          const torch::Tensor& attentionOutput);

/// Embedding, final norm and output head.
struct DecoderEnds {
    torch::Tensor embedding; ///< [V, d]
    torch::Tensor finalNorm; ///< [d]
    torch::Tensor head;      ///< [V, d]; the same storage as `embedding` when tied
    double eps = 0;
    [[nodiscard]] torch::Tensor embed(const torch::Tensor& ids) const;     ///< [B, T] -> [B, T, d]
    [[nodiscard]] torch::Tensor logits(const torch::Tensor& hidden) const; ///< [.., d] -> [.., V]
};
Result<DecoderEnds> loadEnds(const Checkpoint& checkpoint, torch::Device device = torch::kCPU);

class Decoder
{
public:
    static Result<Decoder> load(const Checkpoint& checkpoint, torch::Device device = torch::kCPU);

    [[nodiscard]] const ModelConfig& config() const { return m_config; }
    [[nodiscard]] torch::Device device() const { return m_ends.embedding.device(); }
    [[nodiscard]] const DecoderEnds& ends() const { return m_ends; }

    [[nodiscard]] const DecoderLayer& layer(LayerIndex layer) const
    {
        return m_layers.at(static_cast<std::size_t>(layer.value));
    }
    /// Computes with `block` in place of the layer's own attention, as diagnostics do.
    void replaceAttention(LayerIndex layer, MlaBlock block)
    {
        m_layers.at(static_cast<std::size_t>(layer.value)).attention = std::move(block);
    }

    /// Last hidden states (before the final norm) of whole sequences: ids [B, T] -> [B, T, d].
    [[nodiscard]] torch::Tensor hiddenStates(const torch::Tensor& ids) const;
    /// Logits [B, T, V] of whole sequences.
    [[nodiscard]] torch::Tensor logits(const torch::Tensor& ids) const;

    [[nodiscard]] KvCache makeCache(std::int64_t batch, std::int64_t capacity) const;
    /// Logits [B, T, V] of the next T tokens after those in the cache; the cache then holds them.
    [[nodiscard]] torch::Tensor step(const torch::Tensor& ids, KvCache& cache) const;
    /// The same, last position only: [B, V]. Prefill of a prompt without a vocabulary-sized matrix.
    [[nodiscard]] torch::Tensor stepLast(const torch::Tensor& ids, KvCache& cache) const;

private:
    [[nodiscard]] torch::Tensor stepHidden(const torch::Tensor& ids, KvCache& cache) const;

    ModelConfig m_config;
    DecoderEnds m_ends;
    std::vector<DecoderLayer> m_layers;
};

} // namespace mla
