// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/gguf.h"

#include <algorithm>

#include "core/base/file_mapping.h"
#include "core/checkpoint/gguf_header.h"

namespace mla
{

namespace fs = std::filesystem;

struct GgufFile::Impl {
    fs::path path;
    FileMapping mapping;
    GgufHeader header;
};

Result<GgufFile> GgufFile::open(const fs::path& path)
{
    const auto impl = std::make_shared<Impl>();
    impl->path = path;
    MLA_CHECK(impl->mapping.map(path));
    MLA_TRY(header, parseGgufHeader(impl->mapping.bytes(), path.string()));
    impl->header = std::move(header);
    GgufFile file;
    file.m_impl = impl;
    return file;
}

const fs::path& GgufFile::path() const
{
    return m_impl->path;
}

const GgufMetadata& GgufFile::metadata() const
{
    return m_impl->header.metadata;
}

const std::map<std::string, GgufTensor>& GgufFile::tensors() const
{
    return m_impl->header.tensors;
}

Result<std::span<const std::byte>> GgufFile::bytes(const std::string& name) const
{
    const auto it = m_impl->header.tensors.find(name);
    if (it == m_impl->header.tensors.end())
        return badInput("has no tensor '" + name + "'", m_impl->path.string());
    const GgufTensor& tensor = it->second;
    if (tensor.begin == tensor.end)
        return std::span<const std::byte>();
    return m_impl->mapping.bytes().subspan(m_impl->header.dataStart + tensor.begin,
                                           tensor.end - tensor.begin);
}

Result<std::optional<fs::path>> findGguf(const fs::path& path)
{
    std::error_code code;
    if (!fs::is_directory(path, code)) {
        const bool named = path.extension() == ".gguf" && fs::exists(path, code);
        return named ? std::optional(path) : std::nullopt;
    }
    if (fs::exists(path / "config.json", code))
        return std::optional<fs::path>();
    std::vector<fs::path> found;
    for (fs::directory_iterator it(path, code), end; !code && it != end; it.increment(code))
        if (it->path().extension() == ".gguf")
            found.push_back(it->path());
    if (found.empty())
        return std::optional<fs::path>();
    if (found.size() > 1) {
        std::ranges::sort(found);
        return badInput("holds several GGUF files: " + found[0].filename().string() + ", " +
                            found[1].filename().string() + (found.size() > 2 ? ", ..." : ""),
                        path.string(), "name the one to read");
    }
    return std::optional(found.front());
}

} // namespace mla
