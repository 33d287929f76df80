// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/report/run_comparison.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "core/report/acceptance_groups.h"
#include "core/report/report_text.h"

namespace mla
{

namespace
{

constexpr double percent = 100;

/// Held-out loss by step over its first value; empty if there is none.
std::map<int, double> shareOfStart(const LossCurve& curve)
{
    std::map<int, double> shares;
    const std::size_t count = std::min(curve.step.size(), curve.heldout.size());
    double start = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const double loss = curve.heldout[i];
        if (!std::isfinite(loss))
            continue;
        if (shares.empty())
            start = loss;
        shares[curve.step[i]] = loss / start;
    }
    return start > 0 ? shares : std::map<int, double>();
}

/// The mean at each step over the layers that were measured there.
Series lossSeries(const RunRecord& run, std::optional<LayerIndex> layer)
{
    std::map<int, std::pair<double, int>> sums;
    for (const LayerRecord& record : run.layers)
        if (record.loss && (!layer || record.layer == *layer))
            for (const auto& [step, share] : shareOfStart(*record.loss)) {
                sums[step].first += share;
                ++sums[step].second;
            }
    Series series;
    for (const auto& [step, sum] : sums) {
        series.x.push_back(step);
        series.y.push_back(sum.first / sum.second);
    }
    return series;
}

/// Of several variants of one conversion the variant says it all.
std::string nameAmong(const Runs& runs, const RunRecord& run)
{
    const auto alike = [&](const RunRecord* other) {
        return draftLabel(*other) == draftLabel(run) &&
               (other == &run || other->variant != run.variant);
    };
    return std::ranges::all_of(runs, alike) ? run.variant : runLabel(run);
}

/// A run's curve, and its number in the caption behind `introduction`.
void addSeries(Figure& figure, const Runs& runs, const RunRecord& run, Series series,
               const std::string& introduction, const std::string& number)
{
    series.name = nameAmong(runs, run);
    series.role = run.variant;
    figure.caption += figure.series.empty() ? introduction : "; ";
    figure.caption += series.name + " " + number;
    figure.series.push_back(std::move(series));
}

/// Columns: what a row is about, then each run's value and, but for the first, its difference.
std::vector<Column> comparedColumns(Column first, const Runs& runs, const std::string& unit,
                                    int decimals)
{
    std::vector<Column> columns = {std::move(first)};
    for (std::size_t i = 0; i < runs.size(); ++i) {
        columns.push_back({nameAmong(runs, *runs[i]), unit, decimals});
        if (i > 0)
            columns.push_back({"Δ " + nameAmong(runs, *runs[i]), unit, decimals, true});
    }
    return columns;
}

std::vector<Cell> comparedRow(Cell first, const std::vector<std::optional<double>>& values)
{
    std::vector<Cell> row = {std::move(first)};
    for (std::size_t i = 0; i < values.size(); ++i) {
        row.push_back(values[i] ? Cell(*values[i]) : Cell());
        if (i > 0)
            row.push_back(values[i] && values[0] ? Cell(*values[i] - *values[0]) : Cell());
    }
    return row;
}

/// Whether a row was added: only where at least one run has the measure.
bool addMeasure(Table& table, const Runs& runs, const std::string& name,
                const std::function<std::optional<double>(const RunRecord&)>& measure)
{
    std::vector<std::optional<double>> values;
    for (const RunRecord* run : runs)
        values.push_back(measure(*run));
    if (std::ranges::none_of(values, [](const auto& value) { return value.has_value(); }))
        return false;
    table.rows.push_back(comparedRow(name, values));
    return true;
}

/// Counts, which have no decimals.
void makeWhole(std::vector<Cell>& row)
{
    for (Cell& cell : row)
        if (const auto* number = std::get_if<double>(&cell))
            cell = static_cast<std::int64_t>(std::llround(*number));
}

/// The rate of each run at one task under one protocol, where at least one run has it.
void addAcceptance(Table& table, const StudyData& study, const Runs& runs)
{
    std::map<std::pair<Protocol, std::string>, std::map<std::string, AcceptanceRows>> measured;
    for (const RunRecord* run : runs)
        for (const AcceptanceRecord* row : rowsOf(study, run->id))
            measured[{protocolOf(*row), row->task}][run->id].push_back(row);
    for (const auto& [key, rows] : measured) {
        const auto& [protocol, task] = key;
        addMeasure(table, runs,
                   "Acceptance rate, " + task + " (%; " + protocol.method +
                       ", k = " + std::to_string(protocol.k) + ")",
                   [&rows](const RunRecord& run) -> std::optional<double> {
                       const auto found = rows.find(run.id);
                       if (found == rows.end())
                           return std::nullopt;
                       return percent * pooledMetrics(found->second).acceptanceRate;
                   });
    }
}

std::string fingerprintOf(const StudyData& study, const std::string& checkpoint)
{
    const auto found = std::ranges::find(study.checkpoints, checkpoint, &CheckpointRecord::id);
    return found == study.checkpoints.end() ? std::string() : found->fingerprint;
}

using Settings = std::vector<std::pair<std::string, std::string>>;

Settings provenanceOf(const StudyData& study, const RunRecord& run)
{
    return {{"run", run.id},
            {"variant", run.variant},
            {"converter", run.converter},
            {"checkpoint", run.checkpoint},
            {"fingerprint", fingerprintOf(study, run.checkpoint)},
            {"refines", run.parent},
            {"calibration", run.calibration},
            {"seed", std::to_string(run.seed)},
            {"kv_lora_rank", std::to_string(run.kvLoraRank)},
            {"qk_rope_head_dim", std::to_string(run.qkRopeHeadDim)},
            {"device", run.device},
            {"software", run.software},
            {"created", run.created},
            {"seconds", fixedText(run.seconds, 1)}};
}

} // namespace

Figure lossComparison(const Runs& runs, std::optional<LayerIndex> layer)
{
    Figure figure;
    figure.id = "loss-comparison";
    figure.title = layer ? "How layer " + std::to_string(layer->value) + " learns"
                         : "How the layers learn, in the mean";
    figure.x = {"Optimizer step", "", false, {}};
    figure.y = {"Held-out loss over its start", "", false, {}};
    for (const RunRecord* run : runs) {
        Series series = lossSeries(*run, layer);
        if (series.x.empty())
            continue;
        const std::string least = fixedText(*std::ranges::min_element(series.y), 3);
        addSeries(figure, runs, *run, std::move(series),
                  "Least held-out loss, share of the start: ", least);
    }
    if (!figure.caption.empty())
        figure.caption += ".";
    return figure;
}

Figure retainedEnergyComparison(const Runs& runs)
{
    Figure figure;
    figure.id = "energy-comparison";
    figure.title = "What the latent rank keeps";
    figure.x = {"Layer", "", false, {}};
    figure.y = {"Retained energy", "%", false, {}};
    for (const RunRecord* run : runs) {
        std::map<int, double> kept;
        for (const LayerRecord& layer : run->layers)
            if (layer.spectrum)
                kept[layer.layer.value] = percent * layer.spectrum->retainedEnergy;
        if (kept.empty())
            continue;
        Series series;
        double sum = 0;
        for (const auto& [layer, energy] : kept) {
            series.x.push_back(layer);
            series.y.push_back(energy);
            sum += energy;
        }
        addSeries(figure, runs, *run, std::move(series), "Mean retained energy: ",
                  fixedText(sum / static_cast<double>(kept.size()), 2) + " %");
    }
    if (!figure.caption.empty())
        figure.caption += ".";
    return figure;
}

Table measureComparison(const StudyData& study, const Runs& runs)
{
    Table table{
        "comparison", "Drafts compared", comparedColumns({"Measure", "", 0}, runs, "", 3), {}};
    addMeasure(table, runs, "Mean relative error",
               [](const RunRecord& run) { return run.meanRelativeError(); });
    addMeasure(table, runs, "Perplexity",
               [](const RunRecord& run) { return finalPerplexity(run); });
    if (addMeasure(table, runs, "Cache elements a token and layer", [](const RunRecord& run) {
            return std::optional(static_cast<double>(run.cacheElements));
        }))
        makeWhole(table.rows.back());
    addAcceptance(table, study, runs);
    return table;
}

Table layerComparison(const Runs& runs)
{
    Table table{"layer-comparison",
                "Relative error of each layer",
                comparedColumns({"Layer", "", 0}, runs, "", 4),
                {}};
    std::map<int, std::vector<std::optional<double>>> layers;
    for (std::size_t i = 0; i < runs.size(); ++i)
        for (const LayerRecord& layer : runs[i]->layers) {
            auto& values = layers[layer.layer.value];
            values.resize(runs.size());
            if (layer.after)
                values[i] = layer.after->relativeError;
        }
    for (const auto& [layer, values] : layers)
        table.rows.push_back(comparedRow(std::int64_t{layer}, values));
    return table;
}

Table settingsComparison(const StudyData& study, const Runs& runs, bool all)
{
    Table table{"settings-comparison", "Settings compared", {{"Setting", "", 0}}, {}};
    std::vector<std::map<std::string, std::string>> settings;
    std::set<std::string> names;
    for (const RunRecord* run : runs) {
        table.columns.push_back({nameAmong(runs, *run), "", 0});
        auto& values = settings.emplace_back();
        for (auto& [name, value] : flatSettings(run->settingsJson).value_or(Settings())) {
            names.insert(name);
            values[name] = std::move(value);
        }
    }
    const auto add = [&](const std::string& name, const std::vector<std::string>& values) {
        const bool differs =
            std::ranges::adjacent_find(values, std::not_equal_to()) != values.end();
        if (!all && !differs)
            return;
        std::vector<Cell> row = {name};
        for (const std::string& value : values)
            row.push_back(value.empty() ? Cell() : Cell(value));
        table.rows.push_back(std::move(row));
    };
    std::vector<Settings> provenance;
    for (const RunRecord* run : runs)
        provenance.push_back(provenanceOf(study, *run));
    for (std::size_t row = 0; !provenance.empty() && row < provenance.front().size(); ++row) {
        std::vector<std::string> values;
        for (const Settings& of : provenance)
            values.push_back(of[row].second);
        add(provenance.front()[row].first, values);
    }
    for (const std::string& name : names) {
        std::vector<std::string> values;
        for (auto& of : settings)
            values.push_back(of[name]);
        add(name, values);
    }
    return table;
}

} // namespace mla
