// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/shard_store.h"

#include <algorithm>

#include "core/base/json.h"
#include "core/checkpoint/tensor_decode.h"
#include "core/checkpoint/text_list.h"

namespace mla
{

namespace fs = std::filesystem;

namespace
{

constexpr const char* singleName = "model.safetensors";
constexpr const char* indexName = "model.safetensors.index.json";

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

class ShardStore : public TensorStore
{
public:
    explicit ShardStore(fs::path directory) : m_directory(std::move(directory)) {}

    Status open();
    Status attachScales(const Fp8Quantization& quantization);

    [[nodiscard]] const std::map<std::string, StoredTensor>& tensors() const override
    {
        return m_tensors;
    }
    [[nodiscard]] fs::path fileOf(const std::string& name) const override
    {
        return m_files[m_where.at(name)].path();
    }
    [[nodiscard]] std::span<const std::byte> raw(const std::string& name) const override
    {
        return m_files[m_where.at(name)].bytes(name).value();
    }
    void readFloat32(const std::string& name, std::span<float> to) const override;
    [[nodiscard]] const std::vector<std::string>& warnings() const override { return m_warnings; }

private:
    void noticeStray(const std::map<std::string, std::size_t>& opened, bool sharded);
    Status attachScale(const std::string& name, StoredTensor& tensor,
                       const Fp8Quantization& quantization);

    fs::path m_directory;
    std::vector<SafetensorsFile> m_files;
    std::map<std::string, std::size_t> m_where; ///< tensor -> index into m_files
    std::map<std::string, StoredTensor> m_tensors;
    std::map<std::string, ScaleGrid> m_grids; ///< of tensors with scales
    std::vector<std::string> m_warnings;
};

Status ShardStore::open()
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
    for (const auto& [name, file] : m_where) {
        const TensorInfo& info = m_files[file].tensors().at(name);
        m_tensors[name] = {info, std::string(dtypeName(info.dtype)), true, false, {}};
    }
    noticeStray(opened, sharded);
    return {};
}

void ShardStore::noticeStray(const std::map<std::string, std::size_t>& opened, bool sharded)
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

/// "128x128 scales", "a scale each row", "one scale"
std::string scalesText(const Fp8Quantization& quantization, const ScaleGrid& grid)
{
    if (quantization.block)
        return std::to_string(grid.rowsPerScale) + "x" + std::to_string(grid.columnsPerScale) +
               " scales";
    return grid.rowsPerScale == 1 ? "a scale each row" : "one scale";
}

Status ShardStore::attachScale(const std::string& name, StoredTensor& tensor,
                               const Fp8Quantization& quantization)
{
    const std::string module = name.substr(0, name.rfind('.'));
    if (std::ranges::find(quantization.notConverted, module) != quantization.notConverted.end())
        return badInput("tensor '" + name + "' is F8_E4M3, but quantization_config lists '" +
                            module + "' as not converted",
                        fileOf(name).string());
    const std::string scales = name + quantization.scaleSuffix;
    const auto it = m_tensors.find(scales);
    if (it == m_tensors.end())
        return badInput("tensor '" + name + "' is F8_E4M3, but its scales '" + scales +
                            "' are missing",
                        fileOf(name).string());
    const auto grid = scaleGrid(quantization, tensor.info.shape, it->second.info.shape);
    const DType dtype = it->second.info.dtype;
    if (!grid || (dtype != DType::F32 && dtype != DType::BF16 && dtype != DType::F16))
        return badInput("scales '" + scales + "' of dtype " + std::string(dtypeName(dtype)) +
                            " and shape " + shapeText(it->second.info.shape) +
                            " do not fit the weight of shape " + shapeText(tensor.info.shape),
                        fileOf(scales).string(),
                        quantization.block
                            ? "weight_block_size is " +
                                  shapeText({quantization.block->first, quantization.block->second})
                            : "one scale, or one for each row, is expected");
    it->second.helper = true;
    tensor.scales = scales;
    tensor.plain = false;
    tensor.info.dtype = DType::F32;
    tensor.storage += ", " + scalesText(quantization, *grid);
    m_grids[name] = *grid;
    return {};
}

Status ShardStore::attachScales(const Fp8Quantization& quantization)
{
    for (auto& [name, tensor] : m_tensors)
        if (tensor.info.dtype == DType::F8E4M3)
            MLA_CHECK(attachScale(name, tensor, quantization));
    // Scales of activations and caches play no part in weights read at full precision.
    for (auto& [name, tensor] : m_tensors)
        for (const char* suffix : {".activation_scale", ".input_scale", ".k_scale", ".v_scale"})
            tensor.helper |= name.ends_with(suffix);
    return {};
}

void ShardStore::readFloat32(const std::string& name, std::span<float> to) const
{
    const StoredTensor& tensor = m_tensors.at(name);
    const TensorInfo& stored = m_files[m_where.at(name)].tensors().at(name);
    decodeNumbers(stored.dtype, raw(name), to);
    if (tensor.scales.empty())
        return;
    const StoredTensor& scaleTensor = m_tensors.at(tensor.scales);
    std::vector<float> scales(static_cast<std::size_t>(scaleTensor.info.elements()));
    decodeNumbers(scaleTensor.info.dtype, raw(tensor.scales), scales);
    const ScaleGrid& grid = m_grids.at(name);
    const std::int64_t rows = stored.shape[0], columns = stored.shape[1];
    for (std::int64_t row = 0; row < rows; ++row) {
        const float* own = scales.data() + row / grid.rowsPerScale * grid.gridColumns;
        float* numbers = to.data() + row * columns;
        for (std::int64_t begin = 0; begin < columns; begin += grid.columnsPerScale) {
            const std::int64_t end = std::min(columns, begin + grid.columnsPerScale);
            for (std::int64_t i = begin; i < end; ++i)
                numbers[i] *= *own;
            ++own;
        }
    }
}

} // namespace

Result<std::unique_ptr<TensorStore>> openShards(const fs::path& directory,
                                                const std::optional<Fp8Quantization>& quantization)
{
    auto store = std::make_unique<ShardStore>(directory);
    MLA_CHECK(store->open());
    if (quantization)
        MLA_CHECK(store->attachScales(*quantization));
    return std::unique_ptr<TensorStore>(std::move(store));
}

} // namespace mla
