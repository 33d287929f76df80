// SPDX-License-Identifier: GPL-3.0-or-later
#include <atomic>

#include "core/base/elapsed.h"
#include "core/evaluate/expected_counts.h"
#include "core/evaluate/replay.h"
#include "core/evaluate/step_costs.h"
#include "core/export/imported_draft.h"
#include "core/model/tensors.h"
#include "core/pipeline/accept_engine.h"
#include "core/pipeline/accept_record.h"
#include "core/pipeline/accept_texts.h"
#include "core/pipeline/run_support.h"
#include "core/store/study.h"

namespace mla
{
namespace
{

namespace fs = std::filesystem;

constexpr float kNearTie = 1e-3F; // top-2 margins below it may fall either way in another pass

/// The first place where `ids` leave the target's own text.
std::optional<AcceptRow::Divergence> divergence(const std::vector<int>& ids,
                                                const Continuation& greedy, int prompt)
{
    const auto [mine, own] =
        std::mismatch(ids.begin(), ids.end(), greedy.ids.begin(), greedy.ids.end());
    if (mine == ids.end() && own == greedy.ids.end())
        return std::nullopt;
    const auto position = mine - ids.begin();
    const auto last = static_cast<std::ptrdiff_t>(greedy.margins.size()) - 1;
    return AcceptRow::Divergence{
        prompt, static_cast<int>(position),
        greedy.margins[static_cast<std::size_t>(std::min(position, last))]};
}

/// All prompts of a task once.
struct PromptRun {
    std::vector<EngineText> texts;
    double seconds = 0; ///< from the first prompt to the last; a backend's own time alone
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
    Status measureCosts(const std::vector<TaskPrompts>& tasks);
    Result<MeasuredTask> replayTask(const TaskPrompts& task);
    Result<MeasuredTask> runTask(const TaskPrompts& task);
    Status measureBaseline(const std::vector<TaskPrompts>& tasks, std::vector<MeasuredTask>& all,
                           std::vector<AcceptRow>& rows);
    Result<TargetTexts> ownTexts(const TaskPrompts& task);
    Result<PromptRun> runPrompts(const TaskPrompts& task, AcceptEngine& engine, const char* stage);
    Result<std::unique_ptr<AcceptEngine>> openEngine(const std::vector<TaskPrompts>& tasks,
                                                     bool plain);
    Status warmUp(const std::vector<TaskPrompts>& tasks, AcceptEngine& engine);
    Status store(const MeasuredTask& task, const AcceptRow& row);
    void announce(const std::string& task, int prompt, const std::vector<StepCount>& steps);
    [[nodiscard]] AcceptRow row(const std::vector<const MeasuredTask*>& tasks,
                                const std::string& name) const
    {
        return acceptRow(tasks, name, m_request, m_costs);
    }
    [[nodiscard]] const AcceptSettings& settings() const { return m_request.settings; }
    [[nodiscard]] bool replaying() const { return settings().chosenMethod() == "replay"; }
    [[nodiscard]] bool native() const { return settings().backend == "native"; }
    [[nodiscard]] bool greedy() const { return settings().rule().greedy(); }

    JobContext& m_job;
    const AcceptRequest& m_request;
    std::optional<AcceptPair> m_pair;
    std::optional<Decoder> m_target, m_draft;
    StopRule m_stop;
    torch::Device m_device = torch::kCPU;
    int m_workers = 1;
    std::unique_ptr<AcceptEngine> m_engine; ///< null when replaying
    StepCosts m_costs;
    int m_promptsDone = 0; ///< of earlier tasks
};

Status AcceptRun::open()
{
    MLA_CHECK(validate(settings()));
    if (settings().tasks.empty())
        return usageError("--tasks: at least one JSONL file of prompts is needed");
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
    if (!native() && !greedy())
        return {};
    MLA_TRY(targetModel, Decoder::load(m_pair->target, m_device));
    m_target = std::move(targetModel);
    if (!native())
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

/// Behind the first prompt, whose length stands for all.
Status AcceptRun::measureCosts(const std::vector<TaskPrompts>& tasks)
{
    if (settings().sweepK == 0)
        return {};
    const std::vector<int>& prompt = tasks.front().prompts.front();
    m_job.emitEvent(StageStarted{"time both models", 0, {}, m_pair->runId});
    MLA_TRY(draft, passSeconds(*m_draft, prompt, 1));
    MLA_TRY(verify, passSeconds(*m_target, prompt, settings().sweepK + 1));
    m_costs = {draft.front(), std::move(verify)};
    return {};
}

Result<TargetTexts> AcceptRun::ownTexts(const TaskPrompts& task)
{
    return targetTexts(m_job, {m_request, *m_pair, task, m_stop, m_promptsDone, m_workers},
                       *m_target);
}

void AcceptRun::announce(const std::string& task, int prompt, const std::vector<StepCount>& steps)
{
    PromptMeasured event{task, prompt, 0, 0, 0};
    for (const StepCount& step : steps) {
        event.drafted += step.drafted;
        event.accepted += step.accepted;
        ++event.steps;
    }
    m_job.emitEvent(event);
}

Result<MeasuredTask> AcceptRun::replayTask(const TaskPrompts& task)
{
    MLA_TRY(own, ownTexts(task));
    const int count = static_cast<int>(task.prompts.size());
    std::vector<ReplayResult> replays(task.prompts.size());
    std::atomic<int> done = 0;
    m_job.emitEvent(StageStarted{"accept", count, "prompts", m_pair->runId});
    MLA_CHECK(parallelFor(m_job, count, m_workers, [&](int index) -> Status {
        const auto i = static_cast<std::size_t>(index);
        MLA_TRY(result, replay(*m_draft, task.prompts[i], own.texts[i], m_stop, settings().rule()));
        replays[i] = std::move(result);
        if (greedy())
            announce(task.name, index,
                     alignedCounts(replays[i].matches, settings().k, index).steps);
        m_job.emitEvent(StageProgress{"accept", static_cast<double>(++done), count});
        return {};
    }));
    MeasuredTask measured;
    measured.name = task.name;
    measured.continuation = own.id;
    for (int i = 0; i < count; ++i) {
        const ReplayResult& result = replays[static_cast<std::size_t>(i)];
        const Continuation& text = own.texts[static_cast<std::size_t>(i)];
        measured.chances.push_back(
            greedy() ? std::vector<double>(result.matches.begin(), result.matches.end())
                     : result.acceptProbability);
        const AlignedCounts counts =
            expectedCounts(measured.chances.back(), settings().k, /*prompt=*/i);
        measured.steps.insert(measured.steps.end(), counts.steps.begin(), counts.steps.end());
        measured.plainSteps += counts.plainSteps;
        measured.tokens += static_cast<std::int64_t>(text.ids.size());
        for (std::size_t t = 0; t < text.ids.size(); ++t)
            measured.nearTies += std::min(text.margins[t], result.margins[t]) < kNearTie;
        measured.choices.ids.insert(measured.choices.ids.end(), result.topIds.begin(),
                                    result.topIds.end());
        measured.choices.probabilities.insert(measured.choices.probabilities.end(),
                                              result.topProbabilities.begin(),
                                              result.topProbabilities.end());
    }
    return measured;
}

Result<PromptRun> AcceptRun::runPrompts(const TaskPrompts& task, AcceptEngine& engine,
                                        const char* stage)
{
    const int count = static_cast<int>(task.prompts.size());
    PromptRun run;
    run.texts.resize(task.prompts.size());
    std::atomic<int> done = 0;
    const SteadyClock::time_point begun = SteadyClock::now();
    m_job.emitEvent(StageStarted{stage, count, "prompts", m_pair->runId});
    MLA_CHECK(parallelFor(m_job, count, engine.parallel() ? m_workers : 1, [&](int i) -> Status {
        const auto index = static_cast<std::size_t>(i);
        MLA_TRY(text, engine.speculate(m_job, task.prompts[index], m_promptsDone + i));
        for (StepCount& step : text.counts.steps)
            step.prompt = i;
        announce(task.name, i, text.counts.steps);
        m_job.emitEvent(StageProgress{stage, static_cast<double>(++done), count});
        run.texts[index] = std::move(text);
        return {};
    }));
    if (engine.parallel())
        run.seconds = secondsSince(begun); // several prompts at a time
    else
        for (const EngineText& text : run.texts)
            run.seconds += text.seconds;
    return run;
}

Result<MeasuredTask> AcceptRun::runTask(const TaskPrompts& task)
{
    std::optional<TargetTexts> own;
    if (greedy()) {
        MLA_TRY(texts, ownTexts(task));
        own = std::move(texts);
    }
    MeasuredTask measured;
    measured.name = task.name;
    for (int repeat = 0; repeat < settings().repeats; ++repeat) {
        MLA_TRY(run, runPrompts(task, *m_engine, "accept"));
        measured.seconds.push_back(run.seconds);
        if (repeat > 0)
            continue; // the same texts again: only their time counts
        for (std::size_t i = 0; i < run.texts.size(); ++i) {
            const EngineText& text = run.texts[i];
            measured.promptSeconds += text.seconds;
            measured.steps.insert(measured.steps.end(), text.counts.steps.begin(),
                                  text.counts.steps.end());
            measured.plainSteps += text.counts.plainSteps;
            measured.tokens += static_cast<std::int64_t>(text.ids.size());
            if (text.draftSeconds && text.verifySeconds) {
                measured.draftSeconds = measured.draftSeconds.value_or(0) + *text.draftSeconds;
                measured.verifySeconds = measured.verifySeconds.value_or(0) + *text.verifySeconds;
            }
            if (const auto left =
                    own ? divergence(text.ids, own->texts[i], static_cast<int>(i)) : std::nullopt)
                measured.divergences.push_back(*left);
        }
    }
    return measured;
}

Status AcceptRun::measureBaseline(const std::vector<TaskPrompts>& tasks,
                                  std::vector<MeasuredTask>& all, std::vector<AcceptRow>& rows)
{
    if (!settings().baseline)
        return {};
    MLA_TRY(engine, openEngine(tasks, /*plain=*/true));
    MLA_CHECK(warmUp(tasks, *engine));
    m_promptsDone = 0;
    for (std::size_t t = 0; t < tasks.size(); ++t) {
        for (int repeat = 0; repeat < settings().repeats; ++repeat) {
            MLA_TRY(run, runPrompts(tasks[t], *engine, "baseline"));
            all[t].baselineTokens = 0;
            for (const EngineText& text : run.texts)
                all[t].baselineTokens += static_cast<std::int64_t>(text.ids.size());
            all[t].baselineSeconds.push_back(run.seconds);
        }
        m_promptsDone += static_cast<int>(tasks[t].prompts.size());
        rows[t] = row({&all[t]}, all[t].name);
        MLA_CHECK(store(all[t], rows[t]));
    }
    return engine->finish(m_job);
}

Result<std::unique_ptr<AcceptEngine>> AcceptRun::openEngine(const std::vector<TaskPrompts>& tasks,
                                                            bool plain)
{
    if (native())
        return nativeEngine(*m_target, plain ? nullptr : &*m_draft, m_request, m_stop);
    std::size_t longest = 0;
    for (const TaskPrompts& task : tasks)
        for (const std::vector<int>& prompt : task.prompts)
            longest = std::max(longest, prompt.size());
    m_job.emitEvent(StageStarted{"load", 0, "models", settings().backend});
    return pythonEngine(m_job, m_request, *m_pair, static_cast<int>(longest), plain);
}

/// The first text pays for compilation and cold memory; it is not timed.
Status AcceptRun::warmUp(const std::vector<TaskPrompts>& tasks, AcceptEngine& engine)
{
    m_job.emitEvent(StageStarted{"warm up", 0, {}, settings().backend});
    MLA_TRY(text, engine.speculate(m_job, tasks.front().prompts.front(), 0));
    (void)text;
    return {};
}

Status AcceptRun::store(const MeasuredTask& task, const AcceptRow& row)
{
    if (!m_request.study)
        return {};
    AcceptanceRecord record = acceptRecord(task, row, m_request, *m_pair, m_costs,
                                           m_engine ? m_engine->software() : std::string());
    TokenTextRecord words = tokenTexts(*m_pair, record.target, record.choices.ids);
    return updateStudy(*m_request.study, [&](StudyData& study) -> Status {
        study.software = softwareText();
        study.put(describeCheckpoint(m_pair->target, m_pair->targetFingerprint));
        if (!words.ids.empty())
            study.put(std::move(words));
        study.put(std::move(record));
        return {};
    });
}

Result<AcceptOutcome> AcceptRun::run()
{
    MLA_CHECK(open());
    MLA_TRY(loaded, loadTasks(m_job, m_request, m_pair->tokenizer, m_pair->target.config()));
    const std::vector<TaskPrompts>& tasks = loaded.tasks;
    MLA_CHECK(checkPrompts(*m_pair, tasks));
    MLA_CHECK(loadModels());
    MLA_CHECK(measureCosts(tasks));
    if (!replaying()) {
        MLA_TRY(engine, openEngine(tasks, /*plain=*/false));
        m_engine = std::move(engine);
        MLA_CHECK(warmUp(tasks, *m_engine));
    }
    AcceptOutcome outcome;
    outcome.warnings = m_pair->warnings;
    outcome.warnings.insert(outcome.warnings.end(), loaded.warnings.begin(), loaded.warnings.end());
    if (m_pair->draft.config().isMla() && !isImported(m_pair->draft)) {
        MLA_TRY(calibration, loadCalibration(calibrationFile(m_request.draft)));
        const std::vector<std::string> overlaps = overlapWarnings(tasks, calibration);
        outcome.warnings.insert(outcome.warnings.end(), overlaps.begin(), overlaps.end());
    }
    std::vector<MeasuredTask> all;
    for (const TaskPrompts& task : tasks) {
        const SteadyClock::time_point begun = SteadyClock::now();
        MLA_TRY(measured, replaying() ? replayTask(task) : runTask(task));
        measured.wallTime = secondsSince(begun);
        outcome.rows.push_back(row({&measured}, task.name));
        MLA_CHECK(store(measured, outcome.rows.back()));
        m_promptsDone += static_cast<int>(task.prompts.size());
        all.push_back(std::move(measured));
    }
    if (m_engine)
        MLA_CHECK(m_engine->finish(m_job));
    MLA_CHECK(measureBaseline(tasks, all, outcome.rows));
    std::vector<const MeasuredTask*> together;
    for (const MeasuredTask& task : all)
        together.push_back(&task);
    outcome.pooled = row(together, "pooled");
    for (const std::string& warning : outcome.warnings)
        m_job.warn(warning);
    return outcome;
}

} // namespace

Result<AcceptOutcome> measureAcceptance(JobContext& job, const AcceptRequest& request)
{
    useOneThread();
    return guardedResult("accept", [&] { return AcceptRun(job, request).run(); });
}

} // namespace mla
