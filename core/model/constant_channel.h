// SPDX-License-Identifier: GPL-3.0-or-later
// The block of a draft as classes without biases and with a latent RMSNorm can hold it (design
// section 9, "Stock DeepSeek without biases"). One more latent channel carries a constant C far
// above |c|, which makes the norm nearly linear:
//   c' = [W_dkv x ; C w.x]                       w.x ~ 1, so that |c'| ~ C
//   norm(c') = [c ; 1] (1 + O(|c|^2 / 2 C^2))    weights C / sqrt(r'), and 1 / sqrt(r') of the last
// The 1 carries what biases do after the norm (values, nope keys); b_q and b_kr, which do not pass
// the norm, become the rank-one terms b w^T of W_q and W_kr.
#pragma once

#include "core/base/result.h"
#include "core/base/torch.h"
#include "core/model/mla_attention.h"

namespace mla
{

struct ConstantChannel {
    torch::Tensor functional; ///< w [d]
    double value = 0;         ///< C
    double spread = 0;        ///< rms of w.x - 1 over the inputs that w was fitted to
};

/// |c| is at least that many times smaller than C over the calibration inputs.
constexpr double kConstantMargin = 30;

/// Fits w to the block's post-norm inputs x [N, T, d] (mask [N, T]) by least squares. C is
/// kConstantMargin max |W_dkv x|, and so large that any eps of the norm up to `eps` changes less
/// than 1e-6 of the latent: stacks that differ in it agree.
ConstantChannel fitConstantChannel(const MlaBlock& block, const torch::Tensor& x,
                                   const torch::Tensor& mask, double eps);

/// A bias on nope keys adds the same to every score of a query. Its softmax does not see that, so
/// it is dropped unless the keys themselves matter, as they do to the partial-rope objective.
enum class NopeKeyBias { Drop, Carry };

/// `block` with rank r + 1, a latent norm and no biases; b_o becomes a bias of values and so needs
/// a W_O whose range contains it (BadInput otherwise). The block must have no latent norm and no
/// QK-norm.
Result<MlaBlock> withConstantChannel(const MlaBlock& block, const ConstantChannel& channel,
                                     NopeKeyBias keyBias);

/// The block with `heads` up-projections, each shared one repeated: the same function.
MlaBlock withUpHeads(MlaBlock block, int heads);

} // namespace mla
