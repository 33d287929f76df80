// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/pages/rope_page.h"

#include <algorithm>

#include <QLabel>
#include <QSplitter>
#include <QVBoxLayout>

#include "widgets/common/plain_text.h"

namespace mla::ui
{

namespace
{

bool hasRope(const RunRecord& run)
{
    return std::any_of(run.layers.begin(), run.layers.end(),
                       [](const LayerRecord& layer) { return layer.rope.has_value(); });
}

/// The selected layer if it was measured, else the first that was.
std::optional<LayerIndex> layerToShow(const RunRecord& run, std::optional<int> selected)
{
    std::optional<LayerIndex> first;
    for (const LayerRecord& record : run.layers) {
        if (!record.rope)
            continue;
        if (record.layer.value == selected)
            return record.layer;
        if (!first)
            first = record.layer;
    }
    return first;
}

} // namespace

RopePage::RopePage(StudyDocument& document, SelectionModel& selection, QWidget* parent)
    : Page(document, selection, parent), m_title(new QLabel(this)),
      m_heatmap(addPlot(tr("Key energy that leaves the rotary path"))),
      m_distance(addPlot(tr("Attention logit residual against distance"))),
      m_table(addLayerTable(ropeColumns(), QStringLiteral("rope-residuals")))
{
    m_title->setTextInteractionFlags(Qt::TextSelectableByMouse);
    auto* lower = new QSplitter(Qt::Horizontal, this);
    lower->addWidget(m_distance);
    lower->addWidget(m_table);
    lower->setSizes({1000, 1000});
    auto* splitter = new QSplitter(Qt::Vertical, this);
    splitter->addWidget(m_heatmap);
    splitter->addWidget(lower);
    splitter->setSizes({1000, 1100});
    for (QSplitter* each : {lower, splitter})
        each->setChildrenCollapsible(false);
    auto* layout = new QVBoxLayout(this);
    layout->addWidget(m_title);
    layout->addWidget(splitter, 1);
    connect(&selection, &SelectionModel::layerChanged, this, &RopePage::showLayer);
    RopePage::refresh();
}

const RunRecord* RopePage::measuredRun() const
{
    return m_document.runOrAncestor(m_selection.run(), hasRope);
}

void RopePage::refresh()
{
    const RunRecord* run = measuredRun();
    m_title->setText(run ? text(run->id) : tr("No run selected"));
    m_table->setLayers(run ? run->layers : std::vector<LayerRecord>());
    m_table->setSelectedLayer(m_selection.layer());
    showLayer();
}

void RopePage::showLayer()
{
    const RunRecord* run = measuredRun();
    const std::optional<LayerIndex> layer =
        run ? layerToShow(*run, m_selection.layer()) : std::nullopt;
    showFigure(*m_heatmap, layer ? ropeHeatmap(*run, *layer) : Figure(),
               tr("RoPE residuals are measured by a conversion. Select a run in the Study page, or "
                  "start one with File › New run."));
    showFigure(*m_distance, layer ? ropeDistance(*run, std::nullopt) : Figure(),
               tr("No residuals to show."));
    m_distance->setSelectedLayer(m_selection.layer());
}

} // namespace mla::ui
