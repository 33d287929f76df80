// SPDX-License-Identifier: GPL-3.0-or-later
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "core/checkpoint/gguf.h"
#include "core/checkpoint/gguf_config.h"
#include "core/checkpoint/model_config.h"
#include "tests/fuzz/memory_file.h"

using namespace mla;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const test::MemoryFile input(data, size);
    const auto file = GgufFile::open(input.path());
    if (!file)
        return 0;
    const GgufMetadata& metadata = file.value().metadata();
    for (const auto& [key, value] : metadata.values()) {
        (void)metadata.text(key);
        (void)metadata.boolean(key);
        (void)metadata.integer(key);
        (void)metadata.number(key);
        (void)metadata.texts(key);
        (void)metadata.integers(key);
        (void)metadata.numbers(key);
    }
    for (const auto& [name, tensor] : file.value().tensors()) {
        const std::uint64_t bytes = file.value().bytes(name).value().size();
        if (bytes > size || bytes != tensor.end - tensor.begin)
            std::abort(); // what an accepted header promises
        std::uint64_t count = bytes / traitsOf(tensor.type).blockBytes;
        count *= traitsOf(tensor.type).blockElements;
        if (count > 4096)
            continue;
        std::vector<float> numbers(count);
        decodeGgml(tensor.type, file.value().bytes(name).value(), numbers);
    }
    if (const auto json = ggufConfig(file.value()))
        (void)parseModelConfig(json.value(), "input");
    return 0;
}
