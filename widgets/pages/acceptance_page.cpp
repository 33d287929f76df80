// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/pages/acceptance_page.h"

#include <QEvent>
#include <QSplitter>
#include <QTabWidget>
#include <QVBoxLayout>

#include "widgets/common/empty_state.h"
#include "widgets/common/palette.h"
#include "widgets/common/plain_text.h"
#include "widgets/pages/acceptance_table.h"
#include "widgets/pages/figure_choice.h"
#include "widgets/pages/matched_view.h"
#include "widgets/pages/token_text_view.h"

namespace mla::ui
{

AcceptancePage::AcceptancePage(StudyDocument& document, SelectionModel& selection, QWidget* parent)
    : Page(document, selection, parent)
{
    auto* tabs = new QTabWidget(this);
    tabs->setDocumentMode(true);
    tabs->setAccessibleName(tr("Views of acceptance"));
    tabs->addTab(buildMeasurements(), tr("Measurements"));
    m_matched = new MatchedView(addChoice(tr("Change in matched cells")),
                                addChoice(tr("Crossover of families and converters")), this);
    connect(m_matched, &MatchedView::runActivated, this, &AcceptancePage::chooseRun);
    connect(m_matched, &MatchedView::exportFailed, this, &Page::failed);
    tabs->addTab(m_matched, tr("Matched cells"));
    m_tokens = new TokenTextView(this);
    connect(m_tokens, &TokenTextView::exportFailed, this, &Page::failed);
    tabs->addTab(m_tokens, tr("Tokens"));
    m_state = new EmptyState(tabs, this);
    m_state->setText(tr("No acceptance was measured"),
                     tr("A run measures it when its dialog names task files: File › New run."));
    auto* layout = new QVBoxLayout(this);
    layout->addWidget(m_state);
    AcceptancePage::refresh();
    followPalette();
}

QWidget* AcceptancePage::buildMeasurements()
{
    m_table = new AcceptanceTable(this);
    connect(m_table, &AcceptanceTable::runActivated, this, &AcceptancePage::chooseRun);
    connect(m_table, &AcceptanceTable::exportFailed, this, &Page::failed);
    m_rates = addChoice(tr("Acceptance by task"));
    m_reasons = addChoice(tr("Acceptance by draft position"));
    auto* plots = new QSplitter(Qt::Horizontal, this);
    plots->addWidget(m_rates);
    plots->addWidget(m_reasons);
    auto* splitter = new QSplitter(Qt::Vertical, this);
    splitter->addWidget(m_table);
    splitter->addWidget(plots);
    splitter->setSizes({1000, 1300});
    for (QSplitter* each : {plots, splitter})
        each->setChildrenCollapsible(false);
    return splitter;
}

FigureChoice* AcceptancePage::addChoice(const QString& name)
{
    return new FigureChoice(addPlot(name), name, this);
}

void AcceptancePage::refresh()
{
    const StudyData& study = m_document.study();
    m_state->setEmpty(study.acceptance.empty());
    m_table->setRows(acceptanceRows(study));
    m_matched->setCells(studyCells(study));
    m_tokens->setStudy(study);
    fillFigures();
    showRun();
}

/// Left what was accepted, right where in a draft, for how long, and what it depends on.
void AcceptancePage::fillFigures()
{
    const StudyData& study = m_document.study();
    const QString nothing = tr("Nothing was measured.");
    m_rates->setFigures(acceptanceByTask(study), nothing);
    std::vector<Figure> reasons;
    for (const std::vector<Figure>& figures :
         {acceptanceByPosition(study), acceptedLengths(study), draftLengths(study),
          acceptanceAgainstFidelity(study), speedAgainstAcceptance(study)})
        reasons.insert(reasons.end(), figures.begin(), figures.end());
    m_reasons->setFigures(std::move(reasons), nothing);
}

void AcceptancePage::chooseRun(const QString& run)
{
    if (m_document.run(run))
        m_selection.setRun(run);
}

/// Marks the selected run's first rows and turns to the figures of its converter.
void AcceptancePage::showRun()
{
    if (const RunRecord* run = m_document.run(m_selection.run())) {
        m_rates->follow(text(run->converter));
        m_reasons->follow(text(run->converter));
    }
    m_table->selectRun(m_selection.run());
    m_matched->selectRun(m_selection.run());
}

void AcceptancePage::followPalette()
{
    m_table->setDark(isDark(palette()));
    m_matched->setDark(isDark(palette()));
}

void AcceptancePage::changeEvent(QEvent* event)
{
    Page::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        followPalette();
}

} // namespace mla::ui
