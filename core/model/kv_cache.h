// SPDX-License-Identifier: GPL-3.0-or-later
// Static cache: two tensors a layer, allocated once; rolling back moves a number.
#pragma once

#include <vector>

#include "core/base/torch.h"

namespace mla
{

/// What one layer caches. GQA: rotated keys [B, G, C, h] and values [B, G, C, h].
/// MLA: the latent [B, 1, C, r] and the rotated rotary keys [B, n_r, C, d_r], with QK-norm
/// [B, n_r, C, d_r + 1]: the last element is the key's 1 / rms.
struct LayerCache {
    torch::Tensor first, second;
};

class KvCache
{
public:
    KvCache() = default;
    KvCache(std::vector<LayerCache> layers, std::int64_t capacity)
        : m_layers(std::move(layers)), m_capacity(capacity)
    {
    }
    [[nodiscard]] std::int64_t length() const { return m_length; } ///< tokens held
    [[nodiscard]] std::int64_t capacity() const { return m_capacity; }
    LayerCache& layer(std::size_t index) { return m_layers[index]; }
    /// Makes `tokens` more positions current; the layers have written them.
    void advance(std::int64_t tokens) { m_length += tokens; }
    /// Forgets everything from position `length` on (speculative rejection).
    void rollback(std::int64_t length) { m_length = std::min(m_length, length); }

private:
    std::vector<LayerCache> m_layers;
    std::int64_t m_capacity = 0, m_length = 0;
};

} // namespace mla
