// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/export/draft_directory.h"

#include <nlohmann/json.hpp>

#include <algorithm>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/checkpoint/gguf.h"
#include "core/checkpoint/tokenizer_gguf.h"
#include "core/export/shards.h"
#include "core/model/layer_loading.h"
#include "core/model/tensors.h"

namespace mla
{
namespace
{

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kMetaFile = "mla_draft.json";
constexpr const char* kOwnFolder = "mla_draft";
constexpr const char* kBasisFile = "conversion.safetensors";
constexpr const char* kRopeMap = "rope_map";
constexpr const char* kPermutation = "key_permutation";
constexpr const char* kHead = "lm_head.weight";
constexpr const char* kEmbedding = "model.embed_tokens.weight";
constexpr int kMetaVersion = 1;

json metaToJson(const DraftMeta& meta)
{
    return {{"format_version", kMetaVersion},
            {"run", meta.runId},
            {"variant", meta.variant},
            {"source", {{"path", meta.sourcePath}, {"fingerprint", meta.sourceFingerprint}}},
            {"convert",
             {{"converter", meta.convert.converter},
              {"kv_lora_rank", meta.convert.kvLoraRank},
              {"qk_rope_head_dim", meta.convert.qkRopeHeadDim},
              {"freqfold", meta.convert.freqfold},
              {"rope_select", meta.convert.ropeSelect},
              {"svd", meta.convert.svd}}},
            {"settings", meta.settingsJson},
            {"software", meta.software},
            {"created", meta.created},
            {"key_rank", meta.keyRank}};
}

bool isFloating(DType dtype)
{
    return dtype == DType::F64 || dtype == DType::F32 || dtype == DType::F16 ||
           dtype == DType::BF16;
}

/// Layer and name within self_attn of a tensor, if it is one of an attention block.
std::optional<std::pair<LayerIndex, std::string>> attentionName(const std::string& name, int layers)
{
    for (int i = 0; i < layers; ++i)
        if (const std::string prefix = attentionPrefix(LayerIndex(i)); name.starts_with(prefix))
            return std::pair{LayerIndex(i), name.substr(prefix.size())};
    return std::nullopt;
}

/// Streams the draft's tensors: each from its layer's replacement, else from the base.
class WeightWriter
{
public:
    WeightWriter(const DraftContent& content, fs::path folder)
        : m_content(content), m_folder(std::move(folder))
    {
    }
    Status write();

private:
    struct Source {
        std::string name;
        std::optional<std::pair<LayerIndex, std::string>> replacement;
    };
    Status plan();
    Status append(SafetensorsWriter& writer, const Source& source);
    Result<const LayerTensors*> layer(LayerIndex index);

    const DraftContent& m_content;
    fs::path m_folder;
    std::vector<Source> m_sources;
    std::vector<SafetensorsWriter::Declared> m_declared;
    int m_loadedLayer = -1;
    std::optional<LayerTensors> m_loaded;
};

Result<const LayerTensors*> WeightWriter::layer(LayerIndex index)
{
    if (m_loadedLayer != index.value) {
        MLA_TRY(tensors, m_content.layer(index));
        m_loaded = std::move(tensors);
        m_loadedLayer = index.value;
    }
    return m_loaded ? &*m_loaded : nullptr;
}

Status WeightWriter::plan()
{
    for (const ExpectedTensor& expected : expectedTensors(m_content.config)) {
        Source source{expected.name, std::nullopt};
        DType dtype = DType::F32;
        auto attention = attentionName(expected.name, m_content.config.numHiddenLayers);
        const LayerTensors* replacement = nullptr;
        if (attention) {
            MLA_TRY(tensors, layer(attention->first));
            replacement = tensors;
        }
        const bool replaced =
            replacement && std::any_of(replacement->begin(), replacement->end(),
                                       [&](const auto& t) { return t.first == attention->second; });
        if (replaced) {
            source.replacement = std::move(attention);
        } else {
            if (expected.name == kHead && m_content.base.tiedHead())
                source.name = kEmbedding;
            MLA_TRY(info, m_content.base.info(source.name));
            dtype = info.dtype;
        }
        if (m_content.dtype && isFloating(dtype))
            dtype = *m_content.dtype;
        m_sources.push_back(std::move(source));
        m_declared.push_back({expected.name, dtype, expected.shape});
    }
    return {};
}

Status WeightWriter::append(SafetensorsWriter& writer, const Source& source)
{
    torch::Tensor tensor;
    if (source.replacement) {
        MLA_TRY(tensors, layer(source.replacement->first));
        for (const auto& [name, value] : *tensors)
            if (name == source.replacement->second)
                tensor = value;
    } else {
        MLA_TRY(info, m_content.base.info(source.name));
        MLA_TRY(loaded, loadTensor(m_content.base, source.name, torchDtype(info.dtype)));
        tensor = std::move(loaded);
    }
    if (m_content.dtype && tensor.is_floating_point()) {
        const bool finite = torch::isfinite(tensor).all().item<bool>();
        tensor = tensor.to(torchDtype(*m_content.dtype));
        if (finite && !torch::isfinite(tensor).all().item<bool>())
            return badInput("tensor '" + source.name + "' holds numbers beyond the range of " +
                                std::string(dtypeName(*m_content.dtype)),
                            m_content.base.directory().string(), "use --dtype bf16 or fp32");
    }
    return writer.append(viewOf(source.name, tensor.contiguous()).data);
}

Status WeightWriter::write()
{
    MLA_CHECK(plan());
    const std::vector<Shard> shards = planShards(m_declared, m_content.maxShardBytes);
    for (const Shard& shard : shards) {
        const auto first = m_declared.begin() + shard.first;
        MLA_TRY(writer, SafetensorsWriter::create(m_folder / shard.file,
                                                  {first, first + (shard.end - shard.first)}));
        for (std::ptrdiff_t i = shard.first; i < shard.end; ++i)
            MLA_CHECK(append(writer, m_sources[static_cast<std::size_t>(i)]));
        MLA_CHECK(writer.commit());
    }
    if (shards.size() == 1)
        return {};
    return writeFileAtomically(m_folder / kShardIndex, shardIndex(m_declared, shards));
}

Status writeBasis(const DraftContent& content, const fs::path& path)
{
    LayerTensors all;
    for (std::size_t i = 0; i < content.basis.size(); ++i)
        for (auto& [name, tensor] : basisTensors(content.basis[i]))
            all.emplace_back("layers." + std::to_string(i) + "." + name, tensor);
    std::vector<TensorView> views;
    for (const auto& [name, tensor] : all)
        views.push_back(viewOf(name, tensor));
    return writeSafetensors(path, views);
}

} // namespace

const char* configName(DType dtype)
{
    return dtype == DType::F32 ? "float32" : dtype == DType::F16 ? "float16" : "bfloat16";
}

Status copyCompanions(const fs::path& from, const fs::path& to)
{
    for (const char* name :
         {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
          "tokenizer.model", "vocab.json", "merges.txt", "chat_template.jinja",
          "chat_template.json", "generation_config.json"}) {
        if (!fs::exists(from / name))
            continue;
        std::error_code error;
        fs::copy_file(from / name, to / name, fs::copy_options::overwrite_existing, error);
        if (error)
            return computeFailed("cannot copy: " + error.message(), (from / name).string());
    }
    if (fs::exists(to / "tokenizer.json") || fs::exists(to / "tokenizer.model"))
        return {};
    // A GGUF file holds its tokenizer itself; without one the draft still has its weights.
    MLA_TRY(file, findGguf(from));
    if (!file)
        return {};
    MLA_TRY(gguf, GgufFile::open(*file));
    return gguf.metadata().has("tokenizer.ggml.model")
               ? writeTokenizerJson(gguf, to / "tokenizer.json")
               : Status();
}

Status writeWeights(const DraftContent& content, const fs::path& directory)
{
    return WeightWriter(content, directory).write();
}

fs::path calibrationFile(const fs::path& draft)
{
    return draft / kOwnFolder / "calibration.safetensors";
}

LayerTensors basisTensors(const KeyBasis& basis)
{
    LayerTensors tensors;
    if (basis.ropeMap.defined())
        tensors.emplace_back(kRopeMap, basis.ropeMap.to(torch::kCPU).contiguous());
    if (basis.permutation.defined())
        tensors.emplace_back(kPermutation, basis.permutation.to(torch::kCPU).contiguous());
    return tensors;
}

Result<KeyBasis> basisFrom(const SafetensorsFile& file, const std::string& prefix, int keyRank)
{
    KeyBasis basis;
    basis.keyRank = keyRank;
    if (file.tensors().contains(prefix + kRopeMap)) {
        MLA_TRY(map, loadTensor(file, prefix + kRopeMap, torch::kFloat32));
        basis.ropeMap = std::move(map);
    } else if (file.tensors().contains(prefix + kPermutation)) {
        MLA_TRY(permutation, loadTensor(file, prefix + kPermutation, torch::kInt64));
        basis.permutation = std::move(permutation);
    }
    return basis;
}

Result<std::vector<KeyBasis>> loadKeyBasis(const fs::path& draft, int layers, int keyRank)
{
    MLA_TRY(file, SafetensorsFile::open(draft / kOwnFolder / kBasisFile));
    std::vector<KeyBasis> all;
    for (int i = 0; i < layers; ++i) {
        MLA_TRY(basis, basisFrom(file, "layers." + std::to_string(i) + ".", keyRank));
        all.push_back(std::move(basis));
    }
    return all;
}

Result<DraftMeta> readDraftMeta(const fs::path& draft)
{
    const fs::path path = draft / kMetaFile;
    MLA_TRY(object, readJsonFile(path));
    JsonReader reader(object, path.string());
    const json none = json::object();
    const auto part = [&](const char* key) -> const json& {
        return object.contains(key) && object[key].is_object() ? object[key] : none;
    };
    JsonReader source(part("source"), path.string(), "source");
    JsonReader convert(part("convert"), path.string(), "convert");
    reader.require("run");
    convert.require("converter");
    DraftMeta meta;
    meta.runId = reader.text("run", "");
    meta.variant = reader.text("variant", "");
    meta.settingsJson = reader.text("settings", "");
    meta.software = reader.text("software", "");
    meta.created = reader.text("created", "");
    meta.keyRank = reader.integer("key_rank", 0, 0);
    meta.sourcePath = source.text("path", "");
    meta.sourceFingerprint = source.text("fingerprint", "");
    meta.convert.converter = convert.text("converter", "");
    meta.convert.kvLoraRank = convert.integer("kv_lora_rank", 0, 0);
    meta.convert.qkRopeHeadDim = convert.integer("qk_rope_head_dim", 0, 0);
    meta.convert.freqfold = convert.integer("freqfold", 0, 0);
    meta.convert.ropeSelect = convert.text("rope_select", "");
    meta.convert.svd = convert.text("svd", "");
    MLA_CHECK(Status(reader.status()));
    MLA_CHECK(Status(source.status()));
    MLA_CHECK(Status(convert.status()));
    return meta;
}

Status writeDraft(const DraftContent& content, const fs::path& directory)
{
    const json config = mlaConfigToJson(content.config, content.base.configJson());
    MLA_CHECK(writeFileAtomically(directory / "config.json", config.dump(2) + "\n"));
    MLA_CHECK(writeWeights(content, directory));
    MLA_CHECK(copyCompanions(content.base.directory(), directory));
    for (const char* name : {"configuration_mla_draft.py", "modeling_mla_draft.py"}) {
        MLA_TRY(source, readFile(content.pythonFiles / name));
        MLA_CHECK(writeFileAtomically(directory / name, source));
    }
    std::error_code error;
    fs::create_directories(directory / kOwnFolder, error);
    if (error)
        return computeFailed("cannot create: " + error.message(),
                             (directory / kOwnFolder).string());
    MLA_CHECK(saveCalibration(calibrationFile(directory), content.calibration));
    MLA_CHECK(writeBasis(content, directory / kOwnFolder / kBasisFile));
    return writeFileAtomically(directory / kMetaFile, metaToJson(content.meta).dump(2) + "\n");
}

} // namespace mla
