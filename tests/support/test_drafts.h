// SPDX-License-Identifier: GPL-3.0-or-later
// Drafts of the demo checkpoint made on the spot.
#pragma once

#include "core/pipeline/pipeline.h"
#include "tests/support/numeric.h"

namespace mla::test
{

/// TransMLA 28+4, as `mla-draft demo` converts it: lossy, so that it is sometimes wrong.
inline Decoder convertedStories(const std::filesystem::path& output)
{
    ConvertRequest request;
    request.checkpoint = stories();
    request.output = output;
    request.settings.kvLoraRank = 28;
    request.settings.qkRopeHeadDim = 4;
    request.settings.freqfold = 2;
    request.calibration = {"self", 16, 64};
    request.compute.device = "cpu";
    JobContext job;
    return openModel(must(convertCheckpoint(job, request)).output);
}

} // namespace mla::test
