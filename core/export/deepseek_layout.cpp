// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/export/deepseek_layout.h"

#include <nlohmann/json.hpp>

#include <cmath>

#include "core/base/file.h"
#include "core/model/constant_channel.h"
#include "core/model/layer_loading.h"

namespace mla
{
namespace
{

using torch::Tensor;

/// Half-split rotary dims (a0 a1 .. b0 b1 ..) as pairs (a0 b0 a1 b1 ..); rows [heads, d_r, d].
Tensor interleaved(const Tensor& rows)
{
    return rows.view({rows.size(0), 2, -1, rows.size(2)}).transpose(1, 2).reshape(rows.sizes());
}

/// The block with more latent channels, all zero. The norm's mean is over all of them, so its
/// weights make up for that (eps, which would too, is nothing beside the latent).
MlaBlock withRank(MlaBlock block, int rank)
{
    const int more = rank - block.rank;
    if (more == 0)
        return block;
    const auto columns = [&](const Tensor& rows) {
        return torch::cat({rows, rows.new_zeros({rows.size(0), more})}, 1);
    };
    const double share = std::sqrt(static_cast<double>(block.rank) / rank);
    block.wdkv = torch::cat({block.wdkv, block.wdkv.new_zeros({more, block.wdkv.size(1)})}, 0);
    block.latentNorm = torch::cat({block.latentNorm * share, block.latentNorm.new_ones({more})});
    block.wuk = columns(block.wuk);
    block.wuv = columns(block.wuv);
    block.rank = rank;
    return block;
}

} // namespace

LayerTensors stockTensors(const MlaBlock& block, int rank)
{
    const torch::NoGradGuard noGrad;
    MlaBlock stock = withRank(withUpHeads(block, block.heads), rank);
    const std::int64_t width = stock.nopeDim + stock.ropeDim;
    const Tensor queries = stock.wq.view({stock.heads, width, -1}) *
                           (stock.scale * std::sqrt(static_cast<double>(width)));
    stock.wq =
        torch::cat({queries.narrow(1, 0, stock.nopeDim),
                    interleaved(queries.narrow(1, stock.nopeDim, stock.ropeDim).contiguous())},
                   1)
            .flatten(0, 1);
    stock.wkr = interleaved(stock.wkr.contiguous().unsqueeze(0)).squeeze(0);
    return draftTensors(stock);
}

Status writeDeepseekModel(const Checkpoint& draft, const DeepseekPlan& plan,
                          std::optional<DType> dtype, std::int64_t maxShardBytes,
                          const std::function<Result<MlaBlock>(LayerIndex)>& layer,
                          const std::filesystem::path& directory)
{
    nlohmann::json config = deepseekConfig(plan.model, draft.configJson());
    if (dtype)
        config["dtype"] = config["torch_dtype"] = configName(*dtype);
    MLA_CHECK(writeFileAtomically(directory / "config.json", config.dump(2) + "\n"));
    DraftContent content{draft, plan.model, {}, {}, {}, {}, {}, dtype, maxShardBytes};
    const int rank = plan.model.mla->latentRank.front();
    content.layer = [&layer, rank](LayerIndex index) -> Result<std::optional<LayerTensors>> {
        MLA_TRY(block, layer(index));
        return std::optional(stockTensors(block, rank));
    };
    MLA_CHECK(writeWeights(content, directory));
    return copyCompanions(draft.directory(), directory);
}

} // namespace mla
