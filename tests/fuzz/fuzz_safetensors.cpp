// SPDX-License-Identifier: GPL-3.0-or-later
#include <cstdlib>

#include "core/checkpoint/safetensors_header.h"

using namespace mla;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
    const auto text = headerText(file, "input");
    if (!text)
        return 0;
    const std::uint64_t dataBytes = size - safetensorsLengthBytes - text.value().size();
    const auto header = parseSafetensorsHeader(text.value(), dataBytes, "input");
    if (!header)
        return 0;
    for (const auto& [name, info] : header.value().tensors)
        if (info.end > dataBytes || info.end - info.begin != tensorBytes(info.dtype, info.shape))
            std::abort(); // what an accepted header promises
    return 0;
}
