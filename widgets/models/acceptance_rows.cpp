// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/models/acceptance_rows.h"

#include <algorithm>
#include <map>

#include <QCoreApplication>

#include "core/report/acceptance_groups.h"
#include "widgets/common/plain_text.h"

namespace mla::ui
{

namespace
{

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
    row.method = text(record.method + (record.chatTemplate ? ", chat template" : ""));
    row.k = record.k;
    row.tokensPerSecond = record.tokensPerSecond;
    return row;
}

struct Measured {
    AcceptanceRow row;
    Protocol protocol;
    std::string conversion;
};

std::optional<double> deltaAgainstBaseline(const Measured& cell, const std::vector<Measured>& all)
{
    if (cell.row.converter.isEmpty() || cell.row.variant == QLatin1String("partial-rope"))
        return std::nullopt;
    const auto baseline = std::find_if(all.begin(), all.end(), [&](const Measured& other) {
        return other.row.variant == QLatin1String("partial-rope") &&
               other.conversion == cell.conversion && other.row.pooled == cell.row.pooled &&
               other.row.task == cell.row.task && other.protocol == cell.protocol;
    });
    if (baseline == all.end())
        return std::nullopt;
    return 100 * (cell.row.metrics.acceptanceRate - baseline->row.metrics.acceptanceRate);
}

Measured measure(const StudyData& study, const AcceptanceRows& records)
{
    const AcceptanceRecord& first = *records.front();
    Measured cell{describe(study, first), protocolOf(first), conversionOf(study, first.run)};
    cell.row.metrics = pooledMetrics(records);
    return cell;
}

/// Pools the tasks of every draft and protocol that has more than one.
void addPooledRows(const StudyData& study, std::vector<Measured>& measured)
{
    std::map<std::pair<std::string, Protocol>, AcceptanceRows> groups;
    for (const AcceptanceRecord& record : study.acceptance)
        groups[{record.run, protocolOf(record)}].push_back(&record);
    for (const auto& [key, records] : groups) {
        if (records.size() < 2)
            continue;
        Measured pooled = measure(study, records);
        pooled.row.pooled = true;
        pooled.row.task = QCoreApplication::translate("AcceptanceRows", "all tasks");
        pooled.row.tokensPerSecond.reset();
        measured.push_back(std::move(pooled));
    }
}

} // namespace

AcceptanceMetrics metricsOf(const AcceptanceRecord& record)
{
    return pooledMetrics({&record});
}

std::vector<AcceptanceRow> acceptanceRows(const StudyData& study)
{
    std::vector<Measured> measured;
    for (const AcceptanceRecord& record : study.acceptance)
        measured.push_back(measure(study, {&record}));
    addPooledRows(study, measured);
    // Drafts in the order in which they were measured, all tasks of a draft before each of them.
    std::map<QString, std::size_t> rank;
    for (const Measured& cell : measured)
        rank.try_emplace(cell.row.run, rank.size());
    std::stable_sort(measured.begin(), measured.end(), [&](const Measured& a, const Measured& b) {
        return std::pair(rank[a.row.run], !a.row.pooled) <
               std::pair(rank[b.row.run], !b.row.pooled);
    });
    std::vector<AcceptanceRow> rows;
    rows.reserve(measured.size());
    for (const Measured& cell : measured) {
        rows.push_back(cell.row);
        rows.back().deltaPp = deltaAgainstBaseline(cell, measured);
    }
    return rows;
}

} // namespace mla::ui
