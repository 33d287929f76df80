// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/checkpoint.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "core/base/json.h"
#include "core/base/sha256.h"

namespace mla
{

namespace fs = std::filesystem;

namespace
{

constexpr const char* singleName = "model.safetensors";
constexpr const char* indexName = "model.safetensors.index.json";
constexpr const char* embeddingName = "model.embed_tokens.weight";
constexpr const char* headName = "lm_head.weight";

std::string shapeText(const std::vector<std::int64_t>& shape)
{
    std::string text = "[";
    for (std::size_t i = 0; i < shape.size(); ++i)
        text += (i ? ", " : "") + std::to_string(shape[i]);
    return text + "]";
}

/// A few names of a longer list.
std::string listed(const std::vector<std::string>& names)
{
    constexpr std::size_t shown = 5;
    std::string text;
    for (std::size_t i = 0; i < std::min(shown, names.size()); ++i)
        text += (i ? ", " : "") + names[i];
    return names.size() > shown ? text + " and " + std::to_string(names.size() - shown) + " more"
                                : text;
}

bool isWeightType(DType dtype)
{
    return dtype == DType::F64 || dtype == DType::F32 || dtype == DType::F16 ||
           dtype == DType::BF16;
}

/// Buffers that older versions saved and that follow from the config.
bool isDerived(const std::string& name)
{
    return name.ends_with(".rotary_emb.inv_freq");
}

std::vector<std::string> safetensorsFilesIn(const fs::path& directory)
{
    std::vector<std::string> names;
    std::error_code code;
    for (fs::directory_iterator it(directory, code), end; !code && it != end; it.increment(code))
        if (it->path().extension() == ".safetensors")
            names.push_back(it->path().filename().string());
    std::ranges::sort(names);
    return names;
}

/// tensor -> file name, from the index. File names may not leave the directory.
Result<std::map<std::string, std::string>> readWeightMap(const fs::path& index)
{
    MLA_TRY(json, readJsonFile(index));
    const auto member = json.is_object() ? json.find("weight_map") : json.end();
    if (!json.is_object() || member == json.end() || !member->is_object())
        return badInput("'weight_map' is missing or not an object", index.string());
    std::map<std::string, std::string> files;
    for (const auto& [tensor, file] : member->items()) {
        const std::string name = file.is_string() ? file.get<std::string>() : std::string();
        if (name.empty() || name.find('\0') != std::string::npos ||
            fs::path(name).has_parent_path() || name == "." || name == "..")
            return badInput("tensor '" + tensor + "': " + file.dump().substr(0, 200) +
                                " is not the name of a file in this directory",
                            index.string());
        files[tensor] = name;
    }
    return files;
}

Error noWeights(const fs::path& directory)
{
    std::vector<std::string> others = safetensorsFilesIn(directory);
    const std::string found = others.empty() ? "" : "; found " + listed(others);
    const bool pickled = fs::exists(directory / "pytorch_model.bin") ||
                         fs::exists(directory / "pytorch_model.bin.index.json");
    return badInput(
        std::string("neither ") + singleName + " nor " + indexName + " is there" + found,
        directory.string(),
        pickled ? "PyTorch .bin files are not read: save the model as safetensors" : "");
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
            const MlaConfig& mla = *config.mla;
            const std::int64_t rank = mla.latentRank.at(static_cast<std::size_t>(layer));
            const std::int64_t nope = mla.qkNopeHeadDim;
            const std::int64_t rope = mla.qkRopeHeadDim;
            linear(attention + "q_proj", heads * (nope + rope), hidden, mla.queryBias);
            linear(attention + "kv_a_proj_with_mqa", rank + mla.ropeKeyHeads * rope, hidden,
                   mla.kvDownBias);
            linear(attention + "kv_b_proj", mla.kvUpHeads * (nope + mla.vHeadDim), rank,
                   mla.kvUpBias);
            linear(attention + "o_proj", hidden, heads * mla.vHeadDim, config.outputBias);
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

Result<Checkpoint> Checkpoint::open(const fs::path& directory)
{
    Checkpoint checkpoint;
    checkpoint.m_directory = directory;
    MLA_TRY(config, readModelConfig(directory));
    checkpoint.m_config = std::move(config);
    MLA_CHECK(checkpoint.openShards());
    MLA_CHECK(checkpoint.checkTensors());
    MLA_CHECK(checkpoint.resolveHead());
    checkpoint.noticeUnused();
    return checkpoint;
}

Status Checkpoint::openShards()
{
    std::map<std::string, std::string> weightMap;
    std::error_code code;
    const bool sharded = fs::exists(m_directory / indexName, code);
    if (sharded) {
        MLA_TRY(map, readWeightMap(m_directory / indexName));
        weightMap = std::move(map);
    } else if (!fs::exists(m_directory / singleName, code)) {
        return noWeights(m_directory);
    }
    std::map<std::string, std::size_t> opened; // file name -> index into m_files
    const auto openOnce = [&](const std::string& name) -> Status {
        if (opened.contains(name))
            return {};
        MLA_TRY(file, SafetensorsFile::open(m_directory / name));
        opened[name] = m_files.size();
        m_files.push_back(std::move(file));
        return {};
    };
    if (!sharded) {
        MLA_CHECK(openOnce(singleName));
        for (const auto& [tensor, info] : m_files.front().tensors())
            m_where[tensor] = 0;
    }
    for (const auto& [tensor, name] : weightMap) {
        if (!fs::exists(m_directory / name, code))
            return badInput("shard " + name + " is missing; " + indexName + " places tensor '" +
                                tensor + "' in it",
                            m_directory.string(), "the download may be incomplete");
        MLA_CHECK(openOnce(name));
        const std::size_t file = opened.at(name);
        if (!m_files[file].tensors().contains(tensor))
            return badInput("tensor '" + tensor + "' is missing in " + name + ", where " +
                                indexName + " places it",
                            m_directory.string());
        m_where[tensor] = file;
    }
    noticeStray(opened, sharded);
    return {};
}

void Checkpoint::noticeStray(const std::map<std::string, std::size_t>& opened, bool sharded)
{
    std::vector<std::string> stray = safetensorsFilesIn(m_directory);
    std::erase_if(stray, [&](const std::string& name) { return opened.contains(name); });
    if (!stray.empty())
        m_warnings.push_back("ignored files that are not part of the checkpoint: " + listed(stray));
    if (!sharded)
        return;
    std::vector<std::string> unlisted;
    for (const auto& [name, file] : opened)
        for (const auto& [tensor, info] : m_files[file].tensors())
            if (const auto it = m_where.find(tensor); it == m_where.end() || it->second != file)
                unlisted.push_back(tensor + " in " + name);
    if (!unlisted.empty())
        m_warnings.push_back(std::string("ignored tensors that ") + indexName +
                             " does not list: " + listed(unlisted));
}

Status Checkpoint::checkTensors() const
{
    ModelConfig wanted = m_config;
    if (has(headName)) // checked even when the flag says tied
        wanted.tieWordEmbeddings = false;
    for (const ExpectedTensor& expected : expectedTensors(wanted)) {
        const auto it = m_where.find(expected.name);
        if (it == m_where.end())
            return badInput(
                "tensor '" + expected.name + "' of shape " + shapeText(expected.shape) +
                    " is missing",
                m_directory.string(),
                expected.name == headName ? "config.json says tie_word_embeddings = false" : "");
        const SafetensorsFile& file = m_files[it->second];
        const TensorInfo& info = file.tensors().at(expected.name);
        if (info.shape != expected.shape)
            return badInput("tensor '" + expected.name + "' has shape " + shapeText(info.shape) +
                                ", config.json asks for " + shapeText(expected.shape),
                            file.path().string());
        if (!isWeightType(info.dtype))
            return badInput("tensor '" + expected.name + "' has dtype " +
                                std::string(dtypeName(info.dtype)) + ", which is not supported",
                            file.path().string(), "supported: F64, F32, F16, BF16");
    }
    return {};
}

Status Checkpoint::resolveHead()
{
    m_tiedHead = m_config.tieWordEmbeddings;
    if (!m_tiedHead || !has(headName))
        return {};
    // Both are there although the flag says tied: Transformers 5.19 (PreTrainedModel.tie_weights)
    // compares them, ties them only if they are equal, and otherwise warns and uses each as it is.
    MLA_TRY(embedding, bytes(embeddingName));
    MLA_TRY(head, bytes(headName));
    const bool sameType = m_files[m_where.at(headName)].tensors().at(headName).dtype ==
                          m_files[m_where.at(embeddingName)].tensors().at(embeddingName).dtype;
    if (sameType && std::memcmp(embedding.data(), head.data(), head.size()) == 0)
        return {};
    m_tiedHead = false;
    m_config.tieWordEmbeddings = false;
    m_warnings.push_back("config.json says tie_word_embeddings = true, but lm_head.weight differs "
                         "from model.embed_tokens.weight: lm_head.weight is used");
    return {};
}

void Checkpoint::noticeUnused()
{
    std::set<std::string> used = {headName};
    for (const ExpectedTensor& expected : expectedTensors(m_config))
        used.insert(expected.name);
    std::vector<std::string> unused;
    for (const auto& [tensor, file] : m_where)
        if (!used.contains(tensor) && !isDerived(tensor))
            unused.push_back(tensor);
    if (!unused.empty())
        m_warnings.push_back(std::to_string(unused.size()) +
                             " tensors are not used by this architecture: " + listed(unused));
}

std::vector<std::string> Checkpoint::names() const
{
    std::vector<std::string> all;
    all.reserve(m_where.size());
    for (const auto& [tensor, file] : m_where)
        all.push_back(tensor);
    return all;
}

Result<TensorInfo> Checkpoint::info(const std::string& name) const
{
    const auto it = m_where.find(name);
    if (it == m_where.end())
        return badInput("has no tensor '" + name + "'", m_directory.string());
    return m_files[it->second].tensors().at(name);
}

Result<std::span<const std::byte>> Checkpoint::bytes(const std::string& name) const
{
    const auto it = m_where.find(name);
    if (it == m_where.end())
        return badInput("has no tensor '" + name + "'", m_directory.string());
    return m_files[it->second].bytes(name);
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
    for (const auto& [name, file] : m_where) {
        const TensorInfo& tensor = m_files[file].tensors().at(name);
        hash.update(name + "\n" + std::string(dtypeName(tensor.dtype)) + shapeText(tensor.shape) +
                    "\n");
        MLA_TRY(data, bytes(name));
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
