// SPDX-License-Identifier: GPL-3.0-or-later
// The weights of a GGUF file under Hugging Face's names, in its order of rows.
#pragma once

#include <memory>

#include "core/base/result.h"
#include "core/checkpoint/gguf.h"
#include "core/checkpoint/model_config.h"
#include "core/checkpoint/tensor_store.h"

namespace mla
{

/// `config` tells the heads: llama files hold the rows of q and k so that the two halves of a
/// rotary pair are neighbours, which is undone on reading; qwen2 and qwen3 files do not.
Result<std::unique_ptr<TensorStore>> openGgufStore(const GgufFile& file, const ModelConfig& config);

} // namespace mla
