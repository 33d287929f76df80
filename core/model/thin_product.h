// SPDX-License-Identifier: GPL-3.0-or-later
// x W^T for a few rows of x: decoding one token, or verifying k + 1. Such products are bound by
// the memory that W streams from, and BLAS libraries do not reach that bound for 2 to 32 rows. A
// bf16 W is widened to fp32 in registers, which halves what is streamed; the sums are fp32.
#pragma once

#include <cstdint>

namespace mla
{

/// One bfloat16: the upper half of a float.
using Bf16Bits = std::uint16_t;

/// y[m][n] = sum over k of x[m][k] w[n][k]; all row-major without gaps, y is overwritten. A row of
/// y depends on that row of x alone, bit for bit, whatever the number of rows. One thread.
void thinProduct(const float* x, std::int64_t rows, const float* w, std::int64_t outputs,
                 std::int64_t inputs, float* y);
void thinProduct(const float* x, std::int64_t rows, const Bf16Bits* w, std::int64_t outputs,
                 std::int64_t inputs, float* y);

} // namespace mla
