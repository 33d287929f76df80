// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pipeline/grid_study.h"

#include <algorithm>
#include <set>

#include "core/checkpoint/checkpoint.h"
#include "core/pipeline/run_support.h"
#include "core/store/study.h"

namespace mla
{
namespace
{

namespace fs = std::filesystem;

constexpr auto kOriginal = "original";

bool sharesWork(const GridPlan& plan, const GridUnit& a, const GridUnit& b)
{
    if (a.kind != b.kind || a.name == b.name)
        return false;
    return a.kind == GridUnit::Kind::Draft
               ? a.checkpoint == b.checkpoint
               : plan.file.pairs[a.pair].target == plan.file.pairs[b.pair].target;
}

template <typename Records>
void putAll(StudyData& study, Records& records)
{
    for (auto& record : records)
        study.put(std::move(record));
}

bool hasSeveralDrafts(const GridPlan& plan)
{
    return std::ranges::any_of(plan.file.pairs, [&](const GridPair& pair) {
        return pair.draft != plan.file.pairs.front().draft;
    });
}

/// A run for the draft as it is: two originals are told apart by it.
Result<RunRecord> originalRun(const fs::path& draft)
{
    MLA_TRY(checkpoint, Checkpoint::open(draft));
    RunRecord run;
    run.checkpoint = checkpointId(draft);
    run.id = run.checkpoint + "/" + kOriginal;
    run.variant = kOriginal;
    run.settingsJson = "{}";
    run.draftPath = draft.string();
    run.software = softwareText();
    run.created = utcNow();
    run.cacheElements = run.originalCacheElements = checkpoint.config().cacheElements(0);
    return run;
}

/// The measurements of `unit`, an original, as those of a run of its own.
Status nameOriginal(const GridUnit& unit, StudyData& study)
{
    MLA_TRY(run, originalRun(unit.checkpoint));
    for (AcceptanceRecord& row : study.acceptance)
        if (row.run == kOriginal) {
            row.id = run.checkpoint + "/" + row.id; // which begins with the run
            row.run = run.id;
        }
    MLA_TRY(checkpoint, Checkpoint::open(unit.checkpoint));
    MLA_TRY(fingerprint, checkpoint.fingerprint());
    study.put(describeCheckpoint(checkpoint, fingerprint));
    study.put(std::move(run));
    return {};
}

/// The perplexity of an original was measured beside a draft of it.
void fillStages(StudyData& study)
{
    for (RunRecord& run : study.runs)
        for (const RunRecord& other : study.runs)
            if (const auto stage = other.stages.find(kOriginal);
                run.variant == kOriginal && other.checkpoint == run.checkpoint &&
                stage != other.stages.end())
                run.stages[kOriginal] = stage->second;
}

} // namespace

Status seedUnit(const GridPlan& plan, const GridFolder& folder, const GridUnit& unit)
{
    std::error_code ignored;
    if (fs::exists(folder.studyOf(unit), ignored))
        return {};
    StudyData shared;
    for (const GridUnit& other : plan.units) {
        if (!sharesWork(plan, unit, other) || !fs::exists(folder.studyOf(other), ignored))
            continue;
        MLA_TRY(study, loadStudy(folder.studyOf(other)));
        putAll(shared, study.calibrations);
        putAll(shared, study.continuations);
        putAll(shared, study.chatPrompts);
        putAll(shared, study.tokenTexts);
        if (!shared.calibrations.empty() || shared.continuations.size() >= plan.file.tasks.size())
            break;
    }
    if (shared.calibrations.empty() && shared.continuations.empty())
        return {};
    return updateStudy(folder.studyOf(unit), [&](StudyData& study) -> Status {
        shared.created = study.created;
        shared.software = softwareText();
        study = std::move(shared);
        return {};
    });
}

Status mergeUnits(const GridPlan& plan, const GridFolder& folder,
                  const std::vector<const GridUnit*>& units)
{
    std::vector<StudyData> studies;
    for (const GridUnit* unit : units) {
        std::error_code ignored;
        if (!fs::exists(folder.studyOf(*unit), ignored))
            continue;
        MLA_TRY(study, loadStudy(folder.studyOf(*unit)));
        if (unit->variant == kOriginal && !study.acceptance.empty() && hasSeveralDrafts(plan))
            MLA_CHECK(nameOriginal(*unit, study));
        studies.push_back(std::move(study));
    }
    if (studies.empty())
        return {};
    return updateStudy(folder.study, [&](StudyData& all) -> Status {
        all.software = softwareText();
        for (StudyData& study : studies) {
            putAll(all, study.checkpoints);
            putAll(all, study.calibrations);
            putAll(all, study.runs);
            putAll(all, study.acceptance);
            putAll(all, study.continuations);
            putAll(all, study.chatPrompts);
            putAll(all, study.tokenTexts);
        }
        fillStages(all);
        return {};
    });
}

} // namespace mla
