// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/export/shards.h"

#include <cstdio>

#include <nlohmann/json.hpp>

namespace mla
{

std::int64_t bytesOf(const SafetensorsWriter::Declared& tensor)
{
    auto bytes = static_cast<std::int64_t>(bytesPerElement(tensor.dtype));
    for (const std::int64_t size : tensor.shape)
        bytes *= size;
    return bytes;
}

std::vector<Shard> planShards(const std::vector<SafetensorsWriter::Declared>& tensors,
                              std::int64_t maxBytes)
{
    std::vector<Shard> shards(1);
    std::int64_t filled = 0;
    for (const SafetensorsWriter::Declared& tensor : tensors) {
        const std::int64_t bytes = bytesOf(tensor);
        if (maxBytes > 0 && filled > 0 && filled + bytes > maxBytes) {
            shards.push_back({{}, shards.back().end, shards.back().end});
            filled = 0;
        }
        filled += bytes;
        ++shards.back().end;
    }
    for (std::size_t i = 0; i < shards.size(); ++i) {
        char name[64];
        std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", i + 1, shards.size());
        shards[i].file = shards.size() == 1 ? "model.safetensors" : name;
    }
    return shards;
}

std::string shardIndex(const std::vector<SafetensorsWriter::Declared>& tensors,
                       const std::vector<Shard>& shards)
{
    std::int64_t total = 0;
    nlohmann::json map = nlohmann::json::object();
    for (const Shard& shard : shards)
        for (std::ptrdiff_t i = shard.first; i < shard.end; ++i) {
            const SafetensorsWriter::Declared& tensor = tensors[static_cast<std::size_t>(i)];
            total += bytesOf(tensor);
            map[tensor.name] = shard.file;
        }
    return nlohmann::json{{"metadata", {{"total_size", total}}}, {"weight_map", std::move(map)}}
               .dump(2) +
           "\n";
}

} // namespace mla
