// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/report/study_cells.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "core/base/mean.h"
#include "core/evaluate/bootstrap.h"
#include "core/report/acceptance_groups.h"
#include "core/report/cell_rows.h"
#include "core/report/report_text.h"

namespace mla
{

namespace
{

constexpr auto original = "original", converted = "converted", baseline = "partial-rope",
               functional = "functional";
constexpr double percent = 100;

/// Prompts of a row as its steps show them; one whose text is a single token leaves no step.
int promptsSeen(const AcceptanceRecord& record)
{
    return record.prompt.empty() ? 0 : 1 + *std::ranges::max_element(record.prompt);
}

/// Rows of one cell that took equally many prompts of a task have as many as any of them shows.
using PromptCounts = std::map<std::string, int>; // by limit
int promptsOf(const AcceptanceRecord& record, const PromptCounts& counts)
{
    return counts.at(limitOf(record));
}

using Rows = std::vector<const CellRow*>;

MeasuredVariant pool(const CellKey& key, const std::string& variant, const Rows& rows,
                     const PromptCounts& counts)
{
    MeasuredVariant out{key, variant, 0, {}, {}};
    for (const CellRow* row : rows) {
        const AcceptanceRecord& record = *row->record;
        out.prompts = std::max(out.prompts, promptsOf(record, counts));
        std::ranges::copy(stepsOf(record), std::back_inserter(out.steps));
        if (!record.speeds.empty())
            out.tokensPerSecond.insert(out.tokensPerSecond.end(), record.speeds.begin(),
                                       record.speeds.end());
        else if (record.tokensPerSecond)
            out.tokensPerSecond.push_back(*record.tokensPerSecond);
    }
    return out;
}

double rateOf(const AcceptanceRecord& record)
{
    PromptSums sums;
    for (const StepCount& step : stepsOf(record))
        sums.add(step);
    return sums.rate();
}

std::set<Seed> seedsOf(const Rows& rows)
{
    std::set<Seed> seeds;
    for (const CellRow* row : rows)
        seeds.insert(row->seed);
    return seeds;
}

void keep(Rows& rows, const std::set<Seed>& seeds)
{
    std::erase_if(rows, [&seeds](const CellRow* row) { return !seeds.contains(row->seed); });
}

std::optional<double> sampleSd(const std::vector<double>& values)
{
    if (values.size() < 2)
        return std::nullopt;
    const double middle = mean(values);
    double squares = 0;
    for (const double value : values)
        squares += (value - middle) * (value - middle);
    return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

/// The rows of one slot and one way of measuring, by variant.
class CellRows
{
public:
    void add(const CellRow& row) { m_rows[row.variant].push_back(&row); }
    [[nodiscard]] bool complete() const
    {
        return m_rows.contains(baseline) && m_rows.contains(functional);
    }
    /// Keeps the seeds both halves have; false if there is none.
    bool matchSeeds()
    {
        const std::set<Seed> base = seedsOf(m_rows[baseline]), own = seedsOf(m_rows[functional]);
        std::ranges::set_intersection(base, own, std::inserter(m_seeds, m_seeds.end()));
        keep(m_rows[baseline], m_seeds);
        keep(m_rows[functional], m_seeds);
        return !m_seeds.empty();
    }
    [[nodiscard]] StudyCell described(const std::string& protocol) const
    {
        const CellRow& own = *m_rows.at(functional).front();
        StudyCell cell;
        cell.draft = draftLabel(*own.run);
        cell.functionalRun = own.record->run;
        cell.protocol = protocol;
        cell.seeds = static_cast<int>(m_seeds.size());
        cell.sd = sampleSd(deltas());
        return cell;
    }
    [[nodiscard]] std::vector<MeasuredVariant> measured(const CellKey& key) const
    {
        PromptCounts counts;
        for (const auto& [variant, rows] : m_rows)
            for (const CellRow* row : rows) {
                int& count = counts[limitOf(*row->record)];
                count = std::max(count, promptsSeen(*row->record));
            }
        std::vector<MeasuredVariant> all;
        for (const auto& [variant, rows] : m_rows)
            all.push_back(pool(key, variant, rows, counts));
        return all;
    }

private:
    /// Functional - partial-rope of each seed, pp.
    [[nodiscard]] std::vector<double> deltas() const
    {
        std::map<Seed, std::array<double, 2>> rates;
        for (const CellRow* row : m_rows.at(baseline))
            rates[row->seed][0] = rateOf(*row->record);
        for (const CellRow* row : m_rows.at(functional))
            rates[row->seed][1] = rateOf(*row->record);
        std::vector<double> deltas;
        for (const auto& [seed, pair] : rates)
            deltas.push_back(percent * (pair[1] - pair[0]));
        return deltas;
    }

    std::map<std::string, Rows> m_rows;
    std::set<Seed> m_seeds;
};

bool belongsTo(const CellRow& row, const Slot& slot)
{
    if (row.source != slot.source || row.source.empty())
        return false;
    if (row.variant == original)
        return true;
    if (row.conversion != slot.conversion || row.run->converter != slot.converter)
        return false;
    return row.variant == converted || row.budget == slot.budget;
}

/// A refinement of a conversion; one of a refined draft had more training than its neighbours.
bool opensSlot(const StudyData& study, const CellRow& row)
{
    if (row.variant != baseline && row.variant != functional)
        return false;
    const RunRecord* parent = study.findRun(row.run->parent);
    return !parent || parent->variant == converted;
}

/// Cell keys are texts: two ways that read alike get a number.
class UniqueTexts
{
public:
    std::string operator()(const std::string& text, const std::string& exact)
    {
        std::vector<std::string>& seen = m_seen[text];
        auto it = std::ranges::find(seen, exact);
        if (it == seen.end())
            it = seen.insert(seen.end(), exact);
        const auto number = it - seen.begin() + 1;
        return number == 1 ? text : text + " #" + std::to_string(number);
    }

private:
    std::map<std::string, std::vector<std::string>> m_seen;
};

struct Gathered {
    std::vector<MeasuredVariant> measured;
    std::map<CellKey, StudyCell> described;
    std::vector<CellKey> unmatched;
};

void addSlot(const StudyData& study, const std::vector<CellRow>& rows, const Slot& slot,
             UniqueTexts& texts, Gathered& gathered)
{
    std::map<Measuring, CellRows> cells;
    std::string draft;
    for (const CellRow& row : rows) {
        if (!belongsTo(row, slot))
            continue;
        if (row.variant == functional && draft.empty())
            draft = draftLabel(*row.run);
        if (row.variant == original || row.variant == converted || opensSlot(study, row))
            cells[measuringOf(*row.record)].add(row);
    }
    const std::string what = texts(draft + stepsText(slot.budget), slot.conversion + slot.budget);
    for (auto& [how, cell] : cells) {
        if (!cell.complete())
            continue;
        const CellKey key = {slot.source + ">" + how.target,
                             familyOf(study, slot.source),
                             slot.converter,
                             how.backend,
                             how.task,
                             what + ", " + how.protocol};
        if (!cell.matchSeeds()) {
            gathered.unmatched.push_back(key);
            continue;
        }
        gathered.described[key] = cell.described(how.protocol);
        std::ranges::move(cell.measured(key), std::back_inserter(gathered.measured));
    }
}

Gathered gather(const StudyData& study)
{
    const std::string source = onlySourceOf(study);
    std::vector<CellRow> rows;
    std::set<Slot> slots;
    for (const AcceptanceRecord& record : study.acceptance) {
        CellRow row = describeRow(study, record, source);
        if (row.run || row.variant == original)
            rows.push_back(std::move(row));
    }
    for (const CellRow& row : rows)
        if (opensSlot(study, row))
            slots.insert({row.source, row.run->converter, row.conversion, row.budget});
    Gathered gathered;
    UniqueTexts texts;
    for (const Slot& slot : slots)
        addSlot(study, rows, slot, texts, gathered);
    return gathered;
}

} // namespace

StudyCells studyCells(const StudyData& study, std::uint64_t seed)
{
    Gathered gathered = gather(study);
    StudyCells out{{}, std::move(gathered.unmatched)};
    std::map<CellKey, MatchedCell> overConverted;
    for (MatchedCell& cell : matchedCells(gathered.measured, converted, seed))
        overConverted[cell.key] = std::move(cell);
    std::map<CellKey, int> prompts;
    for (const MeasuredVariant& variant : gathered.measured)
        if (variant.variant == functional)
            prompts[variant.cell] = variant.prompts;
    for (MatchedCell& cell : matchedCells(gathered.measured, baseline, seed, &out.unmatched)) {
        StudyCell described = std::move(gathered.described.at(cell.key));
        described.prompts = prompts.at(cell.key);
        if (const auto over = overConverted.find(cell.key); over != overConverted.end()) {
            described.overConverted = over->second.deltaPp;
            described.overConvertedLow = over->second.deltaLow;
            described.overConvertedHigh = over->second.deltaHigh;
        }
        described.cell = std::move(cell);
        out.cells.push_back(std::move(described));
    }
    return out;
}

MatchedSummary StudyCells::summary() const
{
    std::vector<MatchedCell> matched;
    for (const StudyCell& cell : cells)
        matched.push_back(cell.cell);
    return summarize(matched);
}

} // namespace mla
