// SPDX-License-Identifier: GPL-3.0-or-later
// What `fidelity` measured, as JSON and as text.
#pragma once

#include "app/cli/command.h"
#include "core/pipeline/draft_diagnostics.h"
#include "core/pipeline/pipeline.h"

namespace mla::cli
{

struct FidelityResults {
    FidelityReport report;
    std::optional<ErrorSourcesReport> sources;
    std::optional<PositionScores> positions;
    std::vector<AttentionMapRecord> maps;
};
Output fidelityOutput(const FidelityResults& results);

} // namespace mla::cli
