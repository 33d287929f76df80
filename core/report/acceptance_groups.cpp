// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/report/acceptance_groups.h"

#include <algorithm>
#include <set>

#include "core/evaluate/bootstrap.h"
#include "core/report/report_text.h"

namespace mla
{

namespace
{

constexpr auto original = "original";

AcceptanceRows withProtocol(const AcceptanceRows& rows, const Protocol& protocol)
{
    AcceptanceRows chosen;
    std::ranges::copy_if(rows, std::back_inserter(chosen),
                         [&protocol](const auto* row) { return protocolOf(*row) == protocol; });
    return chosen;
}

/// The drafts of one converter with all their rows, the original first.
std::vector<DraftRows> draftsOf(const StudyData& study, const std::string& converter)
{
    std::vector<DraftRows> drafts;
    if (study.findRun(original) == nullptr)
        drafts.push_back({nullptr, original, rowsOf(study, original)});
    for (const RunRecord& run : study.runs)
        if (run.variant == original)
            drafts.push_back({&run, run.variant, rowsOf(study, run.id)});
    for (const RunRecord& run : study.runs)
        if (run.variant != original && run.converter == converter)
            drafts.push_back({&run, run.variant, rowsOf(study, run.id)});
    return drafts;
}

/// Converters with measured drafts; one empty name if nothing but the original was measured.
std::vector<std::string> measuredConverters(const StudyData& study)
{
    std::vector<std::string> converters;
    for (const RunRecord& run : study.runs)
        if (run.variant != original && !rowsOf(study, run.id).empty() &&
            std::ranges::find(converters, run.converter) == converters.end())
            converters.push_back(run.converter);
    if (converters.empty())
        converters.emplace_back();
    return converters;
}

} // namespace

std::string samplingText(const AcceptanceRecord& row)
{
    std::string text = row.temperature > 0 ? "T = " + exactText(row.temperature) : "greedy";
    if (row.topK > 0)
        text += ", top-k " + std::to_string(row.topK);
    if (row.topP < 1)
        text += ", top-p " + exactText(row.topP);
    return text;
}

Protocol protocolOf(const AcceptanceRecord& row)
{
    return {row.k, row.target,
            row.backend + " " + row.method + ", " + samplingText(row) +
                (row.chatTemplate ? ", chat template" : "")};
}

std::vector<Protocol> protocolsOf(const AcceptanceRows& rows)
{
    std::set<Protocol> protocols;
    for (const AcceptanceRecord* row : rows)
        protocols.insert(protocolOf(*row));
    return {protocols.begin(), protocols.end()};
}

std::vector<AcceptanceGroup> acceptanceGroups(const StudyData& study)
{
    std::vector<AcceptanceGroup> groups;
    for (const std::string& converter : measuredConverters(study)) {
        const std::vector<DraftRows> drafts = draftsOf(study, converter);
        AcceptanceRows own, all;
        for (const DraftRows& draft : drafts) {
            all.insert(all.end(), draft.rows.begin(), draft.rows.end());
            if (draft.variant != original)
                own.insert(own.end(), draft.rows.begin(), draft.rows.end());
        }
        for (const Protocol& protocol : protocolsOf(own.empty() ? all : own)) {
            AcceptanceGroup group{converter, protocol, {}};
            for (const DraftRows& draft : drafts) {
                AcceptanceRows rows = withProtocol(draft.rows, protocol);
                if (!rows.empty())
                    group.drafts.push_back({draft.run, draft.variant, std::move(rows)});
            }
            groups.push_back(std::move(group));
        }
    }
    return groups;
}

std::string draftName(const AcceptanceGroup& group, const DraftRows& draft)
{
    const auto same = std::ranges::count(group.drafts, draft.variant, &DraftRows::variant);
    return same > 1 && draft.run ? runLabel(*draft.run) : draft.variant;
}

GroupName nameOf(const AcceptanceGroup& group, const std::vector<AcceptanceGroup>& all)
{
    const std::string k = std::to_string(group.protocol.k);
    const std::string converter =
        group.converter.empty() ? std::string("original") : group.converter;
    GroupName name{fileStem(converter) + "-k" + k, converterLabel(converter) + ", drafts of " + k};
    const auto sameK = std::ranges::count_if(all, [&group](const AcceptanceGroup& other) {
        return other.converter == group.converter && other.protocol.k == group.protocol.k;
    });
    if (sameK > 1) {
        name.id += "-" + fileStem(group.protocol.target + "-" + group.protocol.method);
        name.title += ", " + group.protocol.target + ", " + group.protocol.method;
    }
    return name;
}

AcceptanceRows rowsOf(const StudyData& study, const std::string& run)
{
    AcceptanceRows rows;
    for (const AcceptanceRecord& row : study.acceptance)
        if (row.run == run)
            rows.push_back(&row);
    return rows;
}

std::vector<StepCount> pooledSteps(const AcceptanceRows& rows)
{
    std::vector<StepCount> steps;
    std::map<std::pair<const AcceptanceRecord*, int>, int> numbers;
    for (const AcceptanceRecord* row : rows)
        for (StepCount step : stepsOf(*row)) {
            const int next = static_cast<int>(numbers.size());
            step.prompt = numbers.emplace(std::pair(row, step.prompt), next).first->second;
            steps.push_back(step);
        }
    return steps;
}

AcceptanceMetrics pooledMetrics(const AcceptanceRows& rows)
{
    int k = 0;
    for (const AcceptanceRecord* row : rows)
        k = std::max(k, row->k);
    return acceptanceMetrics(pooledSteps(rows), k);
}

std::vector<std::pair<std::string, AcceptanceRows>> rowsByTask(const AcceptanceRows& rows)
{
    std::vector<std::pair<std::string, AcceptanceRows>> tasks;
    for (const AcceptanceRecord* row : rows) {
        auto found =
            std::ranges::find(tasks, row->task, [](const auto& task) { return task.first; });
        if (found == tasks.end())
            found = tasks.insert(tasks.end(), {row->task, {}});
        found->second.push_back(row);
    }
    return tasks;
}

double meanTaskRate(const AcceptanceRows& rows)
{
    const auto tasks = rowsByTask(rows);
    double sum = 0;
    for (const auto& [task, taskRows] : tasks) {
        PromptSums sums;
        for (const StepCount& step : pooledSteps(taskRows))
            sums.add(step);
        sum += sums.rate();
    }
    return tasks.empty() ? 0 : sum / static_cast<double>(tasks.size());
}

} // namespace mla
