// SPDX-License-Identifier: GPL-3.0-or-later
// `quantization_config` of a config.json: FP8 weights with scales are read, all else is refused by
// name. No torch here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/base/result.h"

namespace mla
{

/// Weights stored as F8_E4M3 with scales in a tensor beside each: weight = stored x scale.
/// Activations stay in full precision here, whatever scheme the config names for them.
struct Fp8Quantization {
    std::string scaleSuffix; ///< behind the weight's name: "_scale_inv" or "_scale"
    /// Rows and columns that share a scale; without it one scale for the tensor or for each row.
    std::optional<std::pair<std::int64_t, std::int64_t>> block;
    std::vector<std::string> notConverted; ///< modules that keep their dtype
};

/// Nothing when the config names no quantisation. Read are quant_method "fp8" (as DeepSeek-V3 and
/// Qwen3-FP8 have it) and "compressed-tensors" of the format "float-quantized".
Result<std::optional<Fp8Quantization>> parseQuantization(const nlohmann::json& config,
                                                         const std::string& origin);

/// How many rows and columns of a weight share one scale, and the grid of scales.
struct ScaleGrid {
    std::int64_t rowsPerScale = 0, columnsPerScale = 0;
    std::int64_t gridColumns = 0;
};
/// The grid for a weight [rows, columns] whose scales have `scaleShape`, or nothing when they do
/// not belong together.
[[nodiscard]] std::optional<ScaleGrid> scaleGrid(const Fp8Quantization& quantization,
                                                 const std::vector<std::int64_t>& weightShape,
                                                 const std::vector<std::int64_t>& scaleShape);

} // namespace mla
