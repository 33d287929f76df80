// SPDX-License-Identifier: GPL-3.0-or-later
// Writes GGUF files that hold metadata alone.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace mla::test
{

class GgufMetadataFile
{
public:
    GgufMetadataFile& text(const std::string& key, const std::string& value)
    {
        begin(key, kString);
        string(value);
        return *this;
    }
    GgufMetadataFile& integer(const std::string& key, std::uint32_t value)
    {
        begin(key, kUInt32);
        raw(value);
        return *this;
    }
    GgufMetadataFile& boolean(const std::string& key, bool value)
    {
        begin(key, kBool);
        raw(static_cast<std::uint8_t>(value));
        return *this;
    }
    GgufMetadataFile& texts(const std::string& key, const std::vector<std::string>& values)
    {
        beginArray(key, kString, values.size());
        for (const std::string& value : values)
            string(value);
        return *this;
    }
    GgufMetadataFile& integers(const std::string& key, const std::vector<std::int32_t>& values)
    {
        beginArray(key, kInt32, values.size());
        for (const std::int32_t value : values)
            raw(value);
        return *this;
    }
    GgufMetadataFile& numbers(const std::string& key, const std::vector<float>& values)
    {
        beginArray(key, kFloat32, values.size());
        for (const float value : values)
            raw(value);
        return *this;
    }
    void write(const std::string& path) const
    {
        GgufMetadataFile head;
        head.m_bytes = "GGUF";
        head.raw(std::uint32_t{3});
        head.raw(std::uint64_t{0}); // tensors
        head.raw(m_count);
        std::string whole = head.m_bytes + m_bytes;
        whole.append((32 - whole.size() % 32) % 32, '\0');
        std::ofstream(path, std::ios::binary) << whole;
    }

private:
    static constexpr std::uint32_t kUInt32 = 4, kInt32 = 5, kFloat32 = 6, kBool = 7, kString = 8,
                                   kArray = 9;
    template <typename T>
    void raw(T value)
    {
        m_bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    void string(const std::string& value)
    {
        raw(std::uint64_t{value.size()});
        m_bytes += value;
    }
    void begin(const std::string& key, std::uint32_t type)
    {
        string(key);
        raw(type);
        ++m_count;
    }
    void beginArray(const std::string& key, std::uint32_t type, std::size_t count)
    {
        begin(key, kArray);
        raw(type);
        raw(std::uint64_t{count});
    }

    std::string m_bytes;
    std::uint64_t m_count = 0;
};

} // namespace mla::test
