// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/mla_tensors.h"

namespace mla
{

namespace
{

using Shape = std::vector<std::int64_t>;

class Tensors
{
public:
    void linear(const std::string& name, std::int64_t out, std::int64_t in, bool bias)
    {
        m_all.push_back({name + ".weight", {out, in}});
        if (bias)
            m_all.push_back({name + ".bias", {out}});
    }
    void add(const std::string& name, Shape shape) { m_all.push_back({name, std::move(shape)}); }
    std::vector<ExpectedTensor> take() { return std::move(m_all); }

private:
    std::vector<ExpectedTensor> m_all;
};

/// Ours and TransMLA's, which names its tensors as DeepSeek does.
void deepseekTensors(const ModelConfig& config, std::int64_t rank, Tensors& tensors)
{
    const MlaConfig& mla = *config.mla;
    const std::int64_t hidden = config.hiddenSize, heads = config.numAttentionHeads;
    const std::int64_t query = heads * (mla.qkNopeHeadDim + mla.qkRopeHeadDim);
    if (mla.queryRank > 0) {
        tensors.linear("q_a_proj", mla.queryRank, hidden, false);
        tensors.linear("q_b_proj", query, mla.queryRank, mla.queryBias);
    } else {
        tensors.linear("q_proj", query, hidden, mla.queryBias);
    }
    tensors.linear("kv_a_proj_with_mqa", rank + std::int64_t{mla.ropeKeyHeads} * mla.qkRopeHeadDim,
                   hidden, mla.kvDownBias);
    if (mla.latentNorm)
        tensors.add("kv_a_layernorm.weight", {rank});
    tensors.linear("kv_b_proj", std::int64_t{mla.kvUpHeads} * (mla.qkNopeHeadDim + mla.vHeadDim),
                   rank, mla.kvUpBias);
    if (config.qkNorm)
        for (const char* name : {"q_norm.weight", "k_norm.weight"})
            tensors.add(name, {mla.kvUpHeads, mla.qkNopeHeadDim + mla.qkRopeHeadDim});
}

void mha2MlaTensors(const ModelConfig& config, std::int64_t rank, Tensors& tensors)
{
    const MlaConfig& mla = *config.mla;
    const std::int64_t hidden = config.hiddenSize, groups = mla.kvUpHeads;
    tensors.linear("q_proj", std::int64_t{config.numAttentionHeads} * config.headDim, hidden,
                   mla.queryBias);
    tensors.linear("k_r_proj", groups * mla.qkRopeHeadDim, hidden, mla.kvUpBias);
    std::int64_t up = rank;
    if (mla.splitLatent) {
        up = rank / 2;
        tensors.linear("kv_proj.down_k", up, hidden, false);
        tensors.linear("kv_proj.down_v", up, hidden, false);
    } else {
        tensors.linear("kv_proj.down_kv", rank, hidden, false);
    }
    tensors.linear("kv_proj.up_k", groups * mla.qkNopeHeadDim, up, mla.kvUpBias);
    tensors.linear("kv_proj.up_v", groups * mla.vHeadDim, up, mla.kvUpBias);
}

} // namespace

std::vector<ExpectedTensor> mlaTensors(const ModelConfig& config, int layer)
{
    const MlaConfig& mla = *config.mla;
    const std::int64_t rank = mla.latentRank.at(static_cast<std::size_t>(layer));
    Tensors tensors;
    if (mla.layout == DraftLayout::Mha2Mla)
        mha2MlaTensors(config, rank, tensors);
    else
        deepseekTensors(config, rank, tensors);
    tensors.linear("o_proj", config.hiddenSize,
                   std::int64_t{config.numAttentionHeads} * mla.vHeadDim, config.outputBias);
    return tensors.take();
}

} // namespace mla
