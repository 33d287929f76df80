// SPDX-License-Identifier: GPL-3.0-or-later
#include <cstdlib>

#include "core/base/json.h"
#include "core/checkpoint/model_config.h"
#include "core/checkpoint/quantization.h"

using namespace mla;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const auto json = parseJson({reinterpret_cast<const char*>(data), size}, "input");
    if (!json)
        return 0;
    const auto config = parseModelConfig(json.value(), "input");
    if (!config)
        return 0;
    if (config.value().numHiddenLayers < 1 || config.value().headDim % 2 != 0)
        std::abort(); // what an accepted config promises
    if (config.value().headDim < 4096)
        (void)inverseFrequencies(config.value().rope, config.value().headDim);
    return 0;
}
