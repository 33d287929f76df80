// SPDX-License-Identifier: GPL-3.0-or-later
// Where a draft lost quality, and what refinement brought back: perplexity stage by stage.
#include <algorithm>

#include "core/report/figure_data.h"
#include "core/report/report_text.h"

namespace mla
{

namespace
{

bool isLast(const StudyData& study, const RunRecord& run)
{
    return std::ranges::none_of(study.runs,
                                [&](const RunRecord& other) { return other.parent == run.id; });
}

Series stageSeries(const RunRecord& run, const std::vector<std::string>& all)
{
    Series series;
    series.name = runLabel(run);
    series.kind = Series::Kind::Bars;
    for (const std::string& stage : stagesOf(run)) {
        series.x.push_back(
            static_cast<double>(std::ranges::find(all, stageLabel(stage)) - all.begin()));
        series.y.push_back(run.stages.at(stage).perplexity);
    }
    return series;
}

} // namespace

Figure stagePerplexities(const StudyData& study)
{
    Figure figure;
    figure.id = "perplexity-stages";
    figure.title = "Where quality is lost and regained";
    figure.x = {"Stage", "", false, {}};
    for (const std::string& stage : allStages())
        figure.x.categories.push_back(stageLabel(stage));
    figure.y = {"Perplexity", "", true, {}};
    for (const RunRecord& run : study.runs) {
        if (!isLast(study, run) || run.stages.empty())
            continue;
        Series series = stageSeries(run, figure.x.categories);
        figure.caption += (figure.caption.empty() ? "" : "; ") + series.name + ":";
        for (std::size_t i = 0; i < series.y.size(); ++i)
            figure.caption += (i == 0 ? " " : " → ") + shortText(series.y[i]);
        figure.series.push_back(std::move(series));
    }
    if (!figure.caption.empty())
        figure.caption += ".";
    return figure;
}

} // namespace mla
