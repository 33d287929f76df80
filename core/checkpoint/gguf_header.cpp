// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/gguf_header.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <vector>

#include "core/checkpoint/tokenizer_unicode.h"

namespace mla
{

namespace
{

constexpr std::uint32_t lastType = static_cast<std::uint32_t>(GgufType::Float64);
constexpr std::uint64_t longestKey = 65535;               // bytes, as the format says
constexpr std::uint64_t longestName = 64;                 // bytes, GGML_MAX_NAME
constexpr std::uint32_t mostDimensions = 4;               // GGML_MAX_DIMS
constexpr std::uint64_t leastKeyBytes = 8 + 4 + 1;        // length, type, the smallest value
constexpr std::uint64_t leastTensorBytes = 8 + 4 + 4 + 8; // length, dimensions, type, offset
// Far above any real file; they keep a hostile one from costing seconds or gigabytes.
constexpr std::uint64_t mostKeys = 1U << 16U;
constexpr std::uint64_t mostTensors = 1U << 18U;
constexpr std::uint64_t mostTexts = 1U << 24U; ///< strings or arrays in an array
constexpr int deepestArray = 8;
constexpr std::int64_t defaultAlignment = 32;
constexpr const char* alignmentKey = "general.alignment";

/// A name from the file, made fit for a message.
std::string inQuotes(std::string_view name)
{
    constexpr std::size_t shown = 200;
    std::string text;
    for (const char c : name.substr(0, shown))
        text += c >= ' ' && c <= '~' ? c : '?';
    return "'" + text + (name.size() > shown ? "...'" : "'");
}

/// Reads forward through the file's bytes. The first problem is kept and ends all reading.
class Cursor
{
public:
    explicit Cursor(std::span<const std::byte> file) : m_file(file) {}

    [[nodiscard]] std::uint64_t position() const { return m_position; }
    [[nodiscard]] std::uint64_t remaining() const { return m_file.size() - m_position; }
    [[nodiscard]] const std::string& problem() const { return m_problem; }
    [[nodiscard]] bool ok() const { return m_problem.empty(); }
    void refuse(std::string why)
    {
        if (m_problem.empty())
            m_problem = std::move(why);
    }

    template <typename T>
    T read(const std::string& what)
    {
        T value = {};
        if (const auto bytes = take(sizeof(T), what); bytes.size() == sizeof(T))
            std::memcpy(&value, bytes.data(), sizeof(T));
        return value;
    }
    std::span<const std::byte> take(std::uint64_t count, const std::string& what)
    {
        if (!ok())
            return {};
        if (count > remaining()) {
            refuse(what + " of " + std::to_string(count) + " bytes at byte " +
                   std::to_string(m_position) + " reaches beyond the file of " +
                   std::to_string(m_file.size()) + " bytes");
            return {};
        }
        const auto bytes = m_file.subspan(m_position, count);
        m_position += count;
        return bytes;
    }
    /// A length and that many bytes of text.
    std::string_view text(std::uint64_t longest, const std::string& what)
    {
        const auto length = read<std::uint64_t>("the length of " + what);
        if (length > longest)
            refuse(what + " is " + std::to_string(length) + " bytes long, at most " +
                   std::to_string(longest) + " are allowed");
        const auto bytes = take(length, what);
        return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }
    [[nodiscard]] std::span<const std::byte> since(std::uint64_t begin) const
    {
        return m_file.subspan(begin, m_position - begin);
    }

private:
    std::span<const std::byte> m_file;
    std::uint64_t m_position = 0;
    std::string m_problem;
};

class HeaderParser
{
public:
    explicit HeaderParser(std::span<const std::byte> file) : m_cursor(file), m_size(file.size()) {}

    void parse();
    [[nodiscard]] const std::string& problem() const { return m_cursor.problem(); }

    std::map<std::string, GgufValue> values;
    std::map<std::string, GgufTensor> tensors;
    std::uint64_t dataStart = 0;

private:
    std::uint32_t readVersion();
    void readPair();
    void readTensor();
    void readShape(GgufTensor& tensor, const std::string& where);
    void setRange(GgufTensor& tensor, std::uint64_t offset, const std::string& where);
    void skipElements(GgufType type, std::uint64_t count, const std::string& where, int depth);
    GgufType readType(const std::string& where);
    std::uint64_t readCount(std::uint64_t leastBytes, std::uint64_t most, const char* what);
    void readAlignment();
    void placeData();
    void checkOverlap();

    Cursor m_cursor;
    std::uint64_t m_size;
    std::uint64_t m_alignment = defaultAlignment;
};

std::uint32_t HeaderParser::readVersion()
{
    const auto magic = m_cursor.take(4, "the format's mark");
    if (m_cursor.ok() && std::memcmp(magic.data(), "GGUF", 4) != 0)
        m_cursor.refuse("is no GGUF file: it does not begin with 'GGUF'");
    const auto version = m_cursor.read<std::uint32_t>("the version");
    if (!m_cursor.ok() || version == 2 || version == 3)
        return version;
    if ((version & 0xFFFFU) == 0)
        m_cursor.refuse("is a big-endian GGUF file; little-endian ones are supported");
    m_cursor.refuse("GGUF version " + std::to_string(version) +
                    " is not supported (supported: 2 and 3)");
    return version;
}

std::uint64_t HeaderParser::readCount(std::uint64_t leastBytes, std::uint64_t most,
                                      const char* what)
{
    const auto count = m_cursor.read<std::uint64_t>(std::string("the number of ") + what);
    if (m_cursor.ok() && count > m_size / leastBytes)
        m_cursor.refuse("the number of " + std::string(what) + ", " + std::to_string(count) +
                        ", is more than a file of " + std::to_string(m_size) +
                        " bytes can describe");
    if (m_cursor.ok() && count > most)
        m_cursor.refuse("the number of " + std::string(what) + ", " + std::to_string(count) +
                        ", exceeds the limit of " + std::to_string(most));
    return count;
}

GgufType HeaderParser::readType(const std::string& where)
{
    const auto number = m_cursor.read<std::uint32_t>("the type of " + where);
    if (m_cursor.ok() && number > lastType)
        m_cursor.refuse(where + " has the unknown type " + std::to_string(number));
    return static_cast<GgufType>(std::min(number, lastType));
}

void HeaderParser::skipElements(GgufType type, std::uint64_t count, const std::string& where,
                                int depth)
{
    if (const std::size_t size = ggufTypeBytes(type); size > 0) {
        std::uint64_t bytes = 0;
        if (__builtin_mul_overflow(count, size, &bytes))
            m_cursor.refuse(where + ": " + std::to_string(count) + " elements overflow 64 bits");
        m_cursor.take(bytes, where);
        return;
    }
    if (depth > deepestArray)
        m_cursor.refuse(where + " is nested too deeply");
    if (count > mostTexts)
        m_cursor.refuse(where + " holds " + std::to_string(count) + " elements, at most " +
                        std::to_string(mostTexts) + " are allowed");
    // Every element takes bytes of the file, so that a huge count ends at the file's end.
    for (std::uint64_t i = 0; i < count && m_cursor.ok(); ++i) {
        if (type == GgufType::String) {
            m_cursor.text(std::numeric_limits<std::uint64_t>::max(), where);
        } else {
            const GgufType inner = readType(where);
            skipElements(inner, m_cursor.read<std::uint64_t>(where), where, depth + 1);
        }
    }
}

void HeaderParser::readPair()
{
    const std::string key(m_cursor.text(longestKey, "a metadata key"));
    if (!m_cursor.ok())
        return;
    const std::string where = "metadata key " + inQuotes(key);
    if (key.empty() || !tok::isValidUtf8(key) || key.find('\0') != std::string::npos)
        m_cursor.refuse(where + " is not valid text");
    if (values.contains(key))
        m_cursor.refuse(where + " stands there twice");
    GgufValue value;
    value.type = readType(where);
    if (value.type == GgufType::Array) {
        value.isArray = true;
        value.type = readType(where);
        value.count = m_cursor.read<std::uint64_t>(where);
    }
    const std::uint64_t begin = m_cursor.position();
    skipElements(value.type, value.count, where, 0);
    if (!m_cursor.ok())
        return;
    value.bytes = m_cursor.since(begin);
    values.emplace(key, value);
}

void HeaderParser::readShape(GgufTensor& tensor, const std::string& where)
{
    const auto dimensions = m_cursor.read<std::uint32_t>(where);
    if (m_cursor.ok() && (dimensions == 0 || dimensions > mostDimensions))
        m_cursor.refuse(where + " has " + std::to_string(dimensions) + " dimensions, 1 to " +
                        std::to_string(mostDimensions) + " are allowed");
    std::uint64_t elements = 1;
    for (std::uint32_t i = 0; i < dimensions && m_cursor.ok(); ++i) {
        const auto size = m_cursor.read<std::uint64_t>(where);
        if (size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) ||
            __builtin_mul_overflow(elements, size, &elements))
            m_cursor.refuse(where + ": the number of its elements overflows 64 bits");
        tensor.shape.push_back(static_cast<std::int64_t>(size));
    }
    std::ranges::reverse(tensor.shape); // the format names the fastest dimension first
}

void HeaderParser::setRange(GgufTensor& tensor, std::uint64_t offset, const std::string& where)
{
    const GgmlTraits& traits = traitsOf(tensor.type);
    const auto row = static_cast<std::uint64_t>(tensor.shape.back());
    if (row % traits.blockElements != 0)
        m_cursor.refuse(where + ": rows of " + std::to_string(row) + " are no multiple of the " +
                        std::to_string(traits.blockElements) + " in a block of " +
                        std::string(traits.name));
    std::uint64_t elements = 1; // readShape found that it does not overflow
    for (const std::int64_t size : tensor.shape)
        elements *= static_cast<std::uint64_t>(size);
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(elements / traits.blockElements, traits.blockBytes, &bytes) ||
        __builtin_add_overflow(offset, bytes, &tensor.end))
        m_cursor.refuse(where + ": the number of its bytes overflows 64 bits");
    tensor.begin = offset;
}

void HeaderParser::readTensor()
{
    const std::string name(m_cursor.text(longestName, "a tensor's name"));
    if (!m_cursor.ok())
        return;
    const std::string where = "tensor " + inQuotes(name);
    if (name.empty() || !tok::isValidUtf8(name) || name.find('\0') != std::string::npos)
        m_cursor.refuse(where + ": its name is not valid text");
    if (tensors.contains(name))
        m_cursor.refuse(where + " is named twice");
    GgufTensor tensor;
    readShape(tensor, where);
    const auto number = m_cursor.read<std::uint32_t>(where);
    const auto offset = m_cursor.read<std::uint64_t>(where);
    if (!m_cursor.ok())
        return;
    const std::optional<GgmlType> type = ggmlTypeFromNumber(number);
    if (!type) {
        m_cursor.refuse(where + " is stored as " + ggmlTypeText(number) +
                        ", which is not supported (supported: " + ggmlTypesRead() + ")");
        return;
    }
    tensor.type = *type;
    setRange(tensor, offset, where);
    tensors.emplace(name, std::move(tensor));
}

void HeaderParser::readAlignment()
{
    const auto it = values.find(alignmentKey);
    if (it == values.end())
        return;
    std::uint32_t alignment = 0;
    if (it->second.type != GgufType::UInt32 || it->second.isArray) {
        m_cursor.refuse(std::string("metadata key '") + alignmentKey + "' must be a UINT32");
        return;
    }
    std::memcpy(&alignment, it->second.bytes.data(), sizeof alignment);
    if (!std::has_single_bit(alignment))
        m_cursor.refuse(std::string("metadata key '") + alignmentKey + "' is " +
                        std::to_string(alignment) + ", a power of two is expected");
    m_alignment = alignment;
}

void HeaderParser::placeData()
{
    // A file without tensors may end with its header.
    const std::uint64_t behind = m_cursor.position() % m_alignment;
    dataStart = m_cursor.position() + (behind == 0 ? 0 : m_alignment - behind);
    const std::uint64_t dataBytes = dataStart < m_size ? m_size - dataStart : 0;
    for (const auto& [name, tensor] : tensors) {
        const std::string where = "tensor " + inQuotes(name);
        if (tensor.begin % m_alignment != 0)
            m_cursor.refuse(where + ": offset " + std::to_string(tensor.begin) +
                            " is no multiple of the alignment " + std::to_string(m_alignment));
        if (tensor.end > dataBytes)
            m_cursor.refuse(where + ": bytes " + std::to_string(tensor.begin) + " to " +
                            std::to_string(tensor.end) + " reach beyond the data section of " +
                            std::to_string(dataBytes) + " bytes");
    }
}

void HeaderParser::checkOverlap()
{
    std::vector<const std::pair<const std::string, GgufTensor>*> order;
    order.reserve(tensors.size());
    for (const auto& entry : tensors)
        if (entry.second.begin < entry.second.end)
            order.push_back(&entry);
    std::ranges::sort(order, {}, [](const auto* entry) { return entry->second.begin; });
    for (std::size_t i = 1; i < order.size(); ++i)
        if (order[i]->second.begin < order[i - 1]->second.end)
            m_cursor.refuse("tensor " + inQuotes(order[i]->first) + " overlaps tensor " +
                            inQuotes(order[i - 1]->first));
}

void HeaderParser::parse()
{
    readVersion();
    const std::uint64_t tensorCount = readCount(leastTensorBytes, mostTensors, "tensors");
    const std::uint64_t pairCount = readCount(leastKeyBytes, mostKeys, "metadata keys");
    for (std::uint64_t i = 0; i < pairCount && m_cursor.ok(); ++i)
        readPair();
    for (std::uint64_t i = 0; i < tensorCount && m_cursor.ok(); ++i)
        readTensor();
    if (m_cursor.ok())
        readAlignment();
    if (m_cursor.ok())
        placeData();
    if (m_cursor.ok())
        checkOverlap();
}

} // namespace

std::size_t ggufTypeBytes(GgufType type)
{
    switch (type) {
    case GgufType::UInt8:
    case GgufType::Int8:
    case GgufType::Bool:
        return 1;
    case GgufType::UInt16:
    case GgufType::Int16:
        return 2;
    case GgufType::UInt32:
    case GgufType::Int32:
    case GgufType::Float32:
        return 4;
    case GgufType::UInt64:
    case GgufType::Int64:
    case GgufType::Float64:
        return 8;
    case GgufType::String:
    case GgufType::Array:
        break;
    }
    return 0;
}

Result<GgufHeader> parseGgufHeader(std::span<const std::byte> file, const std::string& origin)
{
    HeaderParser parser(file);
    parser.parse();
    if (!parser.problem().empty())
        return badInput(parser.problem(), origin);
    return GgufHeader{GgufMetadata(origin, std::move(parser.values)), std::move(parser.tensors),
                      parser.dataStart};
}

} // namespace mla
