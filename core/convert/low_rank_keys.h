// SPDX-License-Identifier: GPL-3.0-or-later
// The low-rank half of a conversion alone: the original's attention with the keys and values that a
// draft's latent can give, every frequency pair rotary as it was (design section 5, error sources).
#pragma once

#include "core/model/gqa_attention.h"
#include "core/model/key_basis.h"
#include "core/model/mla_attention.h"

namespace mla
{

/// `original` with the pre-RoPE keys and the values of `converted`, a converter's result for it, in
/// the original's head basis: W_k = the rotary rows as they are beside W_uk W_dkv, W_v = W_uv
/// W_dkv, biases likewise. `basis` must know the block's keys (KeyBasis: one member defined).
/// Products in fp64; weights fp32 on the device of `original`.
GqaBlock withLowRankKeysValues(const GqaBlock& original, const MlaBlock& converted,
                               const KeyBasis& basis);

} // namespace mla
