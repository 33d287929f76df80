// SPDX-License-Identifier: GPL-3.0-or-later
// Figures of draft utility: how long acceptance reaches, and what fidelity and speed have to do
// with it.
#include <algorithm>
#include <map>

#include "core/report/acceptance_groups.h"
#include "core/report/figure_data.h"
#include "core/report/report_text.h"

namespace mla
{

namespace
{

constexpr double percent = 100;
constexpr auto original = "original";

struct Point {
    double x = 0, y = 0;
};

/// Rows of one way of measuring with the draft each belongs to.
struct Measured {
    Protocol protocol;
    AcceptanceRows rows;
};
std::vector<Measured> byProtocol(const StudyData& study)
{
    std::map<Protocol, AcceptanceRows> groups;
    for (const AcceptanceRecord& row : study.acceptance)
        groups[protocolOf(row)].push_back(&row);
    std::vector<Measured> all;
    for (auto& [protocol, rows] : groups)
        all.push_back({protocol, std::move(rows)});
    return all;
}

std::string describe(const Protocol& protocol)
{
    return protocol.target + ", " + protocol.method + ", drafts of " + std::to_string(protocol.k);
}

/// "functional, TransMLA": drafts of a variant and converter are one series.
struct Kind {
    std::string variant, converter;
    auto operator<=>(const Kind&) const = default;
};
Kind kindOf(const RunRecord* run)
{
    if (!run || run->variant == original)
        return {original, {}};
    return {run->variant, run->converter};
}

/// A scatter figure from `pointOf(row, run)`, which is null where a row has no point.
template <typename PointOf>
std::vector<Series> scatter(const StudyData& study, const AcceptanceRows& rows, PointOf pointOf)
{
    std::vector<Kind> order;
    std::map<Kind, std::vector<Point>> points;
    for (const AcceptanceRecord* row : rows) {
        const RunRecord* run = study.findRun(row->run);
        const std::optional<Point> point = pointOf(*row, run);
        if (!point || (!run && row->run != original))
            continue;
        const Kind kind = kindOf(run);
        if (!points.contains(kind))
            order.push_back(kind);
        points[kind].push_back(*point);
    }
    std::vector<Series> all;
    for (const Kind& kind : order) {
        Series series;
        series.name =
            kind.variant + (kind.converter.empty() ? "" : ", " + converterLabel(kind.converter));
        series.role = kind.variant;
        series.kind = Series::Kind::Points;
        std::ranges::stable_sort(points[kind], {}, &Point::x);
        for (const Point& point : points[kind]) {
            series.x.push_back(point.x);
            series.y.push_back(point.y);
        }
        all.push_back(std::move(series));
    }
    return all;
}

double ratePercent(const AcceptanceRecord& row)
{
    return percent * pooledMetrics({&row}).acceptanceRate;
}

/// The unconverted draft computes what the original computes.
std::optional<double> errorOf(const RunRecord* run)
{
    if (!run || run->variant == original)
        return 0;
    return run->meanRelativeError();
}

Series lengthSeries(const AcceptanceGroup& group, const DraftRows& draft)
{
    const AcceptanceMetrics metrics = pooledMetrics(draft.rows);
    Series series;
    series.name = draftName(group, draft);
    series.role = draft.variant;
    series.kind = Series::Kind::Bars;
    for (std::size_t length = 0; metrics.steps > 0 && length < metrics.histogram.size(); ++length) {
        series.x.push_back(static_cast<double>(length));
        series.y.push_back(percent * static_cast<double>(metrics.histogram[length]) /
                           static_cast<double>(metrics.steps));
    }
    return series;
}

std::string lengthText(const AcceptanceGroup& group, const DraftRows& draft)
{
    return draftName(group, draft) + " " +
           fixedText(pooledMetrics(draft.rows).meanAcceptanceLength, 2);
}

} // namespace

std::vector<Figure> acceptedLengths(const StudyData& study)
{
    std::vector<Figure> figures;
    const std::vector<AcceptanceGroup> groups = acceptanceGroups(study);
    for (const AcceptanceGroup& group : groups) {
        const GroupName name = nameOf(group, groups);
        Figure figure;
        figure.id = "lengths-" + name.id;
        figure.title = "How many tokens of a draft are accepted: " + name.title;
        figure.x = {"Accepted tokens in a step", "", false, {}};
        figure.y = {"Share of steps", "%", false, {}};
        for (const DraftRows& draft : group.drafts) {
            Series series = lengthSeries(group, draft);
            if (series.x.empty())
                continue;
            figure.caption +=
                (figure.caption.empty() ? "Mean acceptance length, with the token the "
                                          "target adds: "
                                        : ", ") +
                lengthText(group, draft);
            figure.series.push_back(std::move(series));
        }
        if (figure.series.empty())
            continue;
        figure.caption += " tokens.";
        figures.push_back(std::move(figure));
    }
    return figures;
}

std::vector<Figure> acceptanceAgainstFidelity(const StudyData& study)
{
    std::vector<Figure> figures;
    for (const Measured& measured : byProtocol(study)) {
        Figure figure;
        figure.id = "fidelity-acceptance-" + fileStem(describe(measured.protocol));
        figure.title =
            "Fidelity of the attention blocks and acceptance: " + describe(measured.protocol);
        figure.x = {"Mean relative error of the attention blocks", "", false, {}};
        figure.y = {"Acceptance rate", "%", false, {}};
        figure.series = scatter(
            study, measured.rows,
            [](const AcceptanceRecord& row, const RunRecord* run) -> std::optional<Point> {
                const std::optional<double> error = errorOf(run);
                return error ? std::optional(Point{*error, ratePercent(row)}) : std::nullopt;
            });
        figure.caption = "A point per draft and task; the unconverted draft has no error.";
        const bool converted = std::ranges::any_of(
            figure.series, [](const Series& series) { return series.role != original; });
        if (converted)
            figures.push_back(std::move(figure));
    }
    return figures;
}

std::vector<Figure> speedAgainstAcceptance(const StudyData& study)
{
    std::vector<Figure> figures;
    for (const Measured& measured : byProtocol(study)) {
        Figure figure;
        figure.id = "speed-acceptance-" + fileStem(describe(measured.protocol));
        figure.title = "Acceptance and speed: " + describe(measured.protocol);
        figure.x = {"Acceptance rate", "%", false, {}};
        figure.y = {"Speed", "tokens/s", false, {}};
        figure.series =
            scatter(study, measured.rows,
                    [](const AcceptanceRecord& row, const RunRecord*) -> std::optional<Point> {
                        return row.tokensPerSecond
                                   ? std::optional(Point{ratePercent(row), *row.tokensPerSecond})
                                   : std::nullopt;
                    });
        figure.caption = "A point per draft and task.";
        if (!figure.series.empty())
            figures.push_back(std::move(figure));
    }
    return figures;
}

} // namespace mla
