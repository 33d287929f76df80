// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/models/acceptance_rows.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <QCoreApplication>

#include "widgets/common/plain_text.h"

namespace mla::ui
{

namespace
{

std::vector<StepCount> stepsOf(const AcceptanceRecord& record, int firstPrompt)
{
    const std::size_t count =
        std::min({record.prompt.size(), record.drafted.size(), record.accepted.size()});
    std::vector<StepCount> steps(count);
    for (std::size_t i = 0; i < count; ++i)
        steps[i] = {firstPrompt + record.prompt[i], record.drafted[i], record.accepted[i]};
    return steps;
}

/// Everything of a measurement but the draft and the task.
using Settings = std::tuple<std::string, std::string, std::string, int, double, std::string>;
Settings settingsOf(const AcceptanceRecord& record)
{
    return {record.target, record.backend,     record.method,
            record.k,      record.temperature, record.settingsJson};
}

/// The conversion a draft stems from; for "original" and unknown runs the id itself.
std::string conversionOf(const StudyData& study, const std::string& run)
{
    const RunRecord* record = study.findRun(run);
    return record && !record->parent.empty() ? record->parent : run;
}

AcceptanceRow describe(const StudyData& study, const AcceptanceRecord& record)
{
    AcceptanceRow row;
    const RunRecord* run = study.findRun(record.run);
    row.run = text(record.run);
    row.converter = run ? text(run->converter) : QString();
    row.variant = run ? text(run->variant) : text(record.run);
    row.target = text(record.target);
    row.task = text(record.task);
    row.backend = text(record.backend);
    row.method = text(record.method);
    row.k = record.k;
    row.tokensPerSecond = record.tokensPerSecond;
    return row;
}

struct Measured {
    AcceptanceRow row;
    Settings settings;
    std::string conversion;
};

std::optional<double> deltaAgainstBaseline(const Measured& cell, const std::vector<Measured>& all)
{
    if (cell.row.converter.isEmpty() || cell.row.variant == QLatin1String("partial-rope"))
        return std::nullopt;
    const auto baseline = std::find_if(all.begin(), all.end(), [&](const Measured& other) {
        return other.row.variant == QLatin1String("partial-rope") &&
               other.conversion == cell.conversion && other.row.pooled == cell.row.pooled &&
               other.row.task == cell.row.task && other.settings == cell.settings;
    });
    if (baseline == all.end())
        return std::nullopt;
    return 100 * (cell.row.metrics.acceptanceRate - baseline->row.metrics.acceptanceRate);
}

/// Pools the tasks of every (draft, settings) group that has more than one.
void addPooledRows(const StudyData& study, std::vector<Measured>& measured)
{
    std::map<std::pair<std::string, Settings>, std::vector<const AcceptanceRecord*>> groups;
    for (const AcceptanceRecord& record : study.acceptance)
        groups[{record.run, settingsOf(record)}].push_back(&record);
    for (const auto& [key, records] : groups) {
        if (records.size() < 2)
            continue;
        std::vector<StepCount> steps;
        int firstPrompt = 0;
        for (const AcceptanceRecord* record : records) {
            const std::vector<StepCount> own = stepsOf(*record, firstPrompt);
            for (const StepCount& step : own)
                firstPrompt = std::max(firstPrompt, step.prompt + 1);
            steps.insert(steps.end(), own.begin(), own.end());
        }
        Measured pooled{describe(study, *records.front()), key.second,
                        conversionOf(study, key.first)};
        pooled.row.pooled = true;
        pooled.row.task = QCoreApplication::translate("AcceptanceRows", "all tasks");
        pooled.row.tokensPerSecond.reset();
        pooled.row.metrics = acceptanceMetrics(steps, pooled.row.k);
        measured.push_back(std::move(pooled));
    }
}

} // namespace

AcceptanceMetrics metricsOf(const AcceptanceRecord& record)
{
    return acceptanceMetrics(stepsOf(record, 0), record.k);
}

std::vector<AcceptanceRow> acceptanceRows(const StudyData& study)
{
    std::vector<Measured> measured;
    for (const AcceptanceRecord& record : study.acceptance) {
        Measured cell{describe(study, record), settingsOf(record), conversionOf(study, record.run)};
        cell.row.metrics = metricsOf(record);
        measured.push_back(std::move(cell));
    }
    addPooledRows(study, measured);
    std::vector<AcceptanceRow> rows;
    rows.reserve(measured.size());
    for (const Measured& cell : measured) {
        rows.push_back(cell.row);
        rows.back().deltaPp = deltaAgainstBaseline(cell, measured);
    }
    return rows;
}

} // namespace mla::ui
