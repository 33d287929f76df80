// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/help/help_window.h"

#include <QAction>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QListView>
#include <QSettings>
#include <QShortcut>
#include <QSplitter>
#include <QToolButton>
#include <QVBoxLayout>

#include "widgets/common/empty_state.h"
#include "widgets/help/help_browser.h"
#include "widgets/help/help_page_model.h"

namespace mla::ui
{

namespace
{

constexpr QSize defaultSize{1040, 720};
const auto geometryKey = QStringLiteral("help/geometry");
const auto splitterKey = QStringLiteral("help/splitter");

QStringList wordsOf(const QLineEdit& line)
{
    return line.text().split(QLatin1Char(' '), Qt::SkipEmptyParts);
}

} // namespace

HelpWindow::HelpWindow(const QString& folder, QWidget* parent)
    : QWidget(parent, Qt::Window), m_model(new HelpPageModel(this))
{
    setWindowTitle(tr("Guide — MLA Draft Workbench"));
    m_splitter = new QSplitter(Qt::Horizontal, this);
    m_splitter->addWidget(buildList());
    m_splitter->addWidget(buildPage());
    m_splitter->setStretchFactor(1, 1);
    m_splitter->setSizes({320, 720});
    m_splitter->setChildrenCollapsible(false);
    m_state = new EmptyState(m_splitter, this);
    m_state->setText(
        tr("The guide is missing"),
        folder.isEmpty()
            ? tr("The folder of the program's resources was not found. mla-draft "
                 "--help explains the commands.")
            : tr("There are no pages in %1. mla-draft --help explains the commands.").arg(folder));
    auto* layout = new QVBoxLayout(this);
    layout->addWidget(m_state);
    const auto onKey = [this](const QKeySequence& key, auto&& action) {
        connect(new QShortcut(key, this), &QShortcut::activated, this, action);
    };
    onKey(Qt::Key_Escape, [this] { close(); });
    onKey(QKeySequence::Find, [this] {
        m_search->setFocus(Qt::ShortcutFocusReason);
        m_search->selectAll();
    });

    m_browser->setFolder(folder);
    m_model->setPages(readHelpPages(folder));
    m_state->setEmpty(m_model->pageCount() == 0);
    openPage(helpIndex);
    resize(defaultSize);
    const QSettings settings;
    restoreGeometry(settings.value(geometryKey).toByteArray());
    m_splitter->restoreState(settings.value(splitterKey).toByteArray());
}

HelpWindow::~HelpWindow()
{
    if (isVisible()) // the program ends; else hiding has saved it
        saveView();
}

QWidget* HelpWindow::buildList()
{
    auto* part = new QWidget(this);
    m_search = new QLineEdit(part);
    m_search->setPlaceholderText(tr("Search: words of a question or of its answer"));
    m_search->setAccessibleName(tr("Search the guide"));
    m_search->setClearButtonEnabled(true);
    m_found = new QLabel(part);
    m_found->setAccessibleName(tr("Pages found"));
    m_found->hide();
    m_list = new QListView(part);
    m_list->setModel(m_model);
    m_list->setAccessibleName(tr("Questions"));
    m_list->setWordWrap(true);
    m_list->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_list->setResizeMode(QListView::Adjust); // wrapped lines follow the width
    m_list->setSpacing(2);
    connect(m_search, &QLineEdit::textChanged, this, &HelpWindow::search);
    connect(m_search, &QLineEdit::returnPressed, this, [this] {
        if (m_model->rowCount({}) > 0)
            m_list->setCurrentIndex(m_model->index(0));
    });
    connect(m_list->selectionModel(), &QItemSelectionModel::currentChanged, this,
            [this](const QModelIndex& current) {
                if (current.isValid())
                    openPage(current.data(HelpPageModel::idRole).toString());
            });
    auto* column = new QVBoxLayout(part);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(m_search);
    column->addWidget(m_found);
    column->addWidget(m_list, 1);
    return part;
}

QWidget* HelpWindow::buildPage()
{
    auto* part = new QWidget(this);
    m_browser = new HelpBrowser(part);
    m_browser->setAccessibleName(tr("Page"));
    QAction* back = addStep(tr("Back"), Qt::ALT | Qt::Key_Left);
    QAction* forward = addStep(tr("Forward"), Qt::ALT | Qt::Key_Right);
    QAction* contents = addStep(tr("Contents"), Qt::ALT | Qt::Key_Home);
    connect(back, &QAction::triggered, m_browser, &QTextBrowser::backward);
    connect(forward, &QAction::triggered, m_browser, &QTextBrowser::forward);
    connect(contents, &QAction::triggered, this, [this] { openPage(helpIndex); });
    back->setEnabled(false);
    forward->setEnabled(false);
    connect(m_browser, &QTextBrowser::backwardAvailable, back, &QAction::setEnabled);
    connect(m_browser, &QTextBrowser::forwardAvailable, forward, &QAction::setEnabled);
    connect(m_browser, &HelpBrowser::pageRequested, this, &HelpWindow::openPage);
    connect(m_browser, &HelpBrowser::pageShown, this, &HelpWindow::markPage);
    auto* line = new QHBoxLayout;
    for (QAction* action : {back, forward, contents}) {
        auto* button = new QToolButton(part);
        button->setDefaultAction(action);
        button->setAccessibleName(action->text());
        line->addWidget(button);
    }
    line->addStretch(1);
    auto* column = new QVBoxLayout(part);
    column->setContentsMargins(0, 0, 0, 0);
    column->addLayout(line);
    column->addWidget(m_browser, 1);
    return part;
}

QAction* HelpWindow::addStep(const QString& name, const QKeySequence& shortcut)
{
    auto* action = new QAction(name, this);
    action->setShortcut(shortcut);
    action->setToolTip(tr("%1 (%2)").arg(name, shortcut.toString(QKeySequence::NativeText)));
    addAction(action);
    return action;
}

void HelpWindow::showPage(const QString& id)
{
    openPage(id);
    show();
    raise();
    activateWindow();
}

QString HelpWindow::currentPage() const
{
    return m_browser->currentPage();
}

void HelpWindow::openPage(const QString& id)
{
    const QString known = m_model->hasPage(id) ? id : helpIndex;
    if (m_model->hasPage(known) && known != currentPage())
        m_browser->open(known);
}

void HelpWindow::search(const QString& words)
{
    m_model->setWords(words);
    const int found = m_model->rowCount({});
    m_found->setText(found == 0 ? tr("No page holds these words.")
                                : tr("%1 of %2 pages").arg(found).arg(m_model->pageCount()));
    m_found->setVisible(!wordsOf(*m_search).isEmpty());
    markPage(currentPage());
}

/// The page may have been reached by a link, by going back, or from outside.
void HelpWindow::markPage(const QString& id)
{
    m_list->setCurrentIndex(m_model->indexOf(id));
    m_browser->highlight(wordsOf(*m_search));
}

void HelpWindow::saveView() const
{
    QSettings settings;
    settings.setValue(geometryKey, saveGeometry());
    settings.setValue(splitterKey, m_splitter->saveState());
}

void HelpWindow::hideEvent(QHideEvent* event)
{
    saveView();
    QWidget::hideEvent(event);
}

} // namespace mla::ui
