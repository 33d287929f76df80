// SPDX-License-Identifier: GPL-3.0-or-later
// GGUF files byte by byte, right and wrong ones.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace mla::test
{

class GgufBytes
{
public:
    template <typename T>
    GgufBytes& number(T value)
    {
        char bytes[sizeof(T)];
        std::memcpy(bytes, &value, sizeof(T));
        text.append(bytes, sizeof(T));
        return *this;
    }
    GgufBytes& string(std::string_view value)
    {
        number<std::uint64_t>(value.size());
        text += value;
        return *this;
    }
    GgufBytes& start(std::uint64_t tensors, std::uint64_t keys, std::uint32_t version = 3)
    {
        text += "GGUF";
        return number(version).number(tensors).number(keys);
    }
    /// A key and the number of its value's type.
    GgufBytes& key(std::string_view name, std::uint32_t type) { return string(name).number(type); }
    GgufBytes& tensor(std::string_view name, const std::vector<std::uint64_t>& dims,
                      std::uint32_t type, std::uint64_t offset)
    {
        string(name).number(static_cast<std::uint32_t>(dims.size()));
        for (const std::uint64_t dim : dims)
            number(dim);
        return number(type).number(offset);
    }
    /// Zeros up to a multiple of 32, then `bytes` more.
    GgufBytes& data(std::size_t bytes)
    {
        text.resize((text.size() + 31) / 32 * 32 + bytes, '\0');
        return *this;
    }

    std::string text;
};

} // namespace mla::test
