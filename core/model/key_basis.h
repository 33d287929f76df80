// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/torch.h"

namespace mla
{

/// How the block's keys map back to the source's head basis; fixed once converted. The
/// `partial-rope` objective and the residual diagnostics need it. Unknown (both undefined) in
/// drafts that TransMLA itself wrote.
struct KeyBasis {
    /// TransMLA [H, h, d_r]: pre-rope key of query head i = W_uk,i c + ropeMap_i k^R. Else
    /// undefined.
    torch::Tensor ropeMap;
    /// MHA2MLA [G, h] int64: dim of the source head at each place of [rotary; nope]. Else
    /// undefined.
    torch::Tensor permutation;
    /// `split` SVD: the first keyRank latent channels serve keys only, the rest values only; 0 =
    /// shared.
    int keyRank = 0;
};

} // namespace mla
