// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/base/job.h"
#include "core/base/result.h"
#include "core/calibrate/corpus.h"
#include "core/checkpoint/model_config.h"
#include "core/checkpoint/tokenizer.h"
#include "core/pipeline/pipeline.h"

namespace mla
{

struct TaskPrompts {
    std::string name;                      ///< file stem
    std::vector<std::vector<int>> prompts; ///< token ids, cut as the settings say
};

struct LoadedTasks {
    std::vector<TaskPrompts> tasks;
    std::vector<std::string> warnings;
};

/// Reads every task file: first turn of each record, special tokens as the post-processor adds
/// them, or as one user turn of the target's chat template when the settings ask for it.
/// `tokenizer` and `target`: the target's.
Result<LoadedTasks> loadTasks(JobContext& job, const AcceptRequest& request,
                              const Tokenizer& tokenizer, const ModelConfig& target);

/// One warning a task whose prompts share a run of 16 tokens (or the whole of a shorter prompt of
/// at least 8) with the calibration data.
std::vector<std::string> overlapWarnings(const std::vector<TaskPrompts>& tasks,
                                         const CalibrationSet& calibration);

} // namespace mla
