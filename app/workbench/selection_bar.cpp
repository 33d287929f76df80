// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/selection_bar.h"

#include <QComboBox>
#include <QLabel>
#include <QSignalBlocker>

#include "widgets/common/plain_text.h"

namespace mla::ui
{

namespace
{

/// Drops what is gone from the selection, and starts with the newest functional draft.
QString runToShow(const StudyData& study, const QString& wanted)
{
    if (study.findRun(wanted.toStdString()))
        return wanted;
    const RunRecord* best = nullptr;
    for (const RunRecord& run : study.runs)
        if (!best || run.variant == "functional" || best->variant != "functional")
            best = &run;
    return best ? text(best->id) : QString();
}

} // namespace

SelectionBar::SelectionBar(StudyDocument& document, SelectionModel& selection, QWidget* parent)
    : QToolBar(tr("Selection"), parent), m_document(document), m_selection(selection),
      m_runs(new QComboBox(this)), m_layers(new QComboBox(this))
{
    setObjectName(QStringLiteral("selection"));
    const auto add = [this](const QString& label, QComboBox* box, int characters) {
        auto* title = new QLabel(label, this);
        title->setBuddy(box);
        title->setContentsMargins(8, 0, 4, 0);
        box->setMinimumContentsLength(characters);
        box->setSizeAdjustPolicy(QComboBox::AdjustToContents);
        box->setAccessibleName(QString(label).remove(QLatin1Char('&')));
        addWidget(title);
        addWidget(box);
    };
    add(tr("R&un"), m_runs, 28);
    add(tr("La&yer"), m_layers, 10);
    connect(m_runs, &QComboBox::activated, this,
            [this](int index) { m_selection.setRun(m_runs->itemData(index).toString()); });
    connect(m_layers, &QComboBox::activated, this, [this](int index) {
        const QVariant layer = m_layers->itemData(index);
        m_selection.setLayer(layer.isValid() ? std::optional(layer.toInt()) : std::nullopt);
    });
    connect(&document, &StudyDocument::studyChanged, this, &SelectionBar::showStudy);
    connect(&selection, &SelectionModel::runChanged, this, &SelectionBar::showRun);
    connect(&selection, &SelectionModel::layerChanged, this, &SelectionBar::showLayer);
    showStudy();
}

void SelectionBar::showStudy()
{
    const QSignalBlocker quiet(m_runs);
    m_runs->clear();
    for (const RunRecord& run : m_document.study().runs)
        m_runs->addItem(text(run.id), text(run.id));
    m_runs->setEnabled(m_runs->count() > 0);
    m_selection.setRun(runToShow(m_document.study(), m_selection.run()));
    showRun();
}

void SelectionBar::showRun()
{
    m_runs->setCurrentIndex(m_runs->findData(m_selection.run()));
    fillLayers();
    showLayer();
}

void SelectionBar::fillLayers()
{
    const QSignalBlocker quiet(m_layers);
    m_layers->clear();
    m_layers->addItem(tr("All layers"));
    if (const RunRecord* run = m_document.run(m_selection.run()))
        for (const LayerRecord& layer : run->layers)
            m_layers->addItem(tr("Layer %1").arg(layer.layer.value), layer.layer.value);
}

void SelectionBar::showLayer()
{
    const auto layer = m_selection.layer();
    const int index = layer ? m_layers->findData(*layer) : 0;
    m_layers->setCurrentIndex(std::max(0, index));
}

void SelectionBar::stepLayer(int by)
{
    const int count = m_layers->count();
    if (count < 2)
        return;
    const int index = (m_layers->currentIndex() + by + count) % count;
    const QVariant layer = m_layers->itemData(index);
    m_selection.setLayer(layer.isValid() ? std::optional(layer.toInt()) : std::nullopt);
}

} // namespace mla::ui
