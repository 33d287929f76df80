// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/gguf_store.h"

#include "core/checkpoint/gguf_config.h"

namespace mla
{

namespace
{

class GgufStore : public TensorStore
{
public:
    GgufStore(GgufFile file, const ModelConfig& config)
        : m_file(std::move(file)), m_headDim(config.headDim),
          m_interleaved(config.modelType == "llama")
    {
    }
    Status open();

    [[nodiscard]] const std::map<std::string, StoredTensor>& tensors() const override
    {
        return m_tensors;
    }
    [[nodiscard]] std::filesystem::path fileOf(const std::string& /*name*/) const override
    {
        return m_file.path();
    }
    [[nodiscard]] std::span<const std::byte> raw(const std::string& name) const override
    {
        return m_file.bytes(m_stored.at(name)).value();
    }
    void readFloat32(const std::string& name, std::span<float> to) const override;
    [[nodiscard]] const std::vector<std::string>& warnings() const override { return m_warnings; }

private:
    /// True for q and k of a llama file whose rows make whole heads.
    [[nodiscard]] bool isReordered(const std::string& name, const GgufTensor& tensor) const;

    GgufFile m_file;
    std::int64_t m_headDim;
    bool m_interleaved;
    std::map<std::string, StoredTensor> m_tensors;
    std::map<std::string, std::string> m_stored; ///< Hugging Face's name -> the file's
    std::vector<std::string> m_warnings;
};

DType decodedType(GgmlType type)
{
    return type == GgmlType::F16 ? DType::F16 : type == GgmlType::BF16 ? DType::BF16 : DType::F32;
}

bool isQuantised(GgmlType type)
{
    return traitsOf(type).blockElements > 1;
}

bool GgufStore::isReordered(const std::string& name, const GgufTensor& tensor) const
{
    const bool queryOrKey = name.find(".self_attn.q_proj.") != std::string::npos ||
                            name.find(".self_attn.k_proj.") != std::string::npos;
    return m_interleaved && queryOrKey && tensor.shape.front() % m_headDim == 0;
}

Status GgufStore::open()
{
    for (const auto& [stored, tensor] : m_file.tensors()) {
        const std::string name = hfTensorName(stored);
        if (!m_stored.emplace(name, stored).second)
            return badInput("tensors '" + stored + "' and '" + m_stored.at(name) +
                                "' both stand for '" + name + "'",
                            m_file.path().string());
        StoredTensor entry;
        entry.info.dtype = decodedType(tensor.type);
        entry.info.shape = tensor.shape;
        entry.storage = traitsOf(tensor.type).name;
        entry.plain = !isQuantised(tensor.type) && !isReordered(name, tensor);
        entry.helper = stored == ropeFactorsName;
        m_tensors.emplace(name, std::move(entry));
    }
    return {};
}

void GgufStore::readFloat32(const std::string& name, std::span<float> to) const
{
    const std::string& stored = m_stored.at(name);
    const GgufTensor& tensor = m_file.tensors().at(stored);
    const std::span<const std::byte> bytes = raw(name);
    if (!isReordered(name, tensor) || to.empty()) {
        decodeGgml(tensor.type, bytes, to);
        return;
    }
    const std::int64_t rows = tensor.shape.front();
    const auto columns = to.size() / static_cast<std::size_t>(rows);
    // Within a head, row 2 i + half of the file is row half * h/2 + i.
    const auto target = [&](std::int64_t row) {
        const std::int64_t within = row % m_headDim;
        return static_cast<std::size_t>(row - within + within % 2 * (m_headDim / 2) + within / 2);
    };
    if (columns == 1) { // a bias: its blocks, if any, span several heads' numbers
        std::vector<float> inOrder(to.size());
        decodeGgml(tensor.type, bytes, inOrder);
        for (std::int64_t row = 0; row < rows; ++row)
            to[target(row)] = inOrder[static_cast<std::size_t>(row)];
        return;
    }
    const std::size_t rowBytes = bytes.size() / static_cast<std::size_t>(rows);
    for (std::int64_t row = 0; row < rows; ++row)
        decodeGgml(tensor.type, bytes.subspan(static_cast<std::size_t>(row) * rowBytes, rowBytes),
                   to.subspan(target(row) * columns, columns));
}

} // namespace

Result<std::unique_ptr<TensorStore>> openGgufStore(const GgufFile& file, const ModelConfig& config)
{
    auto store = std::make_unique<GgufStore>(file, config);
    MLA_CHECK(store->open());
    return std::unique_ptr<TensorStore>(std::move(store));
}

} // namespace mla
