// SPDX-License-Identifier: GPL-3.0-or-later
// Raw results in the JSON lines of Spec-Bench (hemingkx/Spec-Bench, evaluation/eval.py): one object
// a question, `choices[0]` holds one entry a turn of `new_tokens`, `wall_time` (seconds) and
// `decoding_steps` (`idxs`, one less, in its file for two models), and `accept_lengths`: the tokens
// that each step gave over all turns, the target's own token included. So a length is our accepted
// prefix + 1. No torch here.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/store/records.h"

namespace mla
{

/// A measurement as a file of Spec-Bench. A study keeps neither question ids nor texts nor times of
/// single prompts: `question_id` is the prompt's index in its task, `category` the task, `turns` an
/// empty text, and `wall_time` the prompt's share of the measured time by its tokens (a replay has
/// none: the list is empty). A step with nothing to draft has length 1; where the steps leave open
/// which of several prompts ended with one, the first ones get it, so sums over the file are exact.
/// `timestamp`: seconds since 1970. A BadInput error for a replay of sampling, which has expected
/// counts instead of steps.
Result<std::string> specBenchLines(const AcceptanceRecord& record, double timestamp);

/// What such a file does not say.
struct SpecBenchImport {
    int k = 0;          ///< tokens drafted a step
    std::string target; ///< the model that verified
    std::string run;    ///< the draft; empty = the file's model_id
    std::string task;   ///< empty = the file's categories, one measurement each
    std::string backend = "spec-bench";
    double temperature = 0;
};

/// The measurements in a file's text. Drafted tokens follow from k and each turn's `new_tokens` by
/// the aligned count: min(k, tokens left - 1). Only the first choice counts, as in Spec-Bench's own
/// report. Errors name `origin` and the question.
Result<std::vector<AcceptanceRecord>>
readSpecBench(const std::string& text, const std::string& origin, const SpecBenchImport& import);

} // namespace mla
