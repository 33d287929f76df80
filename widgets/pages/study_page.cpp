// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/pages/study_page.h"

#include <QAction>
#include <QClipboard>
#include <QGuiApplication>
#include <QHeaderView>
#include <QSplitter>
#include <QTableView>
#include <QTreeView>
#include <QVBoxLayout>

#include "widgets/common/empty_state.h"

namespace mla::ui
{

namespace
{
constexpr int nameWidth = 225;
}

StudyPage::StudyPage(StudyDocument& document, SelectionModel& selection, QWidget* parent)
    : Page(document, selection, parent), m_tree(new StudyTreeModel(this)),
      m_details(new DetailsModel(this)), m_treeView(new QTreeView(this)),
      m_detailsView(new QTableView(this))
{
    buildTree();
    buildDetails();
    auto* splitter = new QSplitter(Qt::Vertical, this);
    splitter->addWidget(m_treeView);
    splitter->addWidget(m_detailsView);
    splitter->setStretchFactor(0, 3);
    splitter->setStretchFactor(1, 2);
    splitter->setChildrenCollapsible(false);
    m_state = new EmptyState(splitter, this);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_state);
    StudyPage::refresh();
}

void StudyPage::buildTree()
{
    m_treeView->setModel(m_tree);
    m_treeView->setAccessibleName(tr("Study contents"));
    m_treeView->setUniformRowHeights(true);
    m_treeView->setAlternatingRowColors(true);
    m_treeView->setTextElideMode(Qt::ElideMiddle);
    m_treeView->header()->setStretchLastSection(true);
    m_treeView->header()->resizeSection(StudyTreeModel::Name, nameWidth);
    connect(m_treeView->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
            [this](const QModelIndex& current) {
                showDetails(current);
                const StudyItem item = m_tree->item(current);
                const bool isRun = item.kind == StudyItem::Kind::Run ||
                                   item.kind == StudyItem::Kind::AcceptanceRun;
                if (isRun && m_document.run(item.id))
                    m_selection.setRun(item.id);
            });
}

void StudyPage::buildDetails()
{
    m_detailsView->setModel(m_details);
    m_detailsView->setAccessibleName(tr("Provenance of the selected item"));
    m_detailsView->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_detailsView->setAlternatingRowColors(true);
    m_detailsView->setShowGrid(false);
    m_detailsView->setWordWrap(true);
    m_detailsView->setTabKeyNavigation(false);
    m_detailsView->verticalHeader()->hide();
    m_detailsView->horizontalHeader()->setHighlightSections(false);
    m_detailsView->verticalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
    m_detailsView->horizontalHeader()->setSectionResizeMode(0, QHeaderView::ResizeToContents);
    m_detailsView->horizontalHeader()->setStretchLastSection(true);
    m_detailsView->setContextMenuPolicy(Qt::ActionsContextMenu);
    auto* copy = new QAction(tr("Copy all"), m_detailsView);
    copy->setShortcut(QKeySequence::Copy);
    copy->setShortcutContext(Qt::WidgetShortcut);
    connect(copy, &QAction::triggered, this,
            [this] { QGuiApplication::clipboard()->setText(m_details->asText()); });
    m_detailsView->addAction(copy);
}

void StudyPage::setStartActions(const QList<QAction*>& actions)
{
    for (QAction* action : actions)
        m_state->addAction(action);
}

void StudyPage::refresh()
{
    const bool waiting = !m_document.isLoaded() && !m_document.path().isEmpty();
    if (waiting)
        m_state->setText(
            tr("Nothing stored yet"),
            tr("The study appears here when the first stage of the running job ends."));
    else
        m_state->setText(tr("No study is open"),
                         tr("Open a study file, drop one on the window, or start a new run."));
    m_state->setEmpty(!m_document.isLoaded());
    const StudyItem current = m_tree->item(m_treeView->currentIndex());
    m_tree->setStudy(m_document.study());
    m_treeView->expandToDepth(0);
    for (int group = 0; group < m_tree->rowCount({}); ++group)
        expandRuns(m_tree->index(group, 0, {}));
    if (const QModelIndex again = m_tree->indexOf(current); again.isValid())
        m_treeView->setCurrentIndex(again);
    else
        showRun();
}

/// Refinements show at once; single measurements wait for a click.
void StudyPage::expandRuns(const QModelIndex& index)
{
    for (int row = 0; row < m_tree->rowCount(index); ++row) {
        const QModelIndex child = m_tree->index(row, 0, index);
        if (m_tree->item(child).kind != StudyItem::Kind::Run)
            continue;
        m_treeView->expand(child);
        expandRuns(child);
    }
}

void StudyPage::showRun()
{
    const StudyItem current = m_tree->item(m_treeView->currentIndex());
    if (!current.id.isEmpty() && current.id == m_selection.run())
        return;
    const QModelIndex index = m_tree->indexOf({StudyItem::Kind::Run, m_selection.run()});
    if (index.isValid())
        m_treeView->setCurrentIndex(index);
    else
        showDetails({});
}

void StudyPage::showDetails(const QModelIndex& index)
{
    m_details->setDetails(detailsOf(m_document.study(), m_tree->item(index)));
}

} // namespace mla::ui
