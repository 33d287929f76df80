// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "core/base/json.h"
#include "core/base/sha256.h"
#include "core/checkpoint/gguf_config.h"
#include "core/checkpoint/gguf_store.h"
#include "core/checkpoint/mla_tensors.h"
#include "core/checkpoint/quantization.h"
#include "core/checkpoint/shard_store.h"
#include "core/checkpoint/tensor_decode.h"
#include "core/checkpoint/text_list.h"

namespace mla
{

namespace fs = std::filesystem;

namespace
{

constexpr const char* embeddingName = "model.embed_tokens.weight";
constexpr const char* headName = "lm_head.weight";

/// Buffers that older versions saved and that follow from the config.
bool isDerived(const std::string& name)
{
    return name.ends_with(".rotary_emb.inv_freq");
}

} // namespace

std::vector<ExpectedTensor> expectedTensors(const ModelConfig& config)
{
    const std::int64_t hidden = config.hiddenSize;
    const std::int64_t heads = config.numAttentionHeads;
    const std::int64_t groups = config.numKeyValueHeads;
    const std::int64_t headDim = config.headDim;
    std::vector<ExpectedTensor> tensors = {{embeddingName, {config.vocabSize, hidden}}};
    const auto linear = [&](const std::string& name, std::int64_t out, std::int64_t in, bool bias) {
        tensors.push_back({name + ".weight", {out, in}});
        if (bias)
            tensors.push_back({name + ".bias", {out}});
    };
    for (int layer = 0; layer < config.numHiddenLayers; ++layer) {
        const std::string prefix = "model.layers." + std::to_string(layer) + ".";
        const std::string attention = prefix + "self_attn.";
        tensors.push_back({prefix + "input_layernorm.weight", {hidden}});
        if (config.mla) {
            for (ExpectedTensor& tensor : mlaTensors(config, layer))
                tensors.push_back({attention + tensor.name, std::move(tensor.shape)});
        } else {
            linear(attention + "q_proj", heads * headDim, hidden, config.qkvBias);
            linear(attention + "k_proj", groups * headDim, hidden, config.qkvBias);
            linear(attention + "v_proj", groups * headDim, hidden, config.qkvBias);
            linear(attention + "o_proj", hidden, heads * headDim, config.outputBias);
            if (config.qkNorm) {
                tensors.push_back({attention + "q_norm.weight", {headDim}});
                tensors.push_back({attention + "k_norm.weight", {headDim}});
            }
        }
        tensors.push_back({prefix + "post_attention_layernorm.weight", {hidden}});
        linear(prefix + "mlp.gate_proj", config.intermediateSize, hidden, config.mlpBias);
        linear(prefix + "mlp.up_proj", config.intermediateSize, hidden, config.mlpBias);
        linear(prefix + "mlp.down_proj", hidden, config.intermediateSize, config.mlpBias);
    }
    tensors.push_back({"model.norm.weight", {hidden}});
    if (!config.tieWordEmbeddings)
        tensors.push_back({headName, {config.vocabSize, hidden}});
    return tensors;
}

Result<Checkpoint> Checkpoint::open(const fs::path& path)
{
    Checkpoint checkpoint;
    checkpoint.m_directory = path;
    MLA_TRY(gguf, findGguf(path));
    if (gguf)
        MLA_CHECK(checkpoint.openGguf(*gguf));
    else
        MLA_CHECK(checkpoint.openDirectory());
    checkpoint.m_warnings = checkpoint.m_store->warnings();
    MLA_CHECK(checkpoint.checkTensors());
    checkpoint.resolveHead();
    checkpoint.noticeUnused();
    if (checkpoint.m_config.mla && checkpoint.m_config.mla->layout == DraftLayout::TransMla)
        checkpoint.m_warnings.push_back("the source's KV heads are not recorded: the original's "
                                        "cache is counted with one per query head");
    return checkpoint;
}

Status Checkpoint::openDirectory()
{
    MLA_TRY(config, readModelConfig(m_directory));
    m_config = std::move(config);
    const fs::path file = m_directory / "config.json";
    MLA_TRY(json, readJsonFile(file));
    MLA_TRY(quantization, parseQuantization(json, file.string()));
    m_configJson = std::make_shared<const nlohmann::json>(std::move(json));
    m_configName = "config.json";
    MLA_TRY(store, openShards(m_directory, quantization));
    m_store = std::move(store);
    return {};
}

Status Checkpoint::openGguf(const fs::path& path)
{
    MLA_TRY(file, GgufFile::open(path));
    MLA_TRY(json, ggufConfig(file));
    MLA_TRY(config, parseModelConfig(json, path.string()));
    m_config = std::move(config);
    m_configJson = std::make_shared<const nlohmann::json>(std::move(json));
    m_configName = "its metadata";
    MLA_TRY(store, openGgufStore(file, m_config));
    m_store = std::move(store);
    return {};
}

Status Checkpoint::checkTensors() const
{
    ModelConfig wanted = m_config;
    if (has(headName)) // checked even when the flag says tied
        wanted.tieWordEmbeddings = false;
    for (const ExpectedTensor& expected : expectedTensors(wanted)) {
        const auto it = m_store->tensors().find(expected.name);
        if (it == m_store->tensors().end())
            return badInput("tensor '" + expected.name + "' of shape " + shapeText(expected.shape) +
                                " is missing",
                            m_directory.string(),
                            expected.name == headName
                                ? m_configName + " says tie_word_embeddings = false"
                                : "");
        const TensorInfo& info = it->second.info;
        const std::string file = m_store->fileOf(expected.name).string();
        if (info.shape != expected.shape)
            return badInput("tensor '" + expected.name + "' has shape " + shapeText(info.shape) +
                                ", " + m_configName + " asks for " + shapeText(expected.shape),
                            file);
        if (info.dtype == DType::F8E4M3)
            return badInput("tensor '" + expected.name +
                                "' has dtype F8_E4M3 without scales, which is not supported",
                            file, "config.json names no quantization_config");
        if (!isDecodable(info.dtype))
            return badInput("tensor '" + expected.name + "' has dtype " +
                                std::string(dtypeName(info.dtype)) + ", which is not supported",
                            file, "supported: F64, F32, F16, BF16");
    }
    return {};
}

void Checkpoint::resolveHead()
{
    m_tiedHead = m_config.tieWordEmbeddings;
    if (!m_tiedHead || !has(headName))
        return;
    // Both are there although the flag says tied: Transformers 5.19 (PreTrainedModel.tie_weights)
    // compares them, ties them only if they are equal, and otherwise warns and uses each as it is.
    const std::span<const std::byte> embedding = m_store->raw(embeddingName);
    const std::span<const std::byte> head = m_store->raw(headName);
    const bool sameStorage =
        m_store->tensors().at(headName).storage == m_store->tensors().at(embeddingName).storage &&
        embedding.size() == head.size();
    if (sameStorage && std::memcmp(embedding.data(), head.data(), head.size()) == 0)
        return;
    m_tiedHead = false;
    m_config.tieWordEmbeddings = false;
    m_warnings.push_back("config.json says tie_word_embeddings = true, but lm_head.weight differs "
                         "from model.embed_tokens.weight: lm_head.weight is used");
}

void Checkpoint::noticeUnused()
{
    std::set<std::string> used = {headName};
    for (const ExpectedTensor& expected : expectedTensors(m_config))
        used.insert(expected.name);
    std::vector<std::string> unused;
    for (const auto& [name, tensor] : m_store->tensors())
        if (!used.contains(name) && !tensor.helper && !isDerived(name))
            unused.push_back(name);
    if (!unused.empty())
        m_warnings.push_back(std::to_string(unused.size()) +
                             " tensors are not used by this architecture: " + listed(unused));
}

bool Checkpoint::has(const std::string& name) const
{
    return m_store->tensors().contains(name);
}

std::vector<std::string> Checkpoint::names() const
{
    std::vector<std::string> all;
    all.reserve(m_store->tensors().size());
    for (const auto& [name, tensor] : m_store->tensors())
        all.push_back(name);
    return all;
}

Result<const StoredTensor*> Checkpoint::find(const std::string& name) const
{
    const auto it = m_store->tensors().find(name);
    if (it == m_store->tensors().end())
        return badInput("has no tensor '" + name + "'", m_directory.string());
    return &it->second;
}

Result<TensorInfo> Checkpoint::info(const std::string& name) const
{
    MLA_TRY(tensor, find(name));
    return tensor->info;
}

Result<std::string> Checkpoint::storage(const std::string& name) const
{
    MLA_TRY(tensor, find(name));
    return tensor->storage;
}

bool Checkpoint::isPlain(const std::string& name) const
{
    const auto it = m_store->tensors().find(name);
    return it != m_store->tensors().end() && it->second.plain;
}

std::string Checkpoint::fileOf(const std::string& name) const
{
    return has(name) ? m_store->fileOf(name).filename().string() : std::string();
}

std::int64_t Checkpoint::storedBytes(const std::string& name) const
{
    return has(name) ? static_cast<std::int64_t>(m_store->raw(name).size()) : 0;
}

Result<std::span<const std::byte>> Checkpoint::bytes(const std::string& name) const
{
    MLA_TRY(tensor, find(name));
    if (!tensor->plain)
        return badInput("tensor '" + name + "' is stored as " + tensor->storage +
                            " and must be decoded",
                        m_store->fileOf(name).string());
    return m_store->raw(name);
}

Status Checkpoint::readFloat32(const std::string& name, std::span<float> to) const
{
    MLA_TRY(tensor, find(name));
    if (!isDecodable(tensor->info.dtype))
        return badInput("tensor '" + name + "' of dtype " +
                            std::string(dtypeName(tensor->info.dtype)) +
                            " holds no floating-point numbers",
                        m_store->fileOf(name).string());
    if (static_cast<std::int64_t>(to.size()) != tensor->info.elements())
        return badInput("tensor '" + name + "' has " + std::to_string(tensor->info.elements()) +
                            " elements, room for " + std::to_string(to.size()) + " was given",
                        m_store->fileOf(name).string());
    m_store->readFloat32(name, to);
    return {};
}

Status Checkpoint::requireFinite(const std::string& name, std::span<const float> numbers) const
{
    const auto found = findNonFinite(numbers);
    if (!found)
        return {};
    MLA_TRY(tensor, find(name));
    std::vector<std::int64_t> place;
    auto rest = static_cast<std::int64_t>(found->first);
    for (std::size_t i = tensor->info.shape.size(); i-- > 0; rest /= tensor->info.shape[i])
        place.insert(place.begin(), rest % tensor->info.shape[i]);
    return badInput("tensor '" + name + "' holds NaN or infinite numbers: " +
                        std::to_string(found->count) + " of " + std::to_string(numbers.size()) +
                        ", the first at " + shapeText(place) + "; finite numbers are expected",
                    m_store->fileOf(name).string());
}

std::int64_t Checkpoint::parameterCount() const
{
    std::int64_t count = 0;
    for (const ExpectedTensor& expected : expectedTensors(m_config)) {
        std::int64_t elements = 1;
        for (const std::int64_t dim : expected.shape)
            elements *= dim;
        count += elements;
    }
    return count;
}

Result<std::string> Checkpoint::fingerprint() const
{
    constexpr std::size_t windows = 8;
    constexpr std::size_t windowBytes = 512;
    Sha256 hash;
    for (const auto& [name, tensor] : m_store->tensors()) {
        hash.update(name + "\n" + tensor.storage + shapeText(tensor.info.shape) + "\n");
        const std::span<const std::byte> data = m_store->raw(name);
        if (data.size() <= windows * windowBytes) {
            hash.update(data);
            continue;
        }
        const std::size_t last = data.size() - windowBytes;
        for (std::size_t i = 0; i < windows; ++i)
            hash.update(data.subspan(last / (windows - 1) * i, windowBytes));
    }
    return hash.hexDigest();
}

} // namespace mla
