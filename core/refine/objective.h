// SPDX-License-Identifier: GPL-3.0-or-later
// What a layer is trained to match (design section 6). One objective a class.
#pragma once

#include <memory>
#include <string>

#include "core/base/result.h"
#include "core/base/torch.h"
#include "core/model/gqa_attention.h"
#include "core/model/key_basis.h"
#include "core/model/mla_attention.h"

namespace mla
{

/// A batch of calibration sequences of one layer.
struct RefineBatch {
    torch::Tensor input;  ///< [B, T, d]
    torch::Tensor target; ///< [B, T, d] the original's attention output
    torch::Tensor mask;   ///< [B, T] bool
};

class Objective
{
public:
    virtual ~Objective() = default;
    /// The loss as it is reported; a scalar, differentiable in the block's trainable tensors.
    [[nodiscard]] virtual torch::Tensor loss(const MlaBlock& block,
                                             const RefineBatch& batch) const = 0;
    /// What the reported loss is divided by before it is optimised, so that clipping and eps mean
    /// the same in every layer.
    [[nodiscard]] virtual double scale() const = 0;
};

/// `functional`: mean over the batch of |M (A_mla - A_orig)|^2 / sum_t M, paper section 3.
/// scale = mean |A_orig|^2 per valid token of `targets` [N, T, d].
std::unique_ptr<Objective> functionalObjective(const torch::Tensor& targets,
                                               const torch::Tensor& mask);

/// `partial-rope`, our reading of the paper's converter-local baseline:
/// |K^ - K|^2 / |K|^2 + |V^ - V|^2 / |V|^2 on pre-RoPE keys in the original head basis and values.
/// The query projection gets no gradient. `basis` maps the block's keys back.
std::unique_ptr<Objective> partialRopeObjective(const GqaBlock& original, const KeyBasis& basis);

} // namespace mla
