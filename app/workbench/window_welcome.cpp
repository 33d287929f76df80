// SPDX-License-Identifier: GPL-3.0-or-later
// The welcome page of MainWindow, and the demo that it offers.
#include <QFileInfo>
#include <QStackedLayout>
#include <QStandardPaths>

#include "app/workbench/dock_area.h"
#include "app/workbench/main_window.h"
#include "core/base/resources.h"
#include "core/pipeline/pipeline.h"
#include "widgets/common/plain_text.h"
#include "widgets/common/recent_files.h"
#include "widgets/pages/welcome_page.h"

namespace mla::ui
{

/// It gives way to the first page, run or study that is asked for, and comes back when the study
/// is closed.
void MainWindow::buildWelcome()
{
    m_welcome->addEntry(m_runDemo, QStringLiteral("run-demo"),
                        tr("Converts a small story model that comes with the program with both "
                           "converters, refines the drafts, and measures what is accepted: a few "
                           "minutes."));
    m_welcome->addEntry(m_newRun, QStringLiteral("new-run"),
                        tr("Convert a checkpoint of yours, refine its drafts, and "
                           "compare what its target accepts."));
    m_welcome->addEntry(m_open, QStringLiteral("open-study"),
                        tr("Look at what an earlier run has stored (.h5)."));
    m_welcome->addEntry(m_showGuide, QStringLiteral("guide"),
                        tr("A page for every question, at F1 from everywhere."));
    m_welcome->setRecent(m_recent->paths());
    connect(m_recent, &RecentFiles::changed, this,
            [this] { m_welcome->setRecent(m_recent->paths()); });
    connect(m_welcome, &WelcomePage::recentChosen, this, &MainWindow::openStudy);
    connect(m_docks, &DockArea::pageAsked, this, [this] { showWelcome(false); });
    connect(&m_document, &StudyDocument::pathChanged, this,
            [this](const QString& path) { showWelcome(path.isEmpty() && !m_jobs.busy()); });
}

void MainWindow::showWelcome(bool shown)
{
    m_stack->setCurrentWidget(shown ? static_cast<QWidget*>(m_welcome) : m_docks);
    if (shown)
        m_welcome->setFocus(Qt::OtherFocusReason);
}

/// A demo that is there already is opened; if it was not finished, the window offers to resume it.
void MainWindow::runDemo()
{
    const QString folder = QStandardPaths::writableLocation(QStandardPaths::DocumentsLocation) +
                           QStringLiteral("/mla-draft-demo");
    const QString study = folder + QStringLiteral("/demo.h5");
    if (m_document.path() == study) { // open, or about to be written by a job
        showWelcome(false);
        return;
    }
    if (QFileInfo::exists(study)) {
        openStudy(study);
        return;
    }
    const Result<std::filesystem::path> resources = resourceDirectory();
    if (!resources) {
        fail(tr("The demo could not be started"), resources.error());
        return;
    }
    StudyPlan plan = demoPlan(*resources, filePath(folder));
    plan.resume = QFileInfo::exists(text(partsFolderOf(plan.study)));
    startPlan(plan);
}

} // namespace mla::ui
