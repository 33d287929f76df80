// SPDX-License-Identifier: GPL-3.0-or-later
// Figures over the draft length k, from replays: how long accepted drafts are, what they save.
#include "core/evaluate/draft_length.h"
#include "core/report/acceptance_groups.h"
#include "core/report/figure_data.h"
#include "core/report/report_text.h"
#include "core/report/token_view.h"

namespace mla
{

namespace
{

constexpr int longestDraft = 8; ///< shown where no cost was measured

/// k = 1, 2, .. of one draft's rows together; costs are those of the first row that has them.
std::vector<DraftLength> lengthsOf(const StudyData& study, const AcceptanceRows& rows)
{
    std::vector<std::vector<double>> chances;
    const StepCosts* costs = nullptr;
    for (const AcceptanceRecord* row : rows) {
        const std::vector<std::vector<double>> own = acceptanceChances(study, *row);
        chances.insert(chances.end(), own.begin(), own.end());
        if (!costs && row->costs.measured())
            costs = &row->costs;
    }
    if (chances.empty())
        return {};
    const int most = costs ? static_cast<int>(costs->verify.size()) - 1 : longestDraft;
    return sweepDraftLengths(chances, most, costs ? costs->draft : 0,
                             costs ? costs->verify : std::vector<double>());
}

struct Quantity {
    std::string id, title, label, unit;
    std::optional<double> (*of)(const DraftLength&);
};

/// Appends a draft's best k, or its longest where costs decide nothing, to the words below.
void tellLength(std::string& caption, const std::string& draft, double value, int k)
{
    caption += (caption.empty() ? "" : "; ") + draft + " " + fixedText(value, 2) +
               " at k = " + std::to_string(k);
}

Figure figureOf(const StudyData& study, const AcceptanceGroup& group, const GroupName& name,
                const Quantity& quantity)
{
    Figure figure;
    figure.id = quantity.id + "-" + name.id;
    figure.title = quantity.title + ": " + name.title;
    figure.x = {"Tokens drafted per step, k", "", false, {}};
    figure.y = {quantity.label, quantity.unit, false, {}};
    Series best;
    best.name = "best k";
    best.kind = Series::Kind::Points;
    for (const DraftRows& draft : group.drafts) {
        const std::vector<DraftLength> lengths = lengthsOf(study, draft.rows);
        const std::optional<int> bestK = bestDraftLength(lengths);
        Series series;
        series.name = draftName(group, draft);
        series.role = draft.variant;
        for (const DraftLength& length : lengths)
            if (const std::optional<double> value = quantity.of(length)) {
                series.x.push_back(length.k);
                series.y.push_back(*value);
                if (length.k == bestK) {
                    best.x.push_back(length.k);
                    best.y.push_back(*value);
                }
            }
        if (series.x.empty())
            continue;
        const int told = bestK.value_or(lengths.back().k);
        tellLength(figure.caption, series.name, series.y[static_cast<std::size_t>(told - 1)], told);
        figure.series.push_back(std::move(series));
    }
    if (!figure.caption.empty())
        figure.caption += ".";
    if (!best.x.empty()) {
        figure.caption += " The best k has the largest predicted speed-up.";
        figure.series.push_back(std::move(best));
    }
    return figure;
}

} // namespace

std::vector<Figure> draftLengths(const StudyData& study)
{
    const std::vector<Quantity> quantities = {
        {"speedup-by-k", "Speed-up predicted from measured costs", "Speed-up over plain decoding",
         "×", [](const DraftLength& length) { return length.speedup; }},
        {"length-by-k", "Tokens a step yields", "Mean acceptance length", "tokens",
         [](const DraftLength& length) { return std::optional(length.meanAcceptanceLength); }}};
    std::vector<Figure> figures;
    const std::vector<AcceptanceGroup> groups = acceptanceGroups(study);
    for (const Quantity& quantity : quantities)
        for (const AcceptanceGroup& group : groups) {
            Figure figure = figureOf(study, group, nameOf(group, groups), quantity);
            if (!figure.series.empty())
                figures.push_back(std::move(figure));
        }
    return figures;
}

} // namespace mla
