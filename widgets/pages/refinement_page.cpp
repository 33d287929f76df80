// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/pages/refinement_page.h"

#include <algorithm>
#include <cmath>

#include <QCheckBox>
#include <QGridLayout>
#include <QLabel>
#include <QSlider>
#include <QSplitter>

#include "widgets/common/plain_text.h"

namespace mla::ui
{

namespace
{

/// Adds a live point to the line of its layer and role. False if the figure has no such line yet.
bool appendTo(PlotView& plot, int layer, const char* role, int step, double value)
{
    const auto& series = plot.figure().series;
    for (std::size_t i = 0; i < series.size(); ++i) {
        if (series[i].layer != layer || (series[i].role != role && !series[i].role.empty()))
            continue;
        plot.appendPoint(static_cast<int>(i), step, value);
        return true;
    }
    return false;
}

/// Without the layers that a running job hasn't reached.
RunRecord measuredLayers(RunRecord run)
{
    std::erase_if(run.layers, [](const LayerRecord& layer) { return !layer.after; });
    return run;
}

QSplitter* sideBySide(QWidget* left, QWidget* right, QWidget* parent)
{
    auto* splitter = new QSplitter(Qt::Horizontal, parent);
    splitter->addWidget(left);
    splitter->addWidget(right);
    splitter->setChildrenCollapsible(false);
    splitter->setSizes({1000, 1000});
    return splitter;
}

} // namespace

RefinementPage::RefinementPage(StudyDocument& document, SelectionModel& selection, LiveRun& live,
                               QWidget* parent)
    : Page(document, selection, parent), m_live(live),
      m_layerLoss(addPlot(tr("Loss of the selected layer"))),
      m_allLosses(addPlot(tr("Held-out loss of all layers"))),
      m_errors(addPlot(tr("Functional error before and after refinement"))),
      m_table(addLayerTable(refinementColumns(), QStringLiteral("refinement-layers")))
{
    auto* rows = new QSplitter(Qt::Vertical, this);
    rows->addWidget(sideBySide(m_layerLoss, m_allLosses, rows));
    rows->addWidget(sideBySide(m_errors, m_table, rows));
    rows->setChildrenCollapsible(false);
    rows->setSizes({1000, 1000});
    auto* layout = new QVBoxLayout(this);
    layout->addWidget(buildHeader());
    layout->addWidget(rows, 1);
    linkCursors({m_layerLoss, m_allLosses});

    connect(&selection, &SelectionModel::layerChanged, this, &RefinementPage::showLayer);
    connect(&live, &LiveRun::started, this, &RefinementPage::followLive);
    connect(&live, &LiveRun::pointsAdded, this, &RefinementPage::appendPoints);
    connect(&live, &LiveRun::layerFinished, this, [this] {
        if (followsLive())
            refresh();
    });
    connect(&live, &LiveRun::ended, this, [this] { refresh(); });
    RefinementPage::refresh();
}

QWidget* RefinementPage::buildHeader()
{
    auto* header = new QWidget(this);
    auto* line = new QHBoxLayout(header);
    line->setContentsMargins(0, 0, 0, 0);
    m_title = new QLabel(header);
    m_title->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_follow = new QCheckBox(tr("&Follow the running job"), header);
    m_follow->setEnabled(false);
    connect(m_follow, &QCheckBox::clicked, this, [this](bool on) { m_wantsLive = on; });
    connect(m_follow, &QCheckBox::toggled, this, [this] { refresh(); });
    auto* label = new QLabel(tr("&Smoothing"), header);
    m_smoothing = new QSlider(Qt::Horizontal, header);
    m_smoothing->setRange(0, 95);
    m_smoothing->setPageStep(10);
    m_smoothing->setMaximumWidth(140);
    m_smoothing->setAccessibleName(tr("Smoothing of loss curves"));
    m_smoothing->setToolTip(tr("Exponential smoothing; the raw curve stays visible"));
    label->setBuddy(m_smoothing);
    m_smoothingText = new QLabel(header);
    m_smoothingText->setMinimumWidth(
        m_smoothingText->fontMetrics().horizontalAdvance(QStringLiteral("0.00")));
    connect(m_smoothing, &QSlider::valueChanged, this, &RefinementPage::setSmoothing);
    line->addWidget(m_title, 1);
    line->addWidget(m_follow);
    line->addSpacing(12);
    line->addWidget(label);
    line->addWidget(m_smoothing);
    line->addWidget(m_smoothingText);
    setSmoothing(0);
    return header;
}

void RefinementPage::setSmoothing(int percent)
{
    m_smoothingText->setText(percent == 0 ? tr("off") : QString::number(percent / 100.0, 'f', 2));
    m_layerLoss->setSmoothing(percent / 100.0);
    m_allLosses->setSmoothing(percent / 100.0);
}

bool RefinementPage::followsLive() const
{
    return m_follow->isChecked();
}

void RefinementPage::followLive()
{
    m_follow->setEnabled(true);
    if (m_wantsLive)
        m_follow->setChecked(true);
    refresh();
}

/// Once the study holds the run that was followed, the page shows the stored one.
void RefinementPage::leaveFinishedRun()
{
    const QString run = text(m_live.record().id);
    if (!followsLive() || m_live.active() || !m_document.run(run))
        return;
    const bool wanted = m_wantsLive;
    m_follow->setChecked(false);
    m_follow->setEnabled(false);
    m_selection.setRun(run);
    m_wantsLive = wanted;
}

void RefinementPage::showRun()
{
    // Turning from one run to another is a wish to leave the running one; the first run of a study
    // is selected without the user.
    if (!m_run.isEmpty() && followsLive()) {
        m_wantsLive = false;
        m_follow->setChecked(false);
    }
    m_run = m_selection.run();
    refresh();
}

const RunRecord* RefinementPage::shownRun() const
{
    return followsLive() ? &m_live.record() : m_document.run(m_selection.run());
}

void RefinementPage::showTitle(const RunRecord* run)
{
    if (!run)
        m_title->setText(tr("No run selected"));
    else if (!followsLive())
        m_title->setText(text(run->id));
    else if (m_live.active())
        m_title->setText(tr("Running now: %1").arg(text(run->id)));
    else
        m_title->setText(tr("Ended: %1").arg(text(run->id)));
}

void RefinementPage::refresh()
{
    leaveFinishedRun();
    const RunRecord* run = shownRun();
    showTitle(run);
    const bool refined = run && std::any_of(run->layers.begin(), run->layers.end(),
                                            [](const auto& layer) { return layer.loss; });
    const QString hint =
        followsLive() ? tr("Waiting for the first optimizer steps…")
        : run ? tr("This draft was not refined. Select a refinement of it in the Study page.")
              : tr("Select a run in the Study page, or start one with File › New run.");
    m_table->setLayers(run ? run->layers : std::vector<LayerRecord>());
    showFigure(*m_errors, run ? layerErrors(measuredLayers(*run)) : Figure(),
               run ? tr("Functional errors appear when the first layer is done.") : hint);
    showFigure(*m_allLosses, refined ? lossCurves(*run, std::nullopt) : Figure(), hint);
    m_errors->setSelectedLayer(m_selection.layer());
    m_allLosses->setSelectedLayer(m_selection.layer());
    m_table->setSelectedLayer(m_selection.layer());
    showLayer();
    if (!refined)
        m_layerLoss->clear(hint);
}

std::optional<int> RefinementPage::shownLayer() const
{
    const RunRecord* run = shownRun();
    if (m_selection.layer() || !run)
        return m_selection.layer();
    std::optional<int> first;
    for (const LayerRecord& layer : run->layers) {
        if (!layer.loss)
            continue;
        if (followsLive() && !layer.complete)
            return layer.layer.value;
        if (!first)
            first = layer.layer.value;
    }
    return first;
}

void RefinementPage::showLayer()
{
    const RunRecord* run = shownRun();
    const std::optional<int> layer = shownLayer();
    const bool has = run && layer &&
                     std::any_of(run->layers.begin(), run->layers.end(), [&](const auto& record) {
                         return record.layer.value == *layer && record.loss;
                     });
    showFigure(*m_layerLoss, has ? lossCurves(*run, LayerIndex(*layer)) : Figure(),
               tr("Layer %1 has no loss curve yet.").arg(layer.value_or(0)));
}

void RefinementPage::appendPoints(const std::vector<LossPoint>& points)
{
    if (!followsLive())
        return;
    const std::optional<int> shown = shownLayer();
    // A point of a line that the figure lacks (a layer's first) needs the figure built anew, once.
    bool complete = true;
    for (const LossPoint& point : points) {
        const int layer = point.layer.value;
        if (point.heldout)
            complete &= appendTo(*m_allLosses, layer, "heldout", point.step, *point.heldout);
        if (shown != layer)
            continue;
        if (point.step > 0)
            complete &= appendTo(*m_layerLoss, layer, "train", point.step, point.train);
        if (point.heldout)
            complete &= appendTo(*m_layerLoss, layer, "heldout", point.step, *point.heldout);
    }
    if (!complete)
        refresh();
}

} // namespace mla::ui
