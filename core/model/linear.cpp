// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/linear.h"

#include "core/model/thin_product.h"

namespace mla
{
namespace
{

constexpr std::int64_t kThinRows = 32; // more are BLAS's business

bool isThin(const torch::Tensor& x, const torch::Tensor& weight)
{
    return x.is_cpu() && x.scalar_type() == torch::kFloat32 && weight.dim() == 2 &&
           weight.is_contiguous() && x.numel() <= kThinRows * weight.size(1) &&
           (weight.scalar_type() == torch::kFloat32 || weight.scalar_type() == torch::kBFloat16) &&
           !(torch::GradMode::is_enabled() && (x.requires_grad() || weight.requires_grad()));
}

torch::Tensor thinLinear(const torch::Tensor& x, const torch::Tensor& weight)
{
    const torch::Tensor rows = x.contiguous();
    const std::int64_t outputs = weight.size(0), inputs = weight.size(1);
    std::vector<std::int64_t> shape = x.sizes().vec();
    shape.back() = outputs;
    torch::Tensor y = torch::empty(shape, x.options());
    const std::int64_t count = inputs > 0 ? rows.numel() / inputs : 0;
    const auto run = [&](const auto* w) {
        thinProduct(rows.const_data_ptr<float>(), count, w, outputs, inputs,
                    y.mutable_data_ptr<float>());
    };
    if (weight.scalar_type() == torch::kFloat32)
        run(weight.const_data_ptr<float>());
    else
        run(static_cast<const Bf16Bits*>(weight.const_data_ptr()));
    return y;
}

} // namespace

torch::Tensor linearMap(const torch::Tensor& x, const torch::Tensor& weight,
                        const torch::Tensor& bias)
{
    if (!isThin(x, weight))
        return torch::linear(x, weight.to(x.scalar_type()), bias);
    torch::Tensor y = thinLinear(x, weight);
    return bias.defined() ? y.add_(bias) : y;
}

torch::Tensor keptNarrow(const torch::Tensor& weight)
{
    if (!weight.is_cpu() || weight.scalar_type() != torch::kFloat32 || weight.dim() != 2)
        return weight;
    const torch::Tensor narrow = weight.to(torch::kBFloat16);
    return narrow.to(torch::kFloat32).equal(weight) ? narrow : weight;
}

torch::TensorOptions computeOptions(const torch::Tensor& weight)
{
    const torch::TensorOptions options = weight.options();
    return weight.scalar_type() == torch::kBFloat16 ? options.dtype(torch::kFloat32) : options;
}

} // namespace mla
