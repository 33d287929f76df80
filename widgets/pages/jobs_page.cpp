// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/pages/jobs_page.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QHeaderView>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QScrollBar>
#include <QSplitter>
#include <QTabWidget>
#include <QTableView>
#include <QVBoxLayout>

#include "widgets/common/empty_state.h"
#include "widgets/common/fonts.h"
#include "widgets/pages/progress_delegate.h"

namespace mla::ui
{

JobsPage::JobsPage(JobListModel& jobs, QWidget* parent)
    : QWidget(parent), m_jobs(jobs), m_view(new QTableView(this)), m_log(new QPlainTextEdit(this))
{
    m_view->setModel(&jobs);
    m_view->setAccessibleName(tr("Jobs"));
    m_view->setItemDelegateForColumn(JobListModel::Progress,
                                     new ProgressDelegate(JobListModel::progressRole, m_view));
    m_view->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_view->setSelectionMode(QAbstractItemView::SingleSelection);
    m_view->setShowGrid(false);
    m_view->setTabKeyNavigation(false);
    m_view->verticalHeader()->hide();
    m_view->horizontalHeader()->setHighlightSections(false);
    m_view->horizontalHeader()->setSectionResizeMode(JobListModel::Title, QHeaderView::Stretch);
    const std::pair<int, int> widths[] = {{JobListModel::State, 84},
                                          {JobListModel::Stage, 84},
                                          {JobListModel::Progress, 140},
                                          {JobListModel::Elapsed, 66},
                                          {JobListModel::Remaining, 82}};
    for (const auto& [column, width] : widths)
        m_view->setColumnWidth(column, width);
    m_log->setReadOnly(true);
    m_log->setFont(monospaceFont());
    m_log->setLineWrapMode(QPlainTextEdit::NoWrap);
    m_log->setAccessibleName(tr("Messages of the selected job"));

    auto* splitter = new QSplitter(Qt::Horizontal, this);
    splitter->addWidget(m_view);
    splitter->addWidget(m_log);
    splitter->setSizes({1000, 600});
    splitter->setChildrenCollapsible(false);
    auto* content = new QWidget(this);
    auto* column = new QVBoxLayout(content);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(splitter, 1);
    column->addWidget(buildButtons());
    m_state = new EmptyState(content, this);
    m_state->setText(tr("No jobs in this session"),
                     tr("A new run converts a checkpoint, refines the draft and measures what its "
                        "target accepts."));
    m_state->setEmpty(true);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(4, 4, 4, 4);
    layout->addWidget(m_state);

    connect(m_view->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
            &JobsPage::showCurrent);
    connect(&jobs, &QAbstractItemModel::dataChanged, this, &JobsPage::showCurrent);
    connect(&jobs, &QAbstractItemModel::rowsInserted, this, [this] { m_state->setEmpty(false); });
    connect(&jobs, &JobListModel::logChanged, this, &JobsPage::showLog);
    showCurrent();
}

QWidget* JobsPage::buildButtons()
{
    auto* part = new QWidget(this);
    auto* line = new QHBoxLayout(part);
    line->setContentsMargins(0, 0, 0, 0);
    const auto button = [&](const QString& label, auto&& action) {
        auto* made = new QPushButton(label, part);
        connect(made, &QPushButton::clicked, this, action);
        line->addWidget(made);
        return made;
    };
    m_cancel = button(tr("&Cancel"), [this] { emit cancelRequested(current()); });
    m_resume = button(tr("&Resume"), [this] { emit resumeRequested(current()); });
    m_resume->setToolTip(tr("Continue where the job stopped; finished layers are kept"));
    line->addStretch(1);
    m_copy = button(tr("Copy &messages"),
                    [this] { QGuiApplication::clipboard()->setText(m_jobs.logOf(current())); });
    m_reveal = button(tr("Show &files"), [this] { emit revealRequested(current()); });
    m_reveal->setToolTip(tr("Open the folder of the job's results"));
    return part;
}

void JobsPage::addStartAction(QAction* action)
{
    m_state->addAction(action);
}

void JobsPage::addCluster(QWidget* view)
{
    m_tabs = new QTabWidget(this);
    m_tabs->setDocumentMode(true);
    m_tabs->addTab(m_state, tr("This machine"));
    m_tabs->addTab(view, tr("Cluster"));
    layout()->addWidget(m_tabs);
}

void JobsPage::select(JobId job)
{
    if (m_tabs)
        m_tabs->setCurrentWidget(m_state);
    const int row = m_jobs.rowOf(job);
    if (row >= 0)
        m_view->setCurrentIndex(m_jobs.index(row, 0));
}

JobId JobsPage::current() const
{
    return m_jobs.jobAt(m_view->currentIndex().row());
}

void JobsPage::showCurrent()
{
    const JobId job = current();
    const JobState state = m_jobs.stateOf(job);
    m_cancel->setEnabled(job != 0 && (state == JobState::Queued || state == JobState::Running));
    m_resume->setEnabled(job != 0 && (state == JobState::Cancelled || state == JobState::Failed));
    m_copy->setEnabled(job != 0);
    m_reveal->setEnabled(job != 0);
    showLog(job);
}

void JobsPage::showLog(JobId job)
{
    if (job != current())
        return;
    const QString log = m_jobs.logOf(job);
    if (log == m_log->toPlainText())
        return;
    m_log->setPlainText(log);
    m_log->verticalScrollBar()->setValue(m_log->verticalScrollBar()->maximum());
}

} // namespace mla::ui
