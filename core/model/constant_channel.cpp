// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/constant_channel.h"

#include <algorithm>
#include <cmath>

namespace mla
{
namespace
{

using torch::Tensor;

constexpr double kDamping = 1e-5;  // of the mean diagonal, so that w stays small where x is flat
constexpr double kEpsShare = 1e-6; // of the latent that eps may change
constexpr double kBiasResidual = 1e-4; // of b_o that W_O may miss

Tensor f64(const Tensor& t)
{
    return t.to(torch::kFloat64);
}

/// rows + bias w^T, or the rows where there is no bias.
Tensor withRankOne(const Tensor& rows, const Tensor& bias, const Tensor& functional)
{
    return bias.defined() ? f64(rows).addr(f64(bias), f64(functional)).to(rows.scalar_type())
                          : rows;
}

/// What is added after `up`, [rows]: its own bias and what the latent's bias becomes there.
Tensor biasAfter(const Tensor& up, const Tensor& latentBias, const Tensor& bias)
{
    Tensor sum = torch::zeros({up.size(0)}, up.options().dtype(torch::kFloat64));
    if (latentBias.defined())
        sum = sum + torch::mv(f64(up), f64(latentBias));
    if (bias.defined())
        sum = sum + f64(bias);
    return sum;
}

/// The value bias [H d_v] that W_O turns into b_o: probabilities sum to one.
Result<Tensor> outputBiasAsValues(const MlaBlock& block)
{
    const Tensor wo = f64(block.wo).cpu(), bo = f64(block.bo).cpu();
    const Tensor values =
        std::get<0>(torch::linalg_lstsq(wo, bo.unsqueeze(1), std::nullopt, "gelsd")).squeeze(1);
    const double missed = (torch::mv(wo, values) - bo).norm().item<double>();
    if (!(missed <= kBiasResidual * bo.norm().item<double>()))
        return badInput("o_proj.bias is not in the range of o_proj.weight, so no bias of values "
                        "can stand in for it");
    return values.to(block.wo.device());
}

Tensor withColumn(const Tensor& rows, const Tensor& column)
{
    return torch::cat({rows, column.to(rows.scalar_type()).unsqueeze(1)}, 1);
}

} // namespace

ConstantChannel fitConstantChannel(const MlaBlock& block, const Tensor& x, const Tensor& mask,
                                   double eps)
{
    const torch::NoGradGuard noGrad;
    const std::int64_t hidden = x.size(-1);
    const auto exact = x.options().dtype(torch::kFloat64);
    Tensor gram = torch::zeros({hidden, hidden}, exact), sum = torch::zeros({hidden}, exact);
    double largest = 0;
    for (std::int64_t n = 0; n < x.size(0); ++n) {
        const Tensor rows = x[n].index({mask[n].to(x.device())});
        if (rows.size(0) == 0)
            continue;
        gram.addmm_(f64(rows).t(), f64(rows));
        sum += f64(rows).sum(0);
        largest =
            std::max(largest, torch::linear(rows, block.wdkv).norm(2, {1}).max().item<double>());
    }
    const double count = std::max<double>(1, static_cast<double>(mask.sum().item<std::int64_t>()));
    const Tensor damped =
        gram + kDamping * gram.diagonal().mean() * torch::eye(hidden, gram.options());
    const Tensor w = torch::linalg_solve(damped, sum.unsqueeze(1), true).squeeze(1);
    ConstantChannel channel;
    channel.functional = w.to(torch::kFloat32);
    // mean (w.x - 1)^2 from the sums alone
    const double squared = torch::dot(w, torch::mv(gram, w)).item<double>() / count -
                           2 * torch::dot(w, sum).item<double>() / count + 1;
    channel.spread = std::sqrt(std::max(0.0, squared));
    const double forEps = std::sqrt((block.rank + 1) * eps / (2 * kEpsShare));
    channel.value = std::max(kConstantMargin * largest, forEps);
    return channel;
}

MlaBlock withUpHeads(MlaBlock block, int heads)
{
    const auto repeated = [&](Tensor& rows, int dims) {
        if (!rows.defined() || rows.numel() == 0)
            return;
        std::vector<std::int64_t> perHead = rows.sizes().vec();
        perHead[0] = dims;
        perHead.insert(perHead.begin(), block.upHeads);
        rows = rows.view(perHead)
                   .repeat_interleave(heads / block.upHeads, 0)
                   .flatten(0, 1)
                   .contiguous();
    };
    if (heads == block.upHeads)
        return block;
    repeated(block.wuk, block.nopeDim);
    repeated(block.buk, block.nopeDim);
    repeated(block.wuv, block.vDim);
    repeated(block.buv, block.vDim);
    block.upHeads = heads;
    return block;
}

Result<MlaBlock> withConstantChannel(const MlaBlock& block, const ConstantChannel& channel,
                                     NopeKeyBias keyBias)
{
    const torch::NoGradGuard noGrad;
    MlaBlock out = block.bo.defined() ? withUpHeads(block, block.heads) : block;
    const Tensor w = channel.functional.to(block.wdkv.device());
    Tensor values = biasAfter(out.wuv, out.bdkv, out.buv);
    if (out.bo.defined()) {
        MLA_TRY(folded, outputBiasAsValues(out));
        values = values + folded;
    }
    Tensor keys = biasAfter(out.wuk, out.bdkv, out.buk);
    if (keyBias == NopeKeyBias::Drop)
        keys = torch::zeros_like(keys);
    out.wuk = withColumn(out.wuk, keys);
    out.wuv = withColumn(out.wuv, values);
    out.wdkv =
        torch::cat({out.wdkv, (f64(w) * channel.value).to(out.wdkv.scalar_type()).unsqueeze(0)}, 0);
    out.wkr = withRankOne(out.wkr, out.bkr, w);
    out.wq = withRankOne(out.wq, out.bq, w);
    out.rank = block.rank + 1;
    const double root = std::sqrt(static_cast<double>(out.rank));
    out.latentNorm = torch::full({out.rank}, channel.value / root, out.wdkv.options());
    out.latentNorm[out.rank - 1] = 1 / root;
    for (Tensor* bias : {&out.bq, &out.bdkv, &out.bkr, &out.buk, &out.buv, &out.bo})
        *bias = Tensor();
    return out;
}

} // namespace mla
