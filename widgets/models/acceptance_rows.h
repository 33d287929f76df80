// SPDX-License-Identifier: GPL-3.0-or-later
// Acceptance measurements made ready for a table: metrics, and the change against the matched
// partial-rope baseline.
#pragma once

#include <optional>
#include <vector>

#include <QString>

#include "core/evaluate/acceptance.h"
#include "core/store/records.h"

namespace mla::ui
{

/// A change is material beyond half a percentage point of acceptance.
inline constexpr double materialChangePp = 0.5;

struct AcceptanceRow {
    QString run, converter, variant, target, task, backend, method;
    bool pooled = false; ///< all tasks of one draft together
    int k = 0;
    AcceptanceMetrics metrics;
    std::optional<double> deltaPp; ///< rate minus the matched partial-rope draft's, in pp
    std::optional<double> tokensPerSecond;
};

[[nodiscard]] AcceptanceMetrics metricsOf(const AcceptanceRecord& record);

/// One row per measurement, and one pooled row per draft and settings measured on several tasks.
[[nodiscard]] std::vector<AcceptanceRow> acceptanceRows(const StudyData& study);

} // namespace mla::ui
