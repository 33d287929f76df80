// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/thin_product.h"

#include <cstring>
#include <type_traits>
#include <vector>

namespace mla
{
namespace
{

constexpr int kLanes = 8;
constexpr int kBlock = 2 * kLanes; ///< inputs taken at once
using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));
using Words = std::uint32_t __attribute__((vector_size(kLanes * sizeof(std::uint32_t))));
constexpr std::uint32_t kUpperHalf = 0xFFFF0000U;

#define MLA_INLINE inline __attribute__((always_inline))

/// A block of weights as two vectors: the first and the second half of it.
MLA_INLINE void load(const float* from, Lanes& first, Lanes& second)
{
    std::memcpy(&first, from, sizeof first);
    std::memcpy(&second, from + kLanes, sizeof second);
}
/// Those at even places and those at odd ones: no bits have to cross a lane.
MLA_INLINE void load(const Bf16Bits* from, Lanes& even, Lanes& odd)
{
    Words words;
    std::memcpy(&words, from, sizeof words);
    const Words low = words << 16U, high = words & kUpperHalf;
    std::memcpy(&even, &low, sizeof even);
    std::memcpy(&odd, &high, sizeof odd);
}

MLA_INLINE float widened(float value)
{
    return value;
}
MLA_INLINE float widened(Bf16Bits value)
{
    const std::uint32_t word = static_cast<std::uint32_t>(value) << 16U;
    float out = 0;
    std::memcpy(&out, &word, sizeof out);
    return out;
}

/// x with the inputs of each block in the order in which load() gives the weights.
template <class W>
std::vector<float> ordered(const float* x, std::int64_t rows, std::int64_t inputs)
{
    std::vector<float> out(x, x + rows * inputs);
    if constexpr (std::is_same_v<W, Bf16Bits>)
        for (std::int64_t m = 0; m < rows; ++m)
            for (std::int64_t k = 0; k + kBlock <= inputs; k += kBlock)
                for (int i = 0; i < kLanes; ++i) {
                    const std::int64_t at = m * inputs + k;
                    out[static_cast<std::size_t>(at + i)] = x[at + 2 * i];
                    out[static_cast<std::size_t>(at + kLanes + i)] = x[at + 2 * i + 1];
                }
    return out;
}

/// Rows x Outputs sums held in registers while k runs once.
template <int Rows, int Outputs, class W>
MLA_INLINE void tile(const float* x, const W* w, std::int64_t inputs, float* y,
                     std::int64_t outputs)
{
    Lanes sums[Rows][Outputs] = {};
    std::int64_t k = 0;
    for (; k + kBlock <= inputs; k += kBlock) {
        Lanes first[Outputs], second[Outputs];
        for (int n = 0; n < Outputs; ++n)
            load(w + n * inputs + k, first[n], second[n]);
        for (int m = 0; m < Rows; ++m) {
            Lanes one, two;
            std::memcpy(&one, x + m * inputs + k, sizeof one);
            std::memcpy(&two, x + m * inputs + k + kLanes, sizeof two);
            for (int n = 0; n < Outputs; ++n) {
                sums[m][n] += one * first[n];
                sums[m][n] += two * second[n];
            }
        }
    }
    for (int m = 0; m < Rows; ++m)
        for (int n = 0; n < Outputs; ++n) {
            const Lanes& s = sums[m][n];
            float sum = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
            for (std::int64_t rest = k; rest < inputs; ++rest)
                sum += x[m * inputs + rest] * widened(w[n * inputs + rest]);
            y[m * outputs + n] = sum;
        }
}

/// Rows of x against kBand rows of W, which stay in the first-level cache meanwhile; as many at a
/// time as keep eight sums going.
constexpr int kBand = 8;
template <int Rows, class W>
MLA_INLINE void band(const float* x, const W* w, std::int64_t inputs, float* y,
                     std::int64_t outputs)
{
    constexpr int atOnce = kBand / Rows;
    for (int n = 0; n < kBand; n += atOnce)
        tile<Rows, atOnce>(x, w + n * inputs, inputs, y + n, outputs);
}

template <class W>
MLA_INLINE void product(const float* x, std::int64_t rows, const W* w, std::int64_t outputs,
                        std::int64_t inputs, float* y)
{
    std::int64_t n = 0;
    for (; n + kBand <= outputs; n += kBand) {
        const W* weights = w + n * inputs;
        std::int64_t m = 0;
        for (; m + 4 <= rows; m += 4)
            band<4>(x + m * inputs, weights, inputs, y + m * outputs + n, outputs);
        for (; m + 2 <= rows; m += 2)
            band<2>(x + m * inputs, weights, inputs, y + m * outputs + n, outputs);
        if (m < rows)
            band<1>(x + m * inputs, weights, inputs, y + m * outputs + n, outputs);
    }
    for (; n < outputs; ++n)
        for (std::int64_t m = 0; m < rows; ++m)
            tile<1, 1>(x + m * inputs, w + n * inputs, inputs, y + m * outputs + n, outputs);
}

#if defined(__x86_64__)
template <class W>
__attribute__((target("avx2,fma"))) void productAvx2(const float* x, std::int64_t rows, const W* w,
                                                     std::int64_t outputs, std::int64_t inputs,
                                                     float* y)
{
    product(x, rows, w, outputs, inputs, y);
}
#endif

template <class W>
void dispatch(const float* x, std::int64_t rows, const W* w, std::int64_t outputs,
              std::int64_t inputs, float* y)
{
    const std::vector<float> values = ordered<W>(x, rows, inputs);
#if defined(__x86_64__)
    static const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (avx2) {
        productAvx2(values.data(), rows, w, outputs, inputs, y);
        return;
    }
#endif
    product(values.data(), rows, w, outputs, inputs, y);
}

} // namespace

void thinProduct(const float* x, std::int64_t rows, const float* w, std::int64_t outputs,
                 std::int64_t inputs, float* y)
{
    dispatch(x, rows, w, outputs, inputs, y);
}

void thinProduct(const float* x, std::int64_t rows, const Bf16Bits* w, std::int64_t outputs,
                 std::int64_t inputs, float* y)
{
    dispatch(x, rows, w, outputs, inputs, y);
}

} // namespace mla
