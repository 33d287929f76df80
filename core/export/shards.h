// SPDX-License-Identifier: GPL-3.0-or-later
// Weights in several files, as Hugging Face names and lists them. No torch here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/checkpoint/safetensors.h"

namespace mla
{

inline constexpr auto kShardIndex = "model.safetensors.index.json";

/// One file, and the tensors it holds: [first, end) of the declared ones.
struct Shard {
    std::string file; ///< "model.safetensors", or "model-00001-of-00003.safetensors"
    std::ptrdiff_t first = 0, end = 0;
};

[[nodiscard]] std::int64_t bytesOf(const SafetensorsWriter::Declared& tensor);

/// Fills files in order up to `maxBytes` of tensors each; a larger tensor has a file of its own.
/// 0 = everything in one file.
[[nodiscard]] std::vector<Shard> planShards(const std::vector<SafetensorsWriter::Declared>& tensors,
                                            std::int64_t maxBytes);

/// The index: {metadata {total_size}, weight_map {tensor: file}}.
[[nodiscard]] std::string shardIndex(const std::vector<SafetensorsWriter::Declared>& tensors,
                                     const std::vector<Shard>& shards);

} // namespace mla
