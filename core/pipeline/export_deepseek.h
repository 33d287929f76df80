// SPDX-License-Identifier: GPL-3.0-or-later
// `export --layout deepseek`: the constant channels are fitted on the draft's own calibration, the
// model is written, read back as the stock classes read it, and compared with the draft.
#pragma once

#include <filesystem>
#include <optional>

#include "core/base/job.h"
#include "core/checkpoint/checkpoint.h"
#include "core/pipeline/pipeline.h"

namespace mla
{

/// A draft that loses more than this, in nats a token of KL(draft || exported), is refused.
constexpr double kLargestLayoutLoss = 0.1;

/// Writes to `staged`, a staging folder. BadInput with the reason for what the layout cannot hold.
Result<LayoutLoss> exportDeepseek(JobContext& job, const Checkpoint& draft,
                                  const ExportRequest& request, std::optional<DType> dtype,
                                  const std::filesystem::path& staged);

} // namespace mla
