// SPDX-License-Identifier: GPL-3.0-or-later
// A model on disk: a Hugging Face directory (config.json plus safetensors, single or sharded, plain
// or FP8) or a GGUF file. No torch here.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/base/result.h"
#include "core/checkpoint/model_config.h"
#include "core/checkpoint/safetensors.h"
#include "core/checkpoint/tensor_store.h"

namespace mla
{

class Checkpoint
{
public:
    /// `path`: a directory, a .gguf file, or a directory that holds one .gguf file and no
    /// config.json. Maps the files, checks their headers, and that each tensor the config asks for
    /// is there with the right shape; reads no weights. With an index, the index is the authority:
    /// a missing shard or tensor is an error that names it; a stray safetensors file is a notice in
    /// warnings().
    static Result<Checkpoint> open(const std::filesystem::path& path);

    /// The path it was opened with: of a .gguf file, the file.
    [[nodiscard]] const std::filesystem::path& directory() const { return m_directory; }
    /// tieWordEmbeddings is what tiedHead() found, which may differ from the file's flag.
    [[nodiscard]] const ModelConfig& config() const { return m_config; }
    /// config.json as it stands; of a GGUF file, one made from its metadata.
    [[nodiscard]] const nlohmann::json& configJson() const { return *m_configJson; }
    [[nodiscard]] const std::vector<std::string>& warnings() const { return m_warnings; }
    [[nodiscard]] bool has(const std::string& name) const;
    [[nodiscard]] std::vector<std::string> names() const; ///< sorted; Hugging Face's names
    /// Shape and the dtype that holds the tensor's numbers exactly. That is F32 for a quantised
    /// one: whoever writes it out again writes the decoded numbers. Begin and end are not used.
    Result<TensorInfo> info(const std::string& name) const;
    /// How it is stored, for people: "BF16", "Q4_1", "F8_E4M3, 128x128 scales".
    Result<std::string> storage(const std::string& name) const;
    /// True when bytes() gives the numbers as info() describes them, without decoding.
    [[nodiscard]] bool isPlain(const std::string& name) const;
    /// The name of the file that holds the tensor; empty for a name that is not there.
    [[nodiscard]] std::string fileOf(const std::string& name) const;
    /// Bytes in the file, without scales of their own tensor; 0 for a name that is not there.
    [[nodiscard]] std::int64_t storedBytes(const std::string& name) const;
    /// Only of a plain tensor.
    Result<std::span<const std::byte>> bytes(const std::string& name) const;
    /// Decodes a floating-point tensor, however it is stored, into as many numbers as its shape
    /// has. NaN and infinities come through: see requireFinite(). Safe from several threads.
    Status readFloat32(const std::string& name, std::span<float> to) const;
    /// BadInput that names file, tensor, the first place and the count when `numbers`, read from
    /// tensor `name`, hold NaN or infinities.
    Status requireFinite(const std::string& name, std::span<const float> numbers) const;
    [[nodiscard]] std::int64_t parameterCount() const; ///< elements of all tensors, tied head once
    /// True when the output head is the embedding: resolved from flag *and* tensors.
    [[nodiscard]] bool tiedHead() const { return m_tiedHead; }
    /// SHA-256 over sorted (name, storage, shape) and the tensors' bytes sampled at fixed places:
    /// identifies a checkpoint without reading all of it.
    Result<std::string> fingerprint() const;

private:
    Status openDirectory();
    Status openGguf(const std::filesystem::path& file);
    Result<const StoredTensor*> find(const std::string& name) const;
    [[nodiscard]] Status checkTensors() const;
    void resolveHead();
    void noticeUnused();

    std::filesystem::path m_directory;
    ModelConfig m_config;
    std::shared_ptr<const nlohmann::json> m_configJson; ///< shared: json is incomplete here
    std::unique_ptr<const TensorStore> m_store;
    std::string m_configName; ///< what to call the config in messages
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
