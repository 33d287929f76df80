// SPDX-License-Identifier: GPL-3.0-or-later
// A Hugging Face model directory: config.json plus safetensors, single or sharded. No torch here.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/checkpoint/model_config.h"
#include "core/checkpoint/safetensors.h"

namespace mla
{

class Checkpoint
{
public:
    /// Maps every shard and checks that each tensor the config asks for is there with the right
    /// shape. With an index, the index is the authority: a missing shard or tensor is an error that
    /// names it; a stray safetensors file is a notice in warnings().
    static Result<Checkpoint> open(const std::filesystem::path& directory);

    [[nodiscard]] const std::filesystem::path& directory() const { return m_directory; }
    /// tieWordEmbeddings is what tiedHead() found, which may differ from the file's flag.
    [[nodiscard]] const ModelConfig& config() const { return m_config; }
    [[nodiscard]] const std::vector<std::string>& warnings() const { return m_warnings; }
    [[nodiscard]] bool has(const std::string& name) const { return m_where.contains(name); }
    [[nodiscard]] std::vector<std::string> names() const; ///< sorted
    Result<TensorInfo> info(const std::string& name) const;
    Result<std::span<const std::byte>> bytes(const std::string& name) const;
    [[nodiscard]] std::int64_t parameterCount() const; ///< elements of all tensors, tied head once
    /// True when the output head is the embedding: resolved from flag *and* tensors.
    [[nodiscard]] bool tiedHead() const { return m_tiedHead; }
    /// SHA-256 over sorted (name, dtype, shape) and the tensors' bytes sampled at fixed places:
    /// identifies a checkpoint without reading all of it.
    Result<std::string> fingerprint() const;

private:
    Status openShards();
    void noticeStray(const std::map<std::string, std::size_t>& opened, bool sharded);
    [[nodiscard]] Status checkTensors() const;
    Status resolveHead();
    void noticeUnused();

    std::filesystem::path m_directory;
    ModelConfig m_config;
    std::vector<SafetensorsFile> m_files;
    std::map<std::string, std::size_t> m_where; ///< tensor -> index into m_files
    std::vector<std::string> m_warnings;
    bool m_tiedHead = false;
};

/// Name and shape of every tensor a config asks for ("lm_head.weight" only when untied).
struct ExpectedTensor {
    std::string name;
    std::vector<std::int64_t> shape;
};
[[nodiscard]] std::vector<ExpectedTensor> expectedTensors(const ModelConfig& config);

} // namespace mla
