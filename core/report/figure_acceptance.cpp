// SPDX-License-Identifier: GPL-3.0-or-later
// Figures of acceptance: by task, by draft position.
#include <algorithm>

#include "core/report/acceptance_groups.h"
#include "core/report/figure_data.h"
#include "core/report/report_text.h"

namespace mla
{

namespace
{

constexpr double percent = 100;

std::vector<std::string> tasksOf(const AcceptanceGroup& group)
{
    AcceptanceRows rows;
    for (const DraftRows& draft : group.drafts)
        rows.insert(rows.end(), draft.rows.begin(), draft.rows.end());
    std::vector<std::string> tasks;
    for (const auto& [task, taskRows] : rowsByTask(rows))
        tasks.push_back(task);
    return tasks;
}

Series taskSeries(const AcceptanceGroup& group, const DraftRows& draft,
                  const std::vector<std::string>& tasks)
{
    Series series;
    series.name = draftName(group, draft);
    series.role = draft.variant;
    series.kind = Series::Kind::Bars;
    for (const auto& [task, rows] : rowsByTask(draft.rows)) {
        const AcceptanceMetrics metrics = pooledMetrics(rows);
        const auto position = std::ranges::find(tasks, task) - tasks.begin();
        series.x.push_back(static_cast<double>(position));
        series.y.push_back(percent * metrics.acceptanceRate);
        series.low.push_back(percent * metrics.rateLow);
        series.high.push_back(percent * metrics.rateHigh);
    }
    return series;
}

Figure positionFigure(const AcceptanceGroup& group, const GroupName& name, bool conditional)
{
    Figure figure;
    figure.id = (conditional ? "position-conditional-" : "position-") + name.id;
    figure.title = conditional ? "If all tokens before were accepted, is the next? " + name.title
                               : "How far into a draft acceptance reaches: " + name.title;
    figure.x = {"Position in the draft", "", false, {}};
    figure.y = {conditional ? "Accepted, given that all before were" : "Steps accepted up to here",
                "%",
                false,
                {}};
    for (const DraftRows& draft : group.drafts) {
        const AcceptanceMetrics metrics = pooledMetrics(draft.rows);
        const std::vector<double>& values = conditional ? metrics.conditional : metrics.perPosition;
        Series series;
        series.name = draftName(group, draft);
        series.role = draft.variant;
        for (std::size_t i = 0; i < values.size(); ++i) {
            series.x.push_back(static_cast<double>(i + 1));
            series.y.push_back(percent * values[i]);
        }
        if (series.x.empty())
            continue;
        figure.caption += figure.caption.empty() ? "First and last position: " : "; ";
        figure.caption += series.name + " " + fixedText(series.y.front(), 1) + " and " +
                          fixedText(series.y.back(), 1) + " %";
        figure.series.push_back(std::move(series));
    }
    if (!figure.caption.empty())
        figure.caption += ".";
    return figure;
}

} // namespace

std::vector<Figure> acceptanceByTask(const StudyData& study)
{
    std::vector<Figure> figures;
    const std::vector<AcceptanceGroup> groups = acceptanceGroups(study);
    for (const AcceptanceGroup& group : groups) {
        const GroupName name = nameOf(group, groups);
        Figure figure;
        figure.id = "acceptance-" + name.id;
        figure.title = "How many drafted tokens the target accepts: " + name.title;
        figure.x = {"Task", "", false, tasksOf(group)};
        figure.y = {"Acceptance rate", "%", false, {}};
        figure.caption = "Mean over tasks: ";
        for (const DraftRows& draft : group.drafts) {
            Series series = taskSeries(group, draft, figure.x.categories);
            figure.caption += series.name + " " + fixedText(percent * meanTaskRate(draft.rows), 1) +
                              " %" + (&draft == &group.drafts.back() ? "." : ", ");
            figure.series.push_back(std::move(series));
        }
        figure.caption += " Bars show 95 % bootstrap intervals over prompts.";
        if (!figure.series.empty())
            figures.push_back(std::move(figure));
    }
    return figures;
}

std::vector<Figure> acceptanceByPosition(const StudyData& study)
{
    std::vector<Figure> figures;
    const std::vector<AcceptanceGroup> groups = acceptanceGroups(study);
    for (const AcceptanceGroup& group : groups)
        for (const bool conditional : {false, true}) {
            Figure figure = positionFigure(group, nameOf(group, groups), conditional);
            if (!figure.series.empty())
                figures.push_back(std::move(figure));
        }
    return figures;
}

} // namespace mla
