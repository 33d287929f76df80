// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/refine/objective.h"

namespace mla
{
namespace
{

using torch::Tensor;

class Functional final : public Objective
{
public:
    explicit Functional(double scale) : m_scale(scale) {}
    [[nodiscard]] Tensor loss(const MlaBlock& block, const RefineBatch& batch) const override
    {
        const Tensor mask = batch.mask.to(batch.input.scalar_type());
        const Tensor squared = (attend(block, batch.input) - batch.target).pow(2).sum(-1);
        return ((squared * mask).sum(1) / mask.sum(1)).mean();
    }
    [[nodiscard]] double scale() const override { return m_scale; }

private:
    double m_scale;
};

class PartialRope final : public Objective
{
public:
    PartialRope(const GqaBlock& original, const KeyBasis& basis)
        : m_original(original), m_basis(basis)
    {
    }
    [[nodiscard]] Tensor loss(const MlaBlock& block, const RefineBatch& batch) const override
    {
        const Tensor mask =
            batch.mask.to(batch.input.scalar_type()).unsqueeze(1).unsqueeze(-1); // [B, 1, T, 1]
        const auto [keys, values] = targets(batch.input);
        const MlaKeysValues kv = keysValues(block, batch.input);
        const auto relative = [&](const Tensor& estimate, const Tensor& target) {
            return ((estimate - target) * mask).pow(2).sum() / (target * mask).pow(2).sum();
        };
        return relative(estimatedKeys(kv), keys) + relative(kv.value, values);
    }
    [[nodiscard]] double scale() const override { return 1.0; } // already relative

private:
    /// Pre-RoPE keys and values of the original, in the basis and head count of the estimates.
    [[nodiscard]] std::pair<Tensor, Tensor> targets(const Tensor& input) const
    {
        const torch::NoGradGuard noGrad;
        const GqaProjections p = project(m_original, input);
        if (m_basis.ropeMap.defined())
            return {p.k.repeat_interleave(m_original.group(), 1),
                    p.v.repeat_interleave(m_original.group(), 1)};
        const Tensor index = m_basis.permutation.to(p.k.device())
                                 .view({1, m_original.kvHeads, 1, m_original.headDim})
                                 .expand_as(p.k);
        return {p.k.gather(-1, index), p.v};
    }
    /// TransMLA: nope keys plus the fixed map of the rotary key. MHA2MLA: [rotary; nope].
    [[nodiscard]] Tensor estimatedKeys(const MlaKeysValues& kv) const
    {
        if (!m_basis.ropeMap.defined())
            return torch::cat({kv.rotary, kv.nope}, -1);
        const Tensor fromRotary = torch::matmul(
            kv.rotary, m_basis.ropeMap.to(kv.rotary.device()).transpose(1, 2)); // [B, H, T, h]
        return kv.nope.size(-1) == 0 ? fromRotary : kv.nope + fromRotary;
    }

    const GqaBlock& m_original;
    const KeyBasis& m_basis;
};

} // namespace

std::unique_ptr<Objective> functionalObjective(const Tensor& targets, const Tensor& mask)
{
    const Tensor energy = targets.pow(2).sum(-1) * mask.to(targets.scalar_type());
    return std::make_unique<Functional>(energy.sum().item<double>() / mask.sum().item<double>());
}

std::unique_ptr<Objective> partialRopeObjective(const GqaBlock& original, const KeyBasis& basis)
{
    return std::make_unique<PartialRope>(original, basis);
}

} // namespace mla
