// SPDX-License-Identifier: GPL-3.0-or-later
// The stages with what only a whole study adds: a text of its own to measure perplexity on.
#pragma once

#include "core/evaluate/perplexity.h"
#include "core/pipeline/pipeline.h"

namespace mla
{

/// `windows` empty: perplexity is measured on the held-out calibration sequences.
Result<RunOutcome> convertWith(JobContext& job, const ConvertRequest& request,
                               const TokenWindows& windows);
Result<RunOutcome> refineWith(JobContext& job, const RefineRequest& request,
                              const TokenWindows& windows);

} // namespace mla
