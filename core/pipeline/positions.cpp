// SPDX-License-Identifier: GPL-3.0-or-later
// Predictions of original and draft by position in the text.
#include <algorithm>

#include "core/base/file.h"
#include "core/evaluate/position_scores.h"
#include "core/model/decoder.h"
#include "core/model/tensors.h"
#include "core/pipeline/diagnostic_support.h"

namespace mla
{
namespace
{

struct ScoredText {
    TokenWindows windows;
    std::string source;
};

Result<ScoredText> scoredText(JobContext& job, const DraftPair& pair,
                              const PositionRequest& request)
{
    ScoredText text;
    if (request.text) {
        MLA_TRY(tokenizer, Tokenizer::open(pair.original.directory()));
        MLA_TRY(content, readFile(*request.text));
        const int length = std::min({kMostPositions, pair.original.config().contextLength(),
                                     pair.draft.config().contextLength()});
        text.windows = disjointWindows(tokenizer.encode(content), length);
        text.source = request.text->string();
        if (text.windows.empty())
            return badInput("encodes to fewer than two tokens", request.text->string());
        return text;
    }
    MLA_TRY(set, measuredSequences(job, pair, request.calibration, request.compute));
    text.windows = validWindows(set);
    text.source = set.source;
    return text;
}

} // namespace

Result<PositionScores> measurePositions(JobContext& job, const PositionRequest& request)
{
    useOneThread();
    MLA_TRY(pair, openDraftPair(request.draft, request.original, request.compute));
    MLA_CHECK(checkStudyHasRun(request.study, pair.draft));
    MLA_TRY(text, scoredText(job, pair, request));
    PositionScores scores{std::move(text.source), {}};
    job.emitEvent(StageStarted{"positions", static_cast<int>(text.windows.size()), "windows", {}});
    MLA_CHECK(guarded("positions", [&]() -> Status {
        MLA_TRY(original, Decoder::load(pair.original, pair.device));
        MLA_TRY(draft, Decoder::load(pair.draft, pair.device));
        MLA_TRY(buckets, scorePositions(job, original, draft, text.windows,
                                        workerCount(request.compute, pair.device)));
        scores.buckets = std::move(buckets);
        return {};
    }));
    MLA_CHECK(
        updateRun(request.study, pair.draft, [&](RunRecord& run) { run.positions = scores; }));
    return scores;
}

PositionBucket allPositions(const PositionScores& scores)
{
    return pooled(scores.buckets);
}

} // namespace mla
