// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/safetensors_header.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include <nlohmann/json.hpp>

namespace mla
{

namespace
{

constexpr std::uint64_t largestDim = std::numeric_limits<std::int64_t>::max();

std::string inQuotes(const std::string& name)
{
    constexpr std::size_t shown = 200;
    return "'" + (name.size() > shown ? name.substr(0, shown) + "..." : name) + "'";
}

/// Receives the parser's events and keeps only what the format allows, so that neither depth nor
/// breadth of a hostile header costs memory. Returning false ends the parse.
class HeaderHandler : public nlohmann::json_sax<nlohmann::json>
{
public:
    SafetensorsHeader header;
    std::string problem;

    bool null() override
    {
        if (m_place == Place::Metadata && m_depth == 1) {
            m_place = Place::Top; // the reference reader takes null for "no metadata"
            return true;
        }
        return scalar("null");
    }
    bool boolean(bool /*value*/) override { return scalar("a boolean"); }
    bool number_integer(number_integer_t /*value*/) override { return scalar("a negative number"); }
    bool number_float(number_float_t /*value*/, const string_t& /*text*/) override
    {
        return scalar("a number that is not a 64-bit integer");
    }
    bool binary(binary_t& /*value*/) override { return scalar("binary data"); }
    bool number_unsigned(number_unsigned_t value) override;
    bool string(string_t& value) override;
    bool start_object(std::size_t /*count*/) override;
    bool key(string_t& name) override;
    bool end_object() override;
    bool start_array(std::size_t /*count*/) override;
    bool end_array() override;
    bool parse_error(std::size_t position, const std::string& /*token*/,
                     const nlohmann::detail::exception& error) override
    {
        (void)position;
        return refuse(std::string("header is not valid JSON: ") + error.what());
    }

private:
    enum class Place { Start, Top, Metadata, Tensor, Dtype, Shape, Offsets, Unknown };

    bool refuse(std::string why)
    {
        if (problem.empty())
            problem = std::move(why);
        return false;
    }
    bool refuseTensor(const std::string& why)
    {
        return refuse("tensor " + inQuotes(m_name) + ": " + why);
    }
    bool scalar(const std::string& what);
    bool finishTensor();

    static constexpr int deepest = 32;
    Place m_place = Place::Start;
    int m_depth = 0;              ///< open objects and arrays
    int m_unknownDepth = 0;       ///< depth at which an unknown key of a tensor stands
    std::string m_name;           ///< of the current tensor, or key of the metadata
    std::set<std::string> m_keys; ///< seen in the current tensor
    bool m_sawMetadata = false;
    TensorInfo m_tensor;
    std::vector<std::uint64_t> m_offsets;
};

bool HeaderHandler::scalar(const std::string& what)
{
    switch (m_place) {
    case Place::Start:
        return refuse("header must be a JSON object, not " + what);
    case Place::Metadata:
        return refuse("__metadata__ must map strings to strings, but holds " + what);
    case Place::Dtype:
        return refuseTensor("dtype must be a string, not " + what);
    case Place::Shape:
        return refuseTensor("shape must be a list of integers from 0 on, but holds " + what);
    case Place::Offsets:
        return refuseTensor("data_offsets must be two integers from 0 on, but holds " + what);
    case Place::Unknown:
        if (m_depth == m_unknownDepth)
            m_place = Place::Tensor;
        return true;
    default:
        return refuseTensor("must be described by an object, not by " + what);
    }
}

bool HeaderHandler::number_unsigned(number_unsigned_t value)
{
    if (m_place == Place::Shape && m_depth == 3) {
        if (value > largestDim)
            return refuseTensor("dimension " + std::to_string(value) + " is too large");
        m_tensor.shape.push_back(static_cast<std::int64_t>(value));
        return true;
    }
    if (m_place == Place::Offsets && m_depth == 3) {
        if (m_offsets.size() == 2)
            return refuseTensor("data_offsets must be two integers, but holds more");
        m_offsets.push_back(value);
        return true;
    }
    return scalar("a number");
}

bool HeaderHandler::string(string_t& value)
{
    if (m_place == Place::Metadata && m_depth == 2) {
        header.metadata[m_name] = value;
        return true;
    }
    if (m_place == Place::Dtype) {
        const std::optional<DType> dtype = dtypeFromName(value);
        if (!dtype)
            return refuseTensor("dtype " + inQuotes(value) + " is not supported");
        m_tensor.dtype = *dtype;
        m_place = Place::Tensor;
        return true;
    }
    return scalar("a string");
}

bool HeaderHandler::start_object(std::size_t /*count*/)
{
    if (++m_depth > deepest)
        return refuse("header is nested too deeply");
    if (m_place == Place::Start) {
        m_place = Place::Top;
        return true;
    }
    if (m_place == Place::Unknown || (m_place == Place::Metadata && m_depth == 2))
        return true;
    if (m_place == Place::Tensor && m_depth == 2) {
        m_tensor = {};
        m_offsets.clear();
        m_keys.clear();
        return true;
    }
    return scalar("an object");
}

bool HeaderHandler::key(string_t& name)
{
    if (m_place == Place::Top) {
        m_name = name;
        if (name == "__metadata__") {
            m_place = Place::Metadata;
            return !std::exchange(m_sawMetadata, true) || refuse("__metadata__ stands there twice");
        }
        m_place = Place::Tensor;
        return !header.tensors.contains(name) || refuseTensor("is named twice");
    }
    if (m_place == Place::Metadata) {
        m_name = name;
        return !header.metadata.contains(name) ||
               refuse("__metadata__ names " + inQuotes(name) + " twice");
    }
    if (m_place == Place::Tensor) {
        if (!m_keys.insert(name).second)
            return refuseTensor("key " + inQuotes(name) + " stands there twice");
        if (name == "dtype")
            m_place = Place::Dtype;
        else if (name == "shape")
            m_place = Place::Shape;
        else if (name == "data_offsets")
            m_place = Place::Offsets;
        else {
            m_place = Place::Unknown;
            m_unknownDepth = m_depth;
        }
    }
    return true; // keys below an unknown key are skipped
}

bool HeaderHandler::end_object()
{
    --m_depth;
    if (m_place == Place::Unknown) {
        if (m_depth == m_unknownDepth)
            m_place = Place::Tensor;
        return true;
    }
    if (m_place == Place::Tensor && !finishTensor())
        return false;
    m_place = Place::Top;
    return true;
}

bool HeaderHandler::finishTensor()
{
    for (const char* required : {"dtype", "shape", "data_offsets"})
        if (!m_keys.contains(required))
            return refuseTensor(std::string("has no ") + required);
    m_tensor.begin = m_offsets[0];
    m_tensor.end = m_offsets[1];
    header.tensors.emplace(m_name, std::move(m_tensor));
    return true;
}

bool HeaderHandler::start_array(std::size_t /*count*/)
{
    if (++m_depth > deepest)
        return refuse("header is nested too deeply");
    const bool expected = (m_place == Place::Shape || m_place == Place::Offsets) && m_depth == 3;
    return expected || m_place == Place::Unknown || scalar("a list");
}

bool HeaderHandler::end_array()
{
    --m_depth;
    if (m_place == Place::Unknown) {
        if (m_depth == m_unknownDepth)
            m_place = Place::Tensor;
        return true;
    }
    if (m_place == Place::Offsets && m_offsets.size() != 2)
        return refuseTensor("data_offsets must be two integers");
    m_place = Place::Tensor;
    return true;
}

/// One tensor's byte range against its own shape and the data section.
std::string tensorProblem(const TensorInfo& info, std::uint64_t dataBytes)
{
    const std::string range =
        "[" + std::to_string(info.begin) + ", " + std::to_string(info.end) + "]";
    if (info.begin > info.end)
        return "data_offsets " + range + " are reversed";
    if (info.end > dataBytes)
        return "data_offsets " + range + " reach beyond the data section of " +
               std::to_string(dataBytes) + " bytes";
    const std::optional<std::uint64_t> size = tensorBytes(info.dtype, info.shape);
    if (!size)
        return "the number of bytes of its shape overflows 64 bits";
    if (*size != info.end - info.begin)
        return "shape and dtype " + std::string(dtypeName(info.dtype)) + " need " +
               std::to_string(*size) + " bytes, data_offsets " + range + " hold " +
               std::to_string(info.end - info.begin);
    return {};
}

/// The tensors, ordered by place, must follow each other without overlap or hole to the very end.
std::string coverageProblem(const SafetensorsHeader& header, std::uint64_t dataBytes)
{
    std::vector<const std::pair<const std::string, TensorInfo>*> order;
    order.reserve(header.tensors.size());
    for (const auto& entry : header.tensors)
        order.push_back(&entry);
    std::ranges::sort(order, [](const auto* a, const auto* b) {
        return std::pair(a->second.begin, a->second.end) <
               std::pair(b->second.begin, b->second.end);
    });
    std::uint64_t expected = 0;
    for (const auto* entry : order) {
        const TensorInfo& info = entry->second;
        if (info.begin != expected)
            return "tensor " + inQuotes(entry->first) + ": begins at byte " +
                   std::to_string(info.begin) + " of the data section, where " +
                   (info.begin < expected ? "it overlaps the tensor before it"
                                          : "bytes before it belong to no tensor") +
                   " (" + std::to_string(expected) + " is expected)";
        expected = info.end;
    }
    if (expected != dataBytes)
        return "tensors end at byte " + std::to_string(expected) + " of a data section of " +
               std::to_string(dataBytes) + " bytes";
    return {};
}

} // namespace

std::optional<std::uint64_t> tensorBytes(DType dtype, std::span<const std::int64_t> shape)
{
    // In this order, with the check after every factor: a zero does not excuse an overflow before
    // it.
    std::uint64_t elements = 1;
    for (const std::int64_t dim : shape)
        if (dim < 0 || __builtin_mul_overflow(elements, static_cast<std::uint64_t>(dim), &elements))
            return std::nullopt;
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(elements, bytesPerElement(dtype), &bytes) || bytes > largestDim)
        return std::nullopt;
    return bytes;
}

Result<std::string_view> headerText(std::span<const std::byte> file, const std::string& origin)
{
    if (file.size() < safetensorsLengthBytes)
        return badInput("is no safetensors file: " + std::to_string(file.size()) +
                            " bytes, 8 are needed for the header length",
                        origin);
    std::uint64_t length = 0;
    std::memcpy(&length, file.data(), safetensorsLengthBytes);
    if (length > safetensorsHeaderLimit)
        return badInput("header length " + std::to_string(length) + " exceeds the limit of " +
                            std::to_string(safetensorsHeaderLimit) + " bytes",
                        origin);
    if (length > file.size() - safetensorsLengthBytes)
        return badInput("header length " + std::to_string(length) + " reaches beyond the file of " +
                            std::to_string(file.size()) + " bytes",
                        origin, "the file may be incomplete");
    return std::string_view(reinterpret_cast<const char*>(file.data()) + safetensorsLengthBytes,
                            length);
}

Result<SafetensorsHeader> parseSafetensorsHeader(std::string_view text, std::uint64_t dataBytes,
                                                 const std::string& origin)
{
    // The parser would skip a byte order mark and end at a NUL, which the format does not allow.
    if (text.empty() || text.starts_with("\xEF\xBB\xBF"))
        return badInput("header does not begin with '{'", origin);
    if (text.find('\0') != std::string_view::npos)
        return badInput("header is not valid JSON: it contains a NUL byte", origin);
    HeaderHandler handler;
    if (!nlohmann::json::sax_parse(text, &handler))
        return badInput(handler.problem.empty() ? "header is not valid JSON" : handler.problem,
                        origin);
    for (const auto& [name, info] : handler.header.tensors)
        if (const std::string problem = tensorProblem(info, dataBytes); !problem.empty())
            return badInput("tensor " + inQuotes(name) + ": " + problem, origin);
    if (const std::string problem = coverageProblem(handler.header, dataBytes); !problem.empty())
        return badInput(problem, origin);
    return std::move(handler.header);
}

} // namespace mla
