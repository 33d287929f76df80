// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/pages/spectra_page.h"

#include <algorithm>

#include <QLabel>
#include <QSplitter>
#include <QVBoxLayout>

#include "widgets/common/plain_text.h"

namespace mla::ui
{

namespace
{

bool hasSpectra(const RunRecord& run)
{
    return std::any_of(run.layers.begin(), run.layers.end(),
                       [](const LayerRecord& layer) { return layer.spectrum.has_value(); });
}

} // namespace

SpectraPage::SpectraPage(StudyDocument& document, SelectionModel& selection, QWidget* parent)
    : Page(document, selection, parent), m_title(new QLabel(this)),
      m_spectrum(addPlot(tr("Singular values"))), m_retained(addPlot(tr("Retained energy"))),
      m_table(addLayerTable(spectrumColumns(), QStringLiteral("rank-spectra")))
{
    m_title->setTextInteractionFlags(Qt::TextSelectableByMouse);
    auto* right = new QSplitter(Qt::Vertical, this);
    right->addWidget(m_retained);
    right->addWidget(m_table);
    auto* splitter = new QSplitter(Qt::Horizontal, this);
    splitter->addWidget(m_spectrum);
    splitter->addWidget(right);
    splitter->setSizes({1100, 1000});
    for (QSplitter* each : {right, splitter})
        each->setChildrenCollapsible(false);
    auto* layout = new QVBoxLayout(this);
    layout->addWidget(m_title);
    layout->addWidget(splitter, 1);
    connect(&selection, &SelectionModel::layerChanged, this, &SpectraPage::showLayer);
    SpectraPage::refresh();
}

const RunRecord* SpectraPage::measuredRun() const
{
    return m_document.runOrAncestor(m_selection.run(), hasSpectra);
}

void SpectraPage::refresh()
{
    const RunRecord* run = measuredRun();
    m_title->setText(run ? text(run->id) : tr("No run selected"));
    m_table->setLayers(run ? run->layers : std::vector<LayerRecord>());
    showFigure(*m_retained, run ? retainedEnergy(*run) : Figure(),
               tr("Spectra are measured by a conversion. Select a run in the Study page, or start "
                  "one with File › New run."));
    m_retained->setSelectedLayer(m_selection.layer());
    m_table->setSelectedLayer(m_selection.layer());
    showLayer();
}

void SpectraPage::showLayer()
{
    const RunRecord* run = measuredRun();
    const std::optional<int> selected = m_selection.layer();
    std::optional<LayerIndex> layer;
    if (selected && run &&
        std::any_of(run->layers.begin(), run->layers.end(), [&](const LayerRecord& record) {
            return record.layer.value == *selected && record.spectrum;
        }))
        layer = LayerIndex(*selected);
    showFigure(*m_spectrum, run ? rankSpectrum(*run, layer) : Figure(), tr("No spectra to show."));
    m_spectrum->setSelectedLayer(selected);
}

} // namespace mla::ui
