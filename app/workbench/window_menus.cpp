// SPDX-License-Identifier: GPL-3.0-or-later
// The menus of MainWindow and what each of their actions does. Shortcuts are spelled out: the
// standard ones of Qt differ between desktops, and are missing on some.
#include <QMenuBar>
#include <QStackedLayout>

#include "app/workbench/boxes.h"
#include "app/workbench/dock_area.h"
#include "app/workbench/main_window.h"
#include "app/workbench/selection_bar.h"
#include "app/workbench/session.h"
#include "app/workbench/theme_menu.h"
#include "core/base/resources.h"
#include "widgets/common/command_palette.h"
#include "widgets/common/plain_text.h"
#include "widgets/common/recent_files.h"
#include "widgets/help/help_window.h"
#include "widgets/pages/jobs_page.h"
#include "widgets/pages/welcome_page.h"

namespace mla::ui
{

QAction* MainWindow::addAction(QMenu* menu, const QString& title, const QKeySequence& shortcut,
                               const std::function<void()>& slot)
{
    QAction* action = menu->addAction(title);
    action->setShortcut(shortcut);
    connect(action, &QAction::triggered, this, slot);
    return action;
}

void MainWindow::buildFileMenu()
{
    QMenu* menu = menuBar()->addMenu(tr("&File"));
    m_newRun = addAction(menu, tr("&New run…"), Qt::CTRL | Qt::Key_N, [this] { newRun(); });
    m_open = addAction(menu, tr("&Open study…"), Qt::CTRL | Qt::Key_O, [this] { askForStudy(); });
    m_recent = new RecentFiles(tr("Open &recent"), this);
    menu->addMenu(m_recent);
    connect(m_recent, &RecentFiles::chosen, this, &MainWindow::openStudy);
    m_reload = addAction(menu, tr("Re&load study"), Qt::Key_F5, [this] { m_document.reload(); });
    m_closeStudy =
        addAction(menu, tr("&Close study"), Qt::CTRL | Qt::Key_W, [this] { m_document.close(); });
    menu->addSeparator();
    menu->addAction(m_draftExport->action());
    m_export =
        addAction(menu, tr("&Export report…"), Qt::CTRL | Qt::Key_E, [this] { exportReport(); });
    menu->addSeparator();
    addAction(menu, tr("&Quit"), Qt::CTRL | Qt::Key_Q, [this] { close(); });
}

void MainWindow::buildRunMenu()
{
    QMenu* menu = menuBar()->addMenu(tr("&Run"));
    menu->addAction(m_newRun);
    m_runDemo = addAction(menu, tr("Run the &demo"), {}, [this] { runDemo(); });
    m_cancel = addAction(menu, tr("&Cancel running job"), Qt::CTRL | Qt::Key_Period,
                         [this] { m_jobs.cancel(m_jobs.current()); });
    addAction(menu, tr("Show &jobs"), {}, [this] { m_docks->raisePage(m_jobsPage); });
}

void MainWindow::buildViewMenu()
{
    QMenu* menu = menuBar()->addMenu(tr("&View"));
    m_findCommand =
        addAction(menu, tr("&Find a command"), Qt::CTRL | Qt::Key_K, [this] { findCommand(); });
    menu->addSeparator();
    menu->addActions(m_docks->pageActions());
    menu->addMenu(tr("&Panels"))->addActions(m_docks->visibilityActions());
    addAction(menu, tr("Reset la&yout"), {}, [this] { m_session->resetLayout(); });
    menu->addSeparator();
    addAction(menu, tr("&Next layer"), Qt::ALT | Qt::Key_Down,
              [this] { m_selectionBar->stepLayer(1); });
    addAction(menu, tr("&Previous layer"), Qt::ALT | Qt::Key_Up,
              [this] { m_selectionBar->stepLayer(-1); });
    addAction(menu, tr("&All layers"), Qt::ALT | Qt::Key_Home,
              [this] { m_selection.setLayer(std::nullopt); });
    menu->addSeparator();
    menu->addMenu(new ThemeMenu(tr("&Theme"), menu));
    addAction(menu, tr("&Dismiss messages"), Qt::CTRL | Qt::SHIFT | Qt::Key_M,
              [this] { m_messages->dismissAll(); });
    QAction* full = addAction(menu, tr("&Full screen"), Qt::Key_F11,
                              [this] { setWindowState(windowState() ^ Qt::WindowFullScreen); });
    full->setCheckable(true);
}

/// The list is made anew each time: what is enabled and what is recent changes.
void MainWindow::findCommand()
{
    if (!m_palette)
        m_palette = new CommandPalette(this);
    std::vector<Command> commands = enabledCommands(*menuBar());
    std::erase_if(commands, [this](const Command& each) { return each.action == m_findCommand; });
    m_palette->open(std::move(commands));
}

void MainWindow::buildHelpMenu()
{
    QMenu* menu = menuBar()->addMenu(tr("&Help"));
    m_showGuide = addAction(menu, tr("User &guide"), Qt::Key_F1, [this] { showGuide(); });
    addAction(menu, tr("&Welcome"), {}, [this] { showWelcome(true); });
    addAction(menu, tr("&About"), {}, [this] { showAbout(this); });
}

/// At the page that the user is looking at.
void MainWindow::showGuide()
{
    if (!m_guide) {
        const Result<std::filesystem::path> resources = resourceDirectory();
        m_guide = new HelpWindow(resources ? text(*resources / "help") : QString(), this);
    }
    m_guide->showPage(m_stack->currentWidget() == m_welcome ? QStringLiteral("index")
                                                            : m_docks->currentPage());
}

} // namespace mla::ui
