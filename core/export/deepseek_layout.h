// SPDX-License-Identifier: GPL-3.0-or-later
// The `deepseek` layout: a draft as a checkpoint of the stock class DeepseekV2ForCausalLM, which
// Transformers, vLLM and SGLang load without code of ours.
#pragma once

#include <functional>
#include <optional>

#include "core/export/deepseek_plan.h"
#include "core/export/draft_directory.h"
#include "core/model/mla_attention.h"

namespace mla
{

/// A block with a latent norm and no biases under the stock names, with `rank` latent channels:
/// rotary rows as interleaved pairs, the score scale in q_proj, every query head with keys and
/// values of its own. Fewer channels of the block are filled up with zeros.
LayerTensors stockTensors(const MlaBlock& block, int rank);

/// Writes config.json, weights and tokenizer to `directory` (a staging folder). `layer` gives each
/// layer's block as stockTensors() takes it; `maxShardBytes` as in DraftContent.
Status writeDeepseekModel(const Checkpoint& draft, const DeepseekPlan& plan,
                          std::optional<DType> dtype, std::int64_t maxShardBytes,
                          const std::function<Result<MlaBlock>(LayerIndex)>& layer,
                          const std::filesystem::path& directory);

} // namespace mla
