// SPDX-License-Identifier: GPL-3.0-or-later
// Statistics of one stored tensor, read in blocks: a checkpoint of any size is looked at in little
// memory. No torch here.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace mla
{

class Checkpoint;

/// All in fp64. NaN and infinities are counted and left out of everything else.
struct TensorStatistics {
    std::string name;
    std::int64_t elements = 0;
    std::int64_t zeros = 0, nans = 0, infinities = 0;
    std::vector<std::int64_t> firstNonFinite; ///< its index, one number a dimension
    /// Absent when no value is finite. `deviation` is the population's (divided by n).
    std::optional<double> minimum, maximum, mean, deviation, absoluteMaximum;
    /// Smallest and largest Euclidean norm of a row; of matrices only.
    std::optional<double> rowNormMinimum, rowNormMaximum;

    [[nodiscard]] std::int64_t nonFinite() const { return nans + infinities; }
    bool operator==(const TensorStatistics&) const = default;
};

/// Reads all of the tensor once, a block of 64 Ki elements at a time, and answers Cancelled within
/// a block when asked to stop. One whose numbers belong to scales is decoded as a whole first.
Result<TensorStatistics> tensorStatistics(const Checkpoint& checkpoint, const std::string& name,
                                          const std::stop_token& stop = {});

} // namespace mla
