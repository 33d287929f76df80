// SPDX-License-Identifier: GPL-3.0-or-later
// A GGUF file's metadata and names in Hugging Face's terms. No torch here.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "core/base/result.h"
#include "core/checkpoint/gguf.h"

namespace mla
{

/// The config.json that a GGUF file of architecture llama, qwen2 or qwen3 stands for, for
/// parseModelConfig(). What the file does not say, the family's defaults say; what this program
/// does not follow is refused by key.
Result<nlohmann::json> ggufConfig(const GgufFile& file);

/// "blk.3.attn_q.weight" -> "model.layers.3.self_attn.q_proj.weight"; a name without a counterpart
/// stays as it is.
[[nodiscard]] std::string hfTensorName(const std::string& ggufName);

/// Name of the tensor of llama3 rope's divisors of the frequencies, fp32 [head_dim / 2].
constexpr const char* ropeFactorsName = "rope_freqs.weight";

} // namespace mla
