// SPDX-License-Identifier: GPL-3.0-or-later
// The weights of a Hugging Face directory: safetensors, single or sharded, plain or FP8.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "core/base/result.h"
#include "core/checkpoint/quantization.h"
#include "core/checkpoint/tensor_store.h"

namespace mla
{

/// Maps every shard and checks its header. With an index, the index is the authority: a missing
/// shard or tensor is an error that names it, a stray safetensors file a warning. Of an FP8
/// checkpoint every F8_E4M3 weight must have its scales, of the right shape.
Result<std::unique_ptr<TensorStore>> openShards(const std::filesystem::path& directory,
                                                const std::optional<Fp8Quantization>& quantization);

} // namespace mla
