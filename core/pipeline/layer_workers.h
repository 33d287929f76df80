// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>

#include "core/base/job.h"
#include "core/base/result.h"
#include "core/base/torch.h"
#include "core/calibrate/activation_stream.h"

namespace mla
{

/// Streams the calibration set through the original and calls `work` for every layer that `wanted`
/// names, on up to `workers` threads. At most workers + 1 layers' activations are in memory. Layers
/// are independent, so their order and the number of workers never change a result. The error of
/// the lowest failing layer is returned, tagged with it; a stop request ends as Cancelled.
Status forEachLayer(JobContext& job, const Checkpoint& original, const CalibrationSet& set,
                    torch::Device device, int workers,
                    const std::function<bool(LayerIndex)>& wanted,
                    const std::function<Status(LayerActivations&)>& work);

} // namespace mla
