// SPDX-License-Identifier: GPL-3.0-or-later
// What `inspect` found, as JSON and for people.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/convert/conversion_limits.h"
#include "core/pipeline/pipeline.h"

namespace mla::cli
{

/// A conversion that was only thought through.
struct CachePlan {
    ConvertSettings settings;
    std::int64_t elements = 0; ///< per token and layer
    ConversionLimits limits;
    std::vector<ConversionIssue> warnings;
};

struct Inspection {
    InspectReport report;
    std::string cacheDtype; ///< a name of cacheTypes()
    CacheUse use;
    bool contextGiven = false; ///< the table shows the usual lengths and this one
    std::optional<CachePlan> plan;
    std::optional<std::vector<TensorStatistics>> statistics;
};

nlohmann::json inspectionJson(const Inspection& inspection);
std::string inspectionText(const Inspection& inspection);

} // namespace mla::cli
