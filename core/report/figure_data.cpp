// SPDX-License-Identifier: GPL-3.0-or-later
// The figures of a report, in reading order: utility, fidelity, then why.
#include "core/report/figure_data.h"

#include <algorithm>
#include <set>

#include "core/report/report_text.h"
#include "core/report/study_cells.h"

namespace mla
{

namespace
{

void add(std::vector<Figure>& figures, Figure figure)
{
    if (!figure.series.empty() || figure.heatmap)
        figures.push_back(std::move(figure));
}

/// One comparison per converter, in the order of the runs.
void addComparisons(std::vector<Figure>& figures, const StudyData& study)
{
    std::vector<std::string> converters;
    for (const RunRecord& run : study.runs)
        if (!run.converter.empty() &&
            std::ranges::find(converters, run.converter) == converters.end())
            converters.push_back(run.converter);
    for (const std::string& converter : converters) {
        std::vector<const RunRecord*> runs;
        for (const RunRecord& run : study.runs)
            if (run.converter == converter)
                runs.push_back(&run);
        Figure figure = layerErrorComparison(runs);
        figure.id += "-" + fileStem(converter);
        figure.title += ": " + converterLabel(converter);
        if (figure.series.size() > 1)
            add(figures, std::move(figure));
    }
}

/// The layer whose keys lose the largest share of energy: one heat map stands for the run.
std::optional<LayerIndex> worstRopeLayer(const RunRecord& run)
{
    std::optional<LayerIndex> worst;
    double most = -1;
    for (const LayerRecord& layer : run.layers) {
        if (!layer.rope)
            continue;
        double lost = 0;
        for (const double energy : layer.rope->keyEnergy)
            lost += energy;
        for (const double energy : layer.rope->keptEnergy)
            lost -= energy;
        if (lost > most) {
            most = lost;
            worst = layer.layer;
        }
    }
    return worst;
}

/// Ids name files: a second figure of the same id gets a number.
void makeIdsUnique(std::vector<Figure>& figures)
{
    std::set<std::string> seen;
    for (Figure& figure : figures) {
        const std::string stem = figure.id;
        for (int number = 2; !seen.insert(figure.id).second; ++number)
            figure.id = stem + "-" + std::to_string(number);
    }
}

} // namespace

std::vector<Figure> allFigures(const StudyData& study)
{
    std::vector<Figure> figures;
    const StudyCells cells = studyCells(study);
    for (const std::vector<Figure>& each :
         {acceptanceByTask(study), matchedDeltas(cells), std::vector<Figure>{crossoverGrid(cells)},
          acceptanceByPosition(study), acceptedLengths(study), draftLengths(study),
          acceptanceAgainstFidelity(study), speedAgainstAcceptance(study)})
        for (const Figure& figure : each)
            add(figures, figure);
    add(figures, stagePerplexities(study));
    addComparisons(figures, study);
    for (const RunRecord& run : study.runs) {
        add(figures, layerErrors(run));
        add(figures, errorSources(run));
        add(figures, positionKl(run));
        add(figures, positionPerplexity(run));
        add(figures, lossCurves(run, std::nullopt));
        add(figures, rankSpectrum(run, std::nullopt));
        add(figures, retainedEnergy(run));
        if (const auto layer = worstRopeLayer(run))
            add(figures, ropeHeatmap(run, *layer));
        add(figures, ropeDistance(run, std::nullopt));
        for (const AttentionMapRecord& map : run.attentionMaps)
            for (Figure& figure : attentionMaps(run, map))
                add(figures, std::move(figure));
    }
    makeIdsUnique(figures);
    return figures;
}

} // namespace mla
