// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>

#include "core/base/file_mapping.h"
#include "core/checkpoint/safetensors_header.h"

namespace mla
{

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian");

namespace
{

struct DTypeRow {
    DType dtype;
    std::string_view name;
    std::size_t bytes;
};
constexpr std::array<DTypeRow, 15> dtypeRows = {{{DType::F64, "F64", 8},
                                                 {DType::F32, "F32", 4},
                                                 {DType::F16, "F16", 2},
                                                 {DType::BF16, "BF16", 2},
                                                 {DType::F8E4M3, "F8_E4M3", 1},
                                                 {DType::F8E5M2, "F8_E5M2", 1},
                                                 {DType::I64, "I64", 8},
                                                 {DType::I32, "I32", 4},
                                                 {DType::I16, "I16", 2},
                                                 {DType::I8, "I8", 1},
                                                 {DType::U64, "U64", 8},
                                                 {DType::U32, "U32", 4},
                                                 {DType::U16, "U16", 2},
                                                 {DType::U8, "U8", 1},
                                                 {DType::Bool, "BOOL", 1}}};

const DTypeRow& rowOf(DType dtype)
{
    return dtypeRows.at(static_cast<std::size_t>(dtype));
}

} // namespace

std::size_t bytesPerElement(DType dtype)
{
    return rowOf(dtype).bytes;
}

std::string_view dtypeName(DType dtype)
{
    return rowOf(dtype).name;
}

std::optional<DType> dtypeFromName(std::string_view name)
{
    for (const DTypeRow& row : dtypeRows)
        if (row.name == name)
            return row.dtype;
    return std::nullopt;
}

std::int64_t TensorInfo::elements() const
{
    std::int64_t count = 1;
    for (const std::int64_t dim : shape)
        count *= dim;
    return count;
}

struct SafetensorsFile::Impl {
    std::filesystem::path path;
    FileMapping mapping;
    std::uint64_t dataStart = 0;
    SafetensorsHeader header;
};

Result<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path)
{
    const auto impl = std::make_shared<Impl>();
    impl->path = path;
    MLA_CHECK(impl->mapping.map(path));
    const std::span<const std::byte> bytes = impl->mapping.bytes();
    MLA_TRY(text, headerText(bytes, path.string()));
    impl->dataStart = safetensorsLengthBytes + text.size();
    MLA_TRY(header, parseSafetensorsHeader(text, bytes.size() - impl->dataStart, path.string()));
    impl->header = std::move(header);
    SafetensorsFile file;
    file.m_impl = impl;
    return file;
}

const std::filesystem::path& SafetensorsFile::path() const
{
    return m_impl->path;
}

const std::map<std::string, TensorInfo>& SafetensorsFile::tensors() const
{
    return m_impl->header.tensors;
}

const std::map<std::string, std::string>& SafetensorsFile::metadata() const
{
    return m_impl->header.metadata;
}

Result<std::span<const std::byte>> SafetensorsFile::bytes(const std::string& name) const
{
    const auto it = m_impl->header.tensors.find(name);
    if (it == m_impl->header.tensors.end())
        return badInput("has no tensor '" + name + "'", m_impl->path.string());
    const TensorInfo& info = it->second;
    return m_impl->mapping.bytes().subspan(m_impl->dataStart + info.begin, info.end - info.begin);
}

} // namespace mla
