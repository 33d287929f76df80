// SPDX-License-Identifier: GPL-3.0-or-later
// Figures over the draft length k, from replays: how long accepted drafts are, what they save.
#include <algorithm>

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

Figure figureOf(const StudyData& study, const AcceptanceGroup& group, const GroupName& name,
                const Quantity& quantity)
{
    Figure figure;
    figure.id = quantity.id + "-" + name.id;
    figure.title = quantity.title + ": " + name.title;
    figure.x = {"Tokens drafted per step, k", "", false, {}};
    figure.y = {quantity.label, quantity.unit, false, {}};
    for (const DraftRows& draft : group.drafts) {
        const std::vector<DraftLength> lengths = lengthsOf(study, draft.rows);
        Series series;
        series.name = draftName(group, draft);
        series.role = draft.variant;
        for (const DraftLength& length : lengths)
            if (const std::optional<double> value = quantity.of(length)) {
                series.x.push_back(length.k);
                series.y.push_back(*value);
            }
        if (series.x.empty())
            continue;
        const auto best = std::ranges::max_element(series.y) - series.y.begin();
        const auto at = static_cast<std::size_t>(best);
        figure.caption += (figure.caption.empty() ? "Largest: " : "; ") + series.name + " " +
                          fixedText(series.y[at], 2) +
                          " at k = " + std::to_string(static_cast<int>(series.x[at]));
        figure.series.push_back(std::move(series));
    }
    if (!figure.caption.empty())
        figure.caption += ".";
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
