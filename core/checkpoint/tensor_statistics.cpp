// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/tensor_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/tensor_decode.h"

namespace mla
{
namespace
{

constexpr std::size_t blockElements = std::size_t{1} << 16;

template <typename T>
T loaded(const std::byte* at)
{
    T value;
    std::memcpy(&value, at, sizeof value); // the mapping promises no alignment
    return value;
}

/// E5M2 is binary16 cut to its upper byte.
double fromE5m2(std::uint8_t bits)
{
    return halfToFloat(static_cast<std::uint16_t>(bits << 8U));
}

template <typename T, typename Convert>
void decodeWith(std::span<const std::byte> bytes, std::span<double> out, Convert convert)
{
    for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = convert(loaded<T>(bytes.data() + i * sizeof(T)));
}

template <typename T>
void decodeAs(std::span<const std::byte> bytes, std::span<double> out)
{
    decodeWith<T>(bytes, out, [](T value) { return static_cast<double>(value); });
}

void decodeBlock(DType dtype, std::span<const std::byte> bytes, std::span<double> out)
{
    switch (dtype) {
    case DType::F64:
        return decodeAs<double>(bytes, out);
    case DType::F32:
        return decodeAs<float>(bytes, out);
    case DType::BF16:
        return decodeWith<std::uint16_t>(bytes, out, bfloatToFloat);
    case DType::F16:
        return decodeWith<std::uint16_t>(bytes, out, halfToFloat);
    case DType::F8E5M2:
        return decodeWith<std::uint8_t>(bytes, out, fromE5m2);
    case DType::F8E4M3:
        return decodeWith<std::uint8_t>(bytes, out, e4m3ToFloat);
    case DType::I64:
        return decodeAs<std::int64_t>(bytes, out);
    case DType::I32:
        return decodeAs<std::int32_t>(bytes, out);
    case DType::I16:
        return decodeAs<std::int16_t>(bytes, out);
    case DType::I8:
        return decodeAs<std::int8_t>(bytes, out);
    case DType::U64:
        return decodeAs<std::uint64_t>(bytes, out);
    case DType::U32:
        return decodeAs<std::uint32_t>(bytes, out);
    case DType::U16:
        return decodeAs<std::uint16_t>(bytes, out);
    case DType::U8:
    case DType::Bool:
        return decodeAs<std::uint8_t>(bytes, out);
    }
}

/// Takes a tensor's values in order, in pieces that do not cross rows.
class Accumulator
{
public:
    Accumulator(std::string name, const std::vector<std::int64_t>& shape) : m_shape(shape)
    {
        m_result.name = std::move(name);
        m_rowLength = shape.size() == 2 ? static_cast<std::size_t>(shape[1]) : 0;
    }

    void add(std::span<double> values)
    {
        while (!values.empty()) {
            const std::size_t piece = m_rowLength > 0
                                          ? std::min(values.size(), m_rowLength - m_rowFilled)
                                          : values.size();
            addPiece(values.first(piece));
            values = values.subspan(piece);
        }
    }

    TensorStatistics finish()
    {
        if (m_finite > 0) {
            m_result.mean = m_mean;
            m_result.deviation = std::sqrt(m_squares / static_cast<double>(m_finite));
            m_result.minimum = m_minimum;
            m_result.maximum = m_maximum;
            m_result.absoluteMaximum = std::max(std::abs(m_minimum), std::abs(m_maximum));
        }
        return std::move(m_result);
    }

private:
    void addPiece(std::span<double> values)
    {
        const std::span<double> finite = withoutNonFinite(values);
        double sum = 0, energy = 0;
        for (const double value : finite) {
            m_minimum = std::min(m_minimum, value);
            m_maximum = std::max(m_maximum, value);
            m_result.zeros += value == 0;
            sum += value;
            energy += value * value;
        }
        merge(finite, sum);
        m_result.elements += static_cast<std::int64_t>(values.size());
        if (m_rowLength == 0)
            return;
        m_rowEnergy += energy;
        m_rowFilled += values.size();
        if (m_rowFilled == m_rowLength)
            endRow();
    }

    /// Counts NaN and infinities and closes up the rest.
    std::span<double> withoutNonFinite(std::span<double> values)
    {
        std::size_t kept = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (std::isfinite(values[i])) {
                values[kept++] = values[i];
                continue;
            }
            if (m_result.nonFinite() == 0)
                m_result.firstNonFinite = indexOf(m_result.elements + static_cast<std::int64_t>(i));
            ++(std::isnan(values[i]) ? m_result.nans : m_result.infinities);
        }
        return values.first(kept);
    }

    /// Mean and squared deviations of two sets from those of each (Chan, Golub, LeVeque 1983).
    void merge(std::span<const double> values, double sum)
    {
        if (values.empty())
            return;
        const auto count = static_cast<double>(values.size());
        const auto before = static_cast<double>(m_finite);
        const double mean = sum / count, step = mean - m_mean, total = before + count;
        double squares = 0;
        for (const double value : values)
            squares += (value - mean) * (value - mean);
        m_squares += squares + step * step * before * count / total;
        m_mean += step * count / total;
        m_finite += static_cast<std::int64_t>(values.size());
    }

    void endRow()
    {
        const double norm = std::sqrt(m_rowEnergy);
        m_result.rowNormMinimum = std::min(m_result.rowNormMinimum.value_or(norm), norm);
        m_result.rowNormMaximum = std::max(m_result.rowNormMaximum.value_or(norm), norm);
        m_rowEnergy = 0;
        m_rowFilled = 0;
    }

    [[nodiscard]] std::vector<std::int64_t> indexOf(std::int64_t flat) const
    {
        std::vector<std::int64_t> index(m_shape.size());
        for (std::size_t axis = m_shape.size(); axis-- > 0; flat /= m_shape[axis])
            index[axis] = flat % m_shape[axis];
        return index;
    }

    std::vector<std::int64_t> m_shape;
    TensorStatistics m_result;
    std::int64_t m_finite = 0;
    double m_minimum = std::numeric_limits<double>::infinity();
    double m_maximum = -std::numeric_limits<double>::infinity();
    double m_mean = 0, m_squares = 0;
    std::size_t m_rowLength = 0, m_rowFilled = 0; ///< 0: not a matrix
    double m_rowEnergy = 0;
};

} // namespace

Result<TensorStatistics> tensorStatistics(const Checkpoint& checkpoint, const std::string& name,
                                          const std::stop_token& stop)
{
    MLA_TRY(info, checkpoint.info(name));
    const auto total = static_cast<std::size_t>(info.elements());
    std::vector<float> decoded;
    std::span<const std::byte> bytes;
    if (checkpoint.isPlain(name)) {
        MLA_TRY(stored, checkpoint.bytes(name));
        bytes = stored;
    } else {
        decoded.resize(total);
        MLA_CHECK(checkpoint.readFloat32(name, decoded));
        bytes = std::as_bytes(std::span<const float>(decoded));
        info.dtype = DType::F32;
    }
    const std::size_t width = bytesPerElement(info.dtype);
    Accumulator accumulator(name, info.shape);
    std::vector<double> block(std::min(blockElements, total));
    for (std::size_t at = 0; at < total; at += blockElements) {
        if (stop.stop_requested())
            return cancelled();
        const std::span<double> values(block.data(), std::min(blockElements, total - at));
        decodeBlock(info.dtype, bytes.subspan(at * width, values.size() * width), values);
        accumulator.add(values);
    }
    return accumulator.finish();
}

} // namespace mla
