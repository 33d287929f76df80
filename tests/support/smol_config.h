// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/model_config.h"

namespace mla::test
{

/// SmolLM2-135M's attention: 30 layers, d = 576, G = 3 KV heads of h = 64, 2 G h = 384.
inline ModelConfig smolConfig()
{
    ModelConfig config;
    config.modelType = "llama";
    config.hiddenSize = 576;
    config.numHiddenLayers = 30;
    config.numAttentionHeads = 9;
    config.numKeyValueHeads = 3;
    config.headDim = 64;
    config.maxPositionEmbeddings = 8192;
    return config;
}

} // namespace mla::test
