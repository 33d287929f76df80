// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pipeline/accept_record.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/base/mean.h"
#include "core/pipeline/run_support.h"

namespace mla
{

namespace
{

using nlohmann::json;

/// Tokens per second of each timed run over several tasks.
std::vector<double> speedsOf(const std::vector<const MeasuredTask*>& tasks,
                             std::vector<double> MeasuredTask::*seconds,
                             std::int64_t MeasuredTask::*tokens)
{
    std::vector<double> speeds;
    const std::size_t runs = tasks.empty() ? 0 : (tasks.front()->*seconds).size();
    for (std::size_t run = 0; run < runs; ++run) {
        double spent = 0, made = 0;
        for (const MeasuredTask* task : tasks) {
            spent += (task->*seconds)[run];
            made += static_cast<double>(task->*tokens);
        }
        speeds.push_back(made / spent);
    }
    return speeds;
}

void addSpeeds(const std::vector<const MeasuredTask*>& tasks, AcceptRow& row)
{
    row.speeds = speedsOf(tasks, &MeasuredTask::seconds, &MeasuredTask::tokens);
    row.baselineSpeeds =
        speedsOf(tasks, &MeasuredTask::baselineSeconds, &MeasuredTask::baselineTokens);
    if (!row.speeds.empty())
        row.tokensPerSecond = mean(row.speeds);
    if (!row.speeds.empty() && !row.baselineSpeeds.empty())
        row.speedup = mean(row.speeds) / mean(row.baselineSpeeds);
    double all = 0, draft = 0, verify = 0;
    for (const MeasuredTask* task : tasks) {
        if (!task->draftSeconds || !task->verifySeconds)
            return;
        all += task->promptSeconds;
        draft += *task->draftSeconds;
        verify += *task->verifySeconds;
    }
    if (all > 0) {
        row.draftShare = draft / all;
        row.verifyShare = verify / all;
    }
}

} // namespace

AcceptRow acceptRow(const std::vector<const MeasuredTask*>& tasks, const std::string& name,
                    const AcceptRequest& request, const StepCosts& costs)
{
    const AcceptSettings& settings = request.settings;
    AcceptRow row;
    row.task = name;
    std::vector<StepCount> steps;
    std::vector<std::vector<double>> chances;
    int offset = 0;
    for (const MeasuredTask* task : tasks) {
        int last = -1;
        for (StepCount step : task->steps) {
            last = std::max(last, step.prompt);
            step.prompt += offset; // prompts of different tasks stay apart
            steps.push_back(step);
        }
        offset += last + 1;
        row.tokens += task->tokens;
        row.nearTies += task->nearTies;
        row.divergences.insert(row.divergences.end(), task->divergences.begin(),
                               task->divergences.end());
        chances.insert(chances.end(), task->chances.begin(), task->chances.end());
    }
    row.metrics = acceptanceMetrics(steps, settings.k, request.compute.seed);
    const bool replaying = settings.chosenMethod() == "replay", greedy = settings.rule().greedy();
    row.expected = replaying && !greedy;
    if (replaying)
        row.byLength = sweepDraftLengths(chances, settings.sweepK, costs.draft, costs.verify);
    else if (greedy)
        row.identicalToGreedy = row.divergences.empty();
    addSpeeds(tasks, row);
    return row;
}

AcceptanceRecord acceptRecord(const MeasuredTask& task, const AcceptRow& row,
                              const AcceptRequest& request, const AcceptPair& pair,
                              const StepCosts& costs, const std::string& backendSoftware)
{
    const AcceptSettings& settings = request.settings;
    AcceptanceRecord record;
    record.target = checkpointId(request.target);
    record.run = pair.runId;
    record.task = task.name;
    record.backend = settings.backend;
    record.method = settings.chosenMethod();
    record.temperature = settings.temperature;
    record.topK = settings.topK;
    record.topP = settings.topP;
    record.k = settings.k;
    record.chatTemplate = settings.chatTemplate;
    record.seed = request.compute.seed;
    record.tokens = task.tokens;
    record.wallTime = task.wallTime;
    json described = toJson(settings);
    if (!backendSoftware.empty())
        described["backend_software"] = backendSoftware;
    record.settingsJson = described.dump();
    record.tokensPerSecond = row.tokensPerSecond;
    record.identicalToGreedy = row.identicalToGreedy;
    record.plainSteps = task.plainSteps;
    for (const StepCount& step : task.steps) {
        record.prompt.push_back(step.prompt);
        record.drafted.push_back(step.drafted);
        record.accepted.push_back(step.accepted);
        if (row.expected)
            record.weight.push_back(step.weight);
    }
    record.speeds = row.speeds;
    record.baselineSpeeds = row.baselineSpeeds;
    record.draftSeconds = task.draftSeconds;
    record.verifySeconds = task.verifySeconds;
    record.costs = costs;
    record.continuation = task.continuation;
    record.choices = task.choices;
    if (row.expected)
        for (const std::vector<double>& text : task.chances)
            record.acceptProbability.insert(record.acceptProbability.end(), text.begin(),
                                            text.end());
    const SamplingRule rule = settings.rule();
    std::string sampled;
    if (!rule.greedy())
        sampled = "|T" + json(rule.temperature).dump() +
                  (rule.topK > 0 ? "|top-k" + std::to_string(rule.topK) : "") +
                  (rule.topP < 1 ? "|top-p" + json(rule.topP).dump() : "") + "|s" +
                  std::to_string(record.seed);
    record.id = pair.runId + "|" + record.target + "|" + task.name + "|" + record.backend + "|" +
                record.method + "|k" + std::to_string(record.k) + "|n" +
                std::to_string(settings.maxNewTokens) + (settings.chatTemplate ? "|chat" : "") +
                sampled;
    return record;
}

} // namespace mla
