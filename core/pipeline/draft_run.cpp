// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pipeline/draft_run.h"

#include "core/base/elapsed.h"
#include "core/base/file.h"
#include "core/store/study.h"

namespace mla
{

namespace fs = std::filesystem;

Result<PartsFolder> openRun(const RunTarget& target, const std::string& run,
                            const std::string& manifest)
{
    const fs::path folder = partsFolder(target.study, target.output, run);
    const bool unfinished = target.resume && fs::exists(folder / "run.json");
    if (fs::exists(target.output) && !target.overwrite && !unfinished)
        return usageError(target.output.string() + " exists", "give --overwrite to replace it");
    return PartsFolder::open(folder, manifest, target.resume);
}

LayerFinished layerFinished(const LayerRecord& record, const std::string& stage)
{
    LayerFinished event;
    event.layer = record.layer;
    event.stage = stage;
    event.lossBefore = record.lossBefore;
    event.lossAfter = record.lossAfter;
    if (record.before)
        event.relativeErrorBefore = record.before->relativeError;
    if (record.after)
        event.relativeErrorAfter = record.after->relativeError;
    event.seconds = record.seconds;
    event.keptConverted = record.keptConverted;
    return event;
}

Result<RunOutcome> finishRun(JobContext& job, const RunTarget& target, PartsFolder& parts,
                             FinishedRun finished, std::chrono::steady_clock::time_point begun)
{
    RunRecord& run = finished.run;
    MLA_TRY(staged, StagedDirectory::create(target.output, target.overwrite || target.resume));
    MLA_CHECK(writeDraft(finished.content, staged.path()));
    MLA_TRY(stages, scoreStages(job, finished.original, staged.path(), finished.stage,
                                finished.windows.empty() ? heldoutWindows(finished.calibration.set)
                                                         : finished.windows,
                                finished.device, finished.workers, finished.atFullRank));
    run.stages = std::move(stages);
    run.seconds = secondsSince(begun);
    run.peakRssBytes = peakRssBytes();
    run.draftPath = fs::absolute(target.output).lexically_normal().string();
    if (job.stopRequested())
        return cancelled();
    MLA_CHECK(staged.commit());
    if (target.study)
        MLA_CHECK(updateStudy(*target.study, [&](StudyData& study) -> Status {
            study.software = softwareText();
            study.put(describeCheckpoint(finished.original, finished.fingerprint));
            study.put(toRecord(finished.calibration));
            // A refinement has what was measured of its conversion, so that every run shows where
            // quality was lost.
            if (const RunRecord* parent = study.findRun(run.parent))
                run.stages.insert(parent->stages.begin(), parent->stages.end());
            study.put(run);
            return {};
        }));
    MLA_CHECK(parts.remove());
    return RunOutcome{target.output, std::move(run)};
}

} // namespace mla
