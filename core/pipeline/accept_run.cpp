// SPDX-License-Identifier: GPL-3.0-or-later
#include <nlohmann/json.hpp>

#include <atomic>
#include <chrono>
#include <numeric>

#include "core/base/sha256.h"
#include "core/evaluate/replay.h"
#include "core/export/imported_draft.h"
#include "core/model/sampling.h"
#include "core/model/tensors.h"
#include "core/pipeline/accept_engine.h"
#include "core/pipeline/continuation_record.h"
#include "core/pipeline/run_support.h"
#include "core/store/study.h"

namespace mla
{
namespace
{

namespace fs = std::filesystem;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr float kNearTie = 1e-3F; // top-2 margins below it may fall either way in another pass

double since(Clock::time_point begun)
{
    return std::chrono::duration<double>(Clock::now() - begun).count();
}

struct PromptOutcome {
    AlignedCounts counts;
    int tokens = 0;
    double seconds = 0;
    int nearTies = 0;
    std::optional<AcceptRow::Divergence> divergence;
};

/// One acceptance measurement in work: every task, one target, one draft, one method.
class AcceptRun
{
public:
    AcceptRun(JobContext& job, const AcceptRequest& request) : m_job(job), m_request(request) {}
    Result<AcceptOutcome> run();

private:
    Status open();
    Status loadModels();
    Result<AcceptRow> measureTask(const TaskPrompts& task, std::vector<StepCount>& steps,
                                  std::int64_t& plainSteps);
    /// The target's own greedy continuations: from the study, or generated and stored there.
    Result<std::vector<Continuation>> continuations(const TaskPrompts& task);
    Result<PromptOutcome> replayed(const std::vector<int>& prompt, const Continuation& greedy,
                                   int index) const;
    /// `greedy` null: the text is sampled.
    Result<PromptOutcome> speculated(const std::vector<int>& prompt, const Continuation* greedy,
                                     int index);
    Status openEngine(const std::vector<TaskPrompts>& tasks);
    Status store(const TaskPrompts& task, const AcceptRow& row, const std::vector<StepCount>& steps,
                 std::int64_t plainSteps, double seconds);
    [[nodiscard]] AcceptRow pooled(const std::vector<AcceptRow>& rows,
                                   const std::vector<std::vector<StepCount>>& steps) const;
    [[nodiscard]] std::string continuationId(const TaskPrompts& task) const;
    [[nodiscard]] const AcceptSettings& settings() const { return m_request.settings; }
    [[nodiscard]] bool replaying() const { return m_method == "replay"; }
    [[nodiscard]] bool sampling() const { return settings().temperature > 0; }

    JobContext& m_job;
    const AcceptRequest& m_request;
    std::optional<AcceptPair> m_pair;
    std::optional<Decoder> m_target, m_draft;
    std::string m_method;
    StopRule m_stop;
    torch::Device m_device = torch::kCPU;
    int m_workers = 1;
    std::unique_ptr<AcceptEngine> m_engine; ///< null when replaying
    int m_promptsDone = 0;                  ///< of earlier tasks
};

Status AcceptRun::open()
{
    MLA_CHECK(validate(settings()));
    if (settings().tasks.empty())
        return usageError("--tasks: at least one JSONL file of prompts is needed");
    const bool replayable = settings().backend == "native" && !sampling();
    m_method = !settings().method.empty() ? settings().method
               : replayable               ? "replay"
                                          : "speculative";
    MLA_TRY(device, resolveDevice(m_request.compute.device));
    m_device = device;
    m_workers = workerCount(m_request.compute, m_device);
    MLA_TRY(pair, openPair(m_request));
    m_pair = std::move(pair);
    m_stop = {m_pair->target.config().eosTokenIds, settings().minNewTokens, {}};
    if (const SharedTokens& shared = m_pair->shared; !shared.whole)
        m_stop.vocabulary = {shared.size, torch::tensor(shared.holes, torch::kInt64).to(m_device)};
    return {};
}

Status AcceptRun::loadModels()
{
    // A Python backend loads both itself: the target's own greedy text is all that is wanted here.
    const bool native = settings().backend == "native";
    if (!native && sampling())
        return {};
    MLA_TRY(targetModel, Decoder::load(m_pair->target, m_device));
    m_target = std::move(targetModel);
    if (!native)
        return {};
    std::error_code ignored;
    if (fs::equivalent(m_request.target, m_request.draft, ignored)) {
        m_draft = m_target; // tensors are shared
        return {};
    }
    MLA_TRY(draftModel, Decoder::load(m_pair->draft, m_device));
    m_draft = std::move(draftModel);
    return {};
}

std::string AcceptRun::continuationId(const TaskPrompts& task) const
{
    std::string key = m_pair->targetFingerprint + "|" + std::to_string(settings().maxNewTokens) +
                      "|" + std::to_string(settings().minNewTokens);
    if (const SharedTokens& shared = m_pair->shared; !shared.whole) {
        key += "|of " + std::to_string(shared.size);
        for (const int hole : shared.holes)
            key += "-" + std::to_string(hole);
    }
    for (const std::vector<int>& prompt : task.prompts) {
        key += "|";
        for (const int id : prompt)
            key += std::to_string(id) + ",";
    }
    return sha256Hex(key).substr(0, 24);
}

Result<std::vector<Continuation>> AcceptRun::continuations(const TaskPrompts& task)
{
    const std::string id = continuationId(task);
    if (m_request.study && fs::exists(*m_request.study)) {
        MLA_TRY(study, loadStudy(*m_request.study));
        for (const ContinuationRecord& record : study.continuations)
            if (record.id == id)
                return fromRecord(record);
    }
    const int count = static_cast<int>(task.prompts.size());
    std::vector<Continuation> all(task.prompts.size());
    std::atomic<int> done = 0;
    m_job.emitEvent(StageStarted{"continue", count, "prompts", {}});
    MLA_CHECK(parallelFor(m_job, count, m_workers, [&](int index) -> Status {
        const auto i = static_cast<std::size_t>(index);
        MLA_TRY(continuation, continuePrompt(m_job, *m_target, task.prompts[i],
                                             settings().maxNewTokens, m_stop, 0, nullptr));
        all[i] = std::move(continuation);
        m_job.emitEvent(StageProgress{"continue", static_cast<double>(++done), count});
        return {};
    }));
    if (m_request.study)
        MLA_CHECK(updateStudy(*m_request.study, [&](StudyData& study) -> Status {
            ContinuationRecord record = toRecord(all);
            record.id = id;
            record.target = checkpointId(m_request.target);
            record.task = task.name;
            study.put(std::move(record));
            return {};
        }));
    return all;
}

Result<PromptOutcome> AcceptRun::replayed(const std::vector<int>& prompt,
                                          const Continuation& greedy, int index) const
{
    PromptOutcome out;
    MLA_TRY(result, replay(*m_draft, prompt, greedy.ids, m_stop));
    out.counts = alignedCounts(result.matches, settings().k, index);
    out.tokens = static_cast<int>(greedy.ids.size());
    for (std::size_t i = 0; i < greedy.ids.size(); ++i)
        if (std::min(greedy.margins[i], result.margins[i]) < kNearTie)
            ++out.nearTies;
    return out;
}

Result<PromptOutcome> AcceptRun::speculated(const std::vector<int>& prompt,
                                            const Continuation* greedy, int index)
{
    MLA_TRY(result, m_engine->speculate(m_job, prompt, m_promptsDone + index));
    PromptOutcome out;
    out.seconds = result.seconds;
    out.tokens = static_cast<int>(result.ids.size());
    out.counts = std::move(result.counts);
    for (StepCount& step : out.counts.steps)
        step.prompt = index;
    if (!greedy)
        return out;
    const auto [mine, own] =
        std::mismatch(result.ids.begin(), result.ids.end(), greedy->ids.begin(), greedy->ids.end());
    if (mine != result.ids.end() || own != greedy->ids.end()) {
        const auto position = mine - result.ids.begin();
        const auto last = static_cast<std::ptrdiff_t>(greedy->margins.size()) - 1;
        out.divergence = AcceptRow::Divergence{
            index, static_cast<int>(position),
            greedy->margins[static_cast<std::size_t>(std::min(position, last))]};
    }
    return out;
}

Status AcceptRun::openEngine(const std::vector<TaskPrompts>& tasks)
{
    if (replaying())
        return {};
    if (settings().backend == "native") {
        m_engine = nativeEngine(*m_target, *m_draft, m_request, m_stop);
        return {};
    }
    std::size_t longest = 0;
    for (const TaskPrompts& task : tasks)
        for (const std::vector<int>& prompt : task.prompts)
            longest = std::max(longest, prompt.size());
    m_job.emitEvent(StageStarted{"load", 0, "models", settings().backend});
    MLA_TRY(engine, pythonEngine(m_job, m_request, *m_pair, static_cast<int>(longest)));
    m_engine = std::move(engine);
    return {};
}

Result<AcceptRow> AcceptRun::measureTask(const TaskPrompts& task, std::vector<StepCount>& steps,
                                         std::int64_t& plainSteps)
{
    std::vector<Continuation> greedy;
    if (!sampling()) {
        MLA_TRY(own, continuations(task));
        greedy = std::move(own);
    }
    const int workers = replaying() || m_engine->parallel() ? m_workers : 1;
    const int count = static_cast<int>(task.prompts.size());
    std::vector<PromptOutcome> outcomes(task.prompts.size());
    std::atomic<int> done = 0;
    m_job.emitEvent(StageStarted{"accept", count, "prompts", m_pair->runId});
    MLA_CHECK(parallelFor(m_job, count, workers, [&](int index) -> Status {
        const auto i = static_cast<std::size_t>(index);
        MLA_TRY(outcome, replaying() ? replayed(task.prompts[i], greedy[i], index)
                                     : speculated(task.prompts[i],
                                                  sampling() ? nullptr : &greedy[i], index));
        PromptMeasured event{task.name, index, 0, 0, 0};
        for (const StepCount& step : outcome.counts.steps) {
            event.drafted += step.drafted;
            event.accepted += step.accepted;
            ++event.steps;
        }
        m_job.emitEvent(event);
        m_job.emitEvent(StageProgress{"accept", static_cast<double>(++done), count});
        outcomes[i] = std::move(outcome);
        return {};
    }));
    AcceptRow row;
    row.task = task.name;
    double seconds = 0;
    for (const PromptOutcome& outcome : outcomes) {
        steps.insert(steps.end(), outcome.counts.steps.begin(), outcome.counts.steps.end());
        plainSteps += outcome.counts.plainSteps;
        row.tokens += outcome.tokens;
        row.nearTies += outcome.nearTies;
        seconds += outcome.seconds;
        if (outcome.divergence)
            row.divergences.push_back(*outcome.divergence);
    }
    row.metrics = acceptanceMetrics(steps, settings().k, m_request.compute.seed);
    m_promptsDone += count;
    if (!replaying()) {
        if (!sampling())
            row.identicalToGreedy = row.divergences.empty();
        row.tokensPerSecond = static_cast<double>(row.tokens) / seconds;
    }
    return row;
}

Status AcceptRun::store(const TaskPrompts& task, const AcceptRow& row,
                        const std::vector<StepCount>& steps, std::int64_t plainSteps,
                        double seconds)
{
    if (!m_request.study)
        return {};
    AcceptanceRecord record;
    record.target = checkpointId(m_request.target);
    record.run = m_pair->runId;
    record.task = task.name;
    record.backend = settings().backend;
    record.method = m_method;
    record.temperature = settings().temperature;
    record.k = settings().k;
    record.chatTemplate = settings().chatTemplate;
    record.seed = m_request.compute.seed;
    record.tokens = row.tokens;
    record.wallTime = seconds;
    json described = toJson(settings());
    if (m_engine && !m_engine->software().empty())
        described["backend_software"] = m_engine->software();
    record.settingsJson = described.dump();
    record.tokensPerSecond = row.tokensPerSecond;
    record.identicalToGreedy = row.identicalToGreedy;
    record.plainSteps = plainSteps;
    for (const StepCount& step : steps) {
        record.prompt.push_back(step.prompt);
        record.drafted.push_back(step.drafted);
        record.accepted.push_back(step.accepted);
    }
    const std::string sampled =
        sampling() ? "|T" + json(record.temperature).dump() + "|s" + std::to_string(record.seed)
                   : std::string();
    record.id = m_pair->runId + "|" + record.target + "|" + task.name + "|" + record.backend + "|" +
                m_method + "|k" + std::to_string(record.k) + "|n" +
                std::to_string(settings().maxNewTokens) + (settings().chatTemplate ? "|chat" : "") +
                sampled;
    return updateStudy(*m_request.study, [&](StudyData& study) -> Status {
        study.software = softwareText();
        study.put(describeCheckpoint(m_pair->target, m_pair->targetFingerprint));
        study.put(std::move(record));
        return {};
    });
}

AcceptRow AcceptRun::pooled(const std::vector<AcceptRow>& rows,
                            const std::vector<std::vector<StepCount>>& steps) const
{
    AcceptRow all;
    all.task = "pooled";
    std::vector<StepCount> together;
    int promptOffset = 0;
    double seconds = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        int last = -1;
        for (StepCount step : steps[i]) {
            last = std::max(last, step.prompt);
            step.prompt += promptOffset; // prompts of different tasks stay apart
            together.push_back(step);
        }
        promptOffset += last + 1;
        all.tokens += rows[i].tokens;
        all.nearTies += rows[i].nearTies;
        if (rows[i].tokensPerSecond)
            seconds += static_cast<double>(rows[i].tokens) / *rows[i].tokensPerSecond;
        all.divergences.insert(all.divergences.end(), rows[i].divergences.begin(),
                               rows[i].divergences.end());
    }
    all.metrics = acceptanceMetrics(together, settings().k, m_request.compute.seed);
    if (!replaying()) {
        if (!sampling())
            all.identicalToGreedy = all.divergences.empty();
        all.tokensPerSecond = static_cast<double>(all.tokens) / seconds;
    }
    return all;
}

Result<AcceptOutcome> AcceptRun::run()
{
    MLA_CHECK(open());
    MLA_TRY(loaded, loadTasks(m_job, m_request, m_pair->tokenizer, m_pair->target.config()));
    const std::vector<TaskPrompts>& tasks = loaded.tasks;
    MLA_CHECK(checkPrompts(*m_pair, tasks));
    MLA_CHECK(loadModels());
    MLA_CHECK(openEngine(tasks));
    AcceptOutcome outcome;
    outcome.warnings = m_pair->warnings;
    outcome.warnings.insert(outcome.warnings.end(), loaded.warnings.begin(), loaded.warnings.end());
    if (m_pair->draft.config().isMla() && !isImported(m_pair->draft)) {
        MLA_TRY(calibration, loadCalibration(calibrationFile(m_request.draft)));
        const std::vector<std::string> overlaps = overlapWarnings(tasks, calibration);
        outcome.warnings.insert(outcome.warnings.end(), overlaps.begin(), overlaps.end());
    }
    std::vector<std::vector<StepCount>> steps;
    for (const TaskPrompts& task : tasks) {
        const Clock::time_point begun = Clock::now();
        std::int64_t plainSteps = 0;
        steps.emplace_back();
        MLA_TRY(row, measureTask(task, steps.back(), plainSteps));
        MLA_CHECK(store(task, row, steps.back(), plainSteps, since(begun)));
        outcome.rows.push_back(std::move(row));
    }
    if (m_engine)
        MLA_CHECK(m_engine->finish(m_job));
    outcome.pooled = pooled(outcome.rows, steps);
    for (const std::string& warning : outcome.warnings)
        m_job.warn(warning);
    return outcome;
}

} // namespace

Result<AcceptOutcome> measureAcceptance(JobContext& job, const AcceptRequest& request)
{
    useOneThread();
    std::optional<Result<AcceptOutcome>> outcome;
    MLA_CHECK(guarded("accept", [&]() -> Status {
        outcome.emplace(AcceptRun(job, request).run());
        return {};
    }));
    return std::move(*outcome);
}

} // namespace mla
