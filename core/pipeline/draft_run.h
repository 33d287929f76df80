// SPDX-License-Identifier: GPL-3.0-or-later
// The common frame of a conversion and a refinement: layers go to parts as they finish; when all
// are there the draft directory, then the study, appear whole, and the parts go.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/export/draft_directory.h"
#include "core/pipeline/pipeline.h"
#include "core/pipeline/run_support.h"
#include "core/store/parts.h"

namespace mla
{

/// Where a run writes, and whether it may.
struct RunTarget {
    std::filesystem::path output;
    std::optional<std::filesystem::path> study;
    bool overwrite = false, resume = false;
};

/// Opens the run's parts. Refuses an existing output directory unless `overwrite`, or unless
/// `resume` finds parts of this very run: a run that was killed while it put its results in place.
Result<PartsFolder> openRun(const RunTarget& target, const std::string& run,
                            const std::string& manifest);

struct FinishedRun {
    const Checkpoint& original;
    const std::string& fingerprint; ///< of the original
    const NamedCalibration& calibration;
    DraftContent content;
    RunRecord run;        ///< complete but for stages, time and memory
    std::string stage;    ///< key of the draft's StageRecord: low_rank | refined
    TokenWindows windows; ///< what perplexity is measured on; empty = held-out calibration
    torch::Device device;
    int workers = 1;
    ChangeDraft atFullRank = {}; ///< of a conversion, see scoreStages()
};
/// Writes the draft, measures its perplexity, puts the run into the study, removes the parts.
Result<RunOutcome> finishRun(JobContext& job, const RunTarget& target, PartsFolder& parts,
                             FinishedRun finished, std::chrono::steady_clock::time_point begun);

/// What a LayerFinished event says of a record.
LayerFinished layerFinished(const LayerRecord& record, const std::string& stage);

} // namespace mla
