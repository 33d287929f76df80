// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "core/checkpoint/safetensors_header.h"

namespace mla
{

namespace
{

struct Placed {
    std::string name;
    std::uint64_t begin = 0, end = 0; ///< within the data section
};

/// Places tensors by falling element size, so that each lies at a multiple of its element size.
Result<std::vector<Placed>> place(const std::vector<SafetensorsWriter::Declared>& tensors,
                                  const std::string& origin)
{
    std::vector<std::size_t> order(tensors.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater{},
                             [&](std::size_t i) { return bytesPerElement(tensors[i].dtype); });
    std::set<std::string> names;
    std::vector<Placed> placed(tensors.size());
    std::uint64_t offset = 0;
    for (const std::size_t i : order) {
        const SafetensorsWriter::Declared& tensor = tensors[i];
        if (tensor.name == "__metadata__" || !names.insert(tensor.name).second)
            return badInput("tensor '" + tensor.name + "': the name is reserved or used twice",
                            origin);
        const std::optional<std::uint64_t> bytes = tensorBytes(tensor.dtype, tensor.shape);
        if (!bytes)
            return badInput("tensor '" + tensor.name + "': its shape is impossible", origin);
        placed[i] = {tensor.name, offset, offset + *bytes};
        offset += *bytes;
    }
    return placed;
}

Result<std::string> headerOf(const std::vector<SafetensorsWriter::Declared>& tensors,
                             const std::vector<Placed>& placed,
                             const std::map<std::string, std::string>& metadata,
                             const std::string& origin)
{
    nlohmann::json header = nlohmann::json::object();
    if (!metadata.empty())
        header["__metadata__"] = metadata;
    for (std::size_t i = 0; i < tensors.size(); ++i)
        header[tensors[i].name] = {{"dtype", dtypeName(tensors[i].dtype)},
                                   {"shape", tensors[i].shape},
                                   {"data_offsets", {placed[i].begin, placed[i].end}}};
    std::string text;
    try {
        text = header.dump();
    } catch (const nlohmann::json::exception& error) {
        return badInput(std::string("a name or metadata is not UTF-8: ") + error.what(), origin);
    }
    constexpr std::size_t alignment = 8;
    text.append((alignment - text.size() % alignment) % alignment, ' ');
    if (text.size() > safetensorsHeaderLimit)
        return badInput("the header would exceed the format's limit of 100,000,000 bytes", origin);
    return text;
}

} // namespace

struct SafetensorsWriter::Impl {
    AtomicFile file;
    std::string origin;
    std::uint64_t dataStart = 0;
    std::vector<Placed> tensors; ///< in declaration order
    std::size_t next = 0;
};

SafetensorsWriter::SafetensorsWriter(std::unique_ptr<Impl> impl) : m_impl(std::move(impl)) {}
SafetensorsWriter::SafetensorsWriter(SafetensorsWriter&&) noexcept = default;
SafetensorsWriter& SafetensorsWriter::operator=(SafetensorsWriter&&) noexcept = default;
SafetensorsWriter::~SafetensorsWriter() = default;

Result<SafetensorsWriter>
SafetensorsWriter::create(const std::filesystem::path& path, std::vector<Declared> tensors,
                          const std::map<std::string, std::string>& metadata)
{
    MLA_TRY(placed, place(tensors, path.string()));
    MLA_TRY(header, headerOf(tensors, placed, metadata, path.string()));
    MLA_TRY(file, AtomicFile::create(path));
    const std::uint64_t length = header.size();
    MLA_CHECK(file.writeAt(0, std::as_bytes(std::span(&length, 1))));
    MLA_CHECK(file.writeAt(safetensorsLengthBytes,
                           std::as_bytes(std::span(header.data(), header.size()))));
    return SafetensorsWriter(std::unique_ptr<Impl>(new Impl{
        std::move(file), path.string(), safetensorsLengthBytes + length, std::move(placed), 0}));
}

Status SafetensorsWriter::append(std::span<const std::byte> data)
{
    if (m_impl->next == m_impl->tensors.size())
        return badInput("more tensors are written than were declared", m_impl->origin);
    const Placed& tensor = m_impl->tensors[m_impl->next];
    if (data.size() != tensor.end - tensor.begin)
        return badInput("tensor '" + tensor.name + "': " + std::to_string(data.size()) +
                            " bytes are written, its declaration needs " +
                            std::to_string(tensor.end - tensor.begin),
                        m_impl->origin);
    MLA_CHECK(m_impl->file.writeAt(m_impl->dataStart + tensor.begin, data));
    ++m_impl->next;
    return {};
}

Status SafetensorsWriter::commit()
{
    if (m_impl->next != m_impl->tensors.size())
        return badInput("tensor '" + m_impl->tensors[m_impl->next].name +
                            "' was declared but never written",
                        m_impl->origin);
    return m_impl->file.commit();
}

Status writeSafetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                        const std::map<std::string, std::string>& metadata)
{
    std::vector<SafetensorsWriter::Declared> declared;
    declared.reserve(tensors.size());
    for (const TensorView& tensor : tensors)
        declared.push_back({tensor.name, tensor.dtype, tensor.shape});
    MLA_TRY(writer, SafetensorsWriter::create(path, std::move(declared), metadata));
    for (const TensorView& tensor : tensors)
        MLA_CHECK(writer.append(tensor.data));
    return writer.commit();
}

} // namespace mla
