// SPDX-License-Identifier: GPL-3.0-or-later
// Where a checkpoint's tensors lie: safetensors shards or a GGUF file, behind one interface. No
// torch here.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/checkpoint/safetensors.h"

namespace mla
{

/// One tensor as a reader of the checkpoint sees it, whatever its encoding.
struct StoredTensor {
    /// Hugging Face's shape; the dtype that holds the decoded numbers exactly: the stored one where
    /// each number stands for itself, F32 where scales belong to it. Begin and end are not used.
    TensorInfo info;
    std::string storage; ///< for people: "BF16", "Q4_1", "F8_E4M3, 128x128 scales"
    bool plain = true;   ///< the stored bytes are info.dtype's, row-major
    bool helper = false; ///< scales and the like: used up in reading other tensors
    std::string scales;  ///< the tensor of its scales, when it has one
};

class TensorStore
{
public:
    virtual ~TensorStore() = default;

    /// By Hugging Face's names.
    [[nodiscard]] virtual const std::map<std::string, StoredTensor>& tensors() const = 0;
    [[nodiscard]] virtual std::filesystem::path fileOf(const std::string& name) const = 0;
    /// The encoded bytes of one of tensors(), in the mapping.
    [[nodiscard]] virtual std::span<const std::byte> raw(const std::string& name) const = 0;
    /// Decodes one of tensors() into as many numbers as its shape has. Safe from several threads.
    virtual void readFloat32(const std::string& name, std::span<float> to) const = 0;
    /// What was noticed on opening.
    [[nodiscard]] virtual const std::vector<std::string>& warnings() const = 0;
};

} // namespace mla
