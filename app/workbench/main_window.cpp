// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/main_window.h"

#include <QCloseEvent>
#include <QDesktopServices>
#include <QFileInfo>
#include <QLabel>
#include <QMimeData>
#include <QProgressBar>
#include <QStackedLayout>
#include <QStatusBar>
#include <QUrl>
#include <QVBoxLayout>

#include "app/workbench/boxes.h"
#include "app/workbench/dock_area.h"
#include "app/workbench/selection_bar.h"
#include "app/workbench/session.h"
#include "core/pipeline/slurm_queue.h"
#include "core/report/figure_data.h"
#include "widgets/common/plain_text.h"
#include "widgets/common/recent_files.h"
#include "widgets/common/theme.h"
#include "widgets/pages/acceptance_page.h"
#include "widgets/pages/checkpoint_page.h"
#include "widgets/pages/compare_page.h"
#include "widgets/pages/jobs_page.h"
#include "widgets/pages/refinement_page.h"
#include "widgets/pages/report_page.h"
#include "widgets/pages/rope_page.h"
#include "widgets/pages/spectra_page.h"
#include "widgets/pages/study_page.h"
#include "widgets/pages/welcome_page.h"

namespace mla::ui
{
namespace
{
const auto resumeOffer = QStringLiteral("resume"); // topic of notices
constexpr int layersLookedAt = 3;                  // for the error that a rank is predicted to have

ClusterServices slurmServices()
{
    if (!hasSlurm())
        return {};
    return {[] {
                JobContext job;
                return clusterJobs(job);
            },
            [](const std::string& id) {
                JobContext job;
                return cancelClusterJob(job, id);
            }};
}
} // namespace

Services coreServices()
{
    const auto spectra = [](const std::filesystem::path& model) {
        JobContext job;
        return weightSpectra(job, model, layersLookedAt);
    };
    return {readStudy, inspectModel,        spectra,     measureTensors,
            runStudy,  describeEveryLayout, exportDraft, slurmServices()};
}

MainWindow::MainWindow(Services services, QWidget* parent)
    : QMainWindow(parent), m_services(std::move(services)), m_document(m_services.loadStudy),
      m_messages(new MessageBar(this)), m_docks(new DockArea(this)),
      m_welcome(new WelcomePage(this)), m_stack(new QStackedLayout),
      m_selectionBar(new SelectionBar(m_document, m_selection, this)), m_jobs(m_services.runStudy)
{
    setAcceptDrops(true);
    setWindowIcon(applicationIcon());
    auto* content = new QWidget(this);
    auto* column = new QVBoxLayout(content);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(m_messages);
    column->addLayout(m_stack, 1);
    m_stack->addWidget(m_docks);
    m_stack->addWidget(m_welcome);
    setCentralWidget(content);
    addToolBar(m_selectionBar);

    m_draftExport = new DraftExport({m_document, m_selection, m_jobs, *m_messages},
                                    m_services.describeDraft, m_services.exportDraft, this);
    buildFileMenu();
    buildPages();
    buildRunMenu();
    buildViewMenu();
    buildHelpMenu();
    buildWelcome();
    buildStatusBar();
    connectDocument();
    connectJobs();
    m_session = new Session(*this, *m_docks, m_document, m_selection);
    m_session->restoreLayout();
    showWelcome(true);
    showTitle();
    showJobState();
}

void MainWindow::addPage(const QString& id, const QString& title, Page* page)
{
    connect(page, &Page::failed, this, [this](const QString& message) {
        m_messages->post({Notice::Severity::Error, message, {}, {}, {}});
    });
    m_docks->addPage(id, title, page,
                     id == QLatin1String("study") ? DockPlace::Side : DockPlace::Centre);
}

void MainWindow::buildPages()
{
    m_studyPage = new StudyPage(m_document, m_selection, this);
    m_studyPage->setStartActions({m_open, m_newRun});
    addPage(QStringLiteral("study"), tr("Study"), m_studyPage);
    m_checkpointPage = new CheckpointPage(m_document, m_selection, m_services.inspect,
                                          m_services.measureTensors, this);
    addPage(QStringLiteral("checkpoint"), tr("Checkpoint"), m_checkpointPage);
    connect(m_checkpointPage, &CheckpointPage::runRequested, this,
            [this](const QString& checkpoint, const ConvertSettings& settings) {
                NewRunDialog* dialog = openRunDialog();
                dialog->setCheckpoint(checkpoint);
                dialog->setConversion(settings);
            });
    m_refinementPage = new RefinementPage(m_document, m_selection, m_jobs.live(), this);
    addPage(QStringLiteral("refinement"), tr("Refinement"), m_refinementPage);
    addPage(QStringLiteral("spectra"), tr("Rank spectra"),
            new SpectraPage(m_document, m_selection, this));
    addPage(QStringLiteral("rope"), tr("RoPE residuals"),
            new RopePage(m_document, m_selection, this));
    addPage(QStringLiteral("fidelity"), tr("Fidelity"),
            new FidelityPage(m_document, m_selection, m_jobs, m_services.fidelity, this));
    addPage(QStringLiteral("acceptance"), tr("Acceptance"),
            new AcceptancePage(m_document, m_selection, this));
    addPage(QStringLiteral("compare"), tr("Compare"),
            new ComparePage(m_document, m_selection, this));
    m_reportPage = new ReportPage(m_document, m_selection, this);
    addPage(QStringLiteral("report"), tr("Report"), m_reportPage);
    connect(m_reportPage, &ReportPage::exportRequested, this, &MainWindow::exportReport);
    m_jobsPage = new JobsPage(m_jobs.list(), this);
    m_jobsPage->addStartAction(m_newRun);
    if (m_services.cluster.list)
        m_jobsPage->addCluster(new ClusterView(m_services.cluster, m_jobsPage));
    m_docks->addPage(QStringLiteral("jobs"), tr("Jobs"), m_jobsPage, DockPlace::Bottom);
}

void MainWindow::buildStatusBar()
{
    m_status = new QLabel(this);
    m_loading = new QProgressBar(this);
    m_loading->setRange(0, 0);
    m_loading->setMaximumWidth(90);
    m_loading->setAccessibleName(tr("Reading the study"));
    m_loading->hide();
    statusBar()->addWidget(m_status, 1);
    statusBar()->addPermanentWidget(m_loading);
}

void MainWindow::connectDocument()
{
    connect(&m_document, &StudyDocument::loadingChanged, m_loading, &QWidget::setVisible);
    connect(&m_document, &StudyDocument::studyChanged, this, &MainWindow::showTitle);
    connect(&m_document, &StudyDocument::pathChanged, this, &MainWindow::showTitle);
    connect(&m_document, &StudyDocument::opened, m_recent, &RecentFiles::add);
    connect(&m_document, &StudyDocument::openFailed, this,
            [this](const QString& path, const Error& error) {
                if (!QFileInfo::exists(path))
                    m_recent->remove(path);
                fail(tr("%1 could not be opened").arg(QFileInfo(path).fileName()), error);
            });
    connect(&m_document, &StudyDocument::reloadFailed, this,
            [this](const Error& error) { fail(tr("The study could not be read again"), error); });
    connect(&m_document, &StudyDocument::unfinishedFound, this, &MainWindow::offerResume);
    connect(&m_batch, &FigureBatch::progressed, this, [this](int done, int total) {
        statusBar()->showMessage(tr("Writing the report: %1 of %2 files").arg(done).arg(total));
    });
    connect(&m_batch, &FigureBatch::failed, this,
            [this](const Error& error) { fail(tr("The report was not written whole"), error); });
    connect(&m_batch, &FigureBatch::finished, this, [this](const QStringList& files) {
        statusBar()->clearMessage();
        const QString folder = files.isEmpty() ? QString() : QFileInfo(files.first()).path();
        m_messages->post(
            {Notice::Severity::Info,
             tr("The report was written to %1: %2 files.").arg(folder).arg(files.size()),
             files.join(QLatin1Char('\n')), tr("Show folder"),
             [folder] { QDesktopServices::openUrl(QUrl::fromLocalFile(folder)); }});
    });
}

void MainWindow::connectJobs()
{
    connect(&m_jobs, &StudyJobs::queued, m_jobsPage, &JobsPage::select);
    connect(&m_jobs, &StudyJobs::queued, this, [this] { m_messages->withdraw(resumeOffer); });
    connect(&m_jobs, &StudyJobs::started, this, &MainWindow::showJobState);
    connect(&m_jobs, &StudyJobs::progressed, this, &MainWindow::showJobState);
    connect(&m_jobs, &StudyJobs::studyWritten, this, [this](const QString& study) {
        if (QFileInfo(study) == QFileInfo(m_document.path()))
            m_document.reload();
    });
    connect(&m_jobs, &StudyJobs::warned, this, [this](const QString& message) {
        m_messages->post({Notice::Severity::Warning, message, {}, {}, {}});
    });
    connect(&m_jobs, &StudyJobs::ended, this, &MainWindow::showEnd);
    connect(m_jobsPage, &JobsPage::cancelRequested, &m_jobs, &StudyJobs::cancel);
    connect(m_jobsPage, &JobsPage::resumeRequested, &m_jobs, &StudyJobs::resume);
    connect(m_jobsPage, &JobsPage::revealRequested, this, &MainWindow::revealFiles);
}

void MainWindow::openStudy(const QString& path)
{
    m_document.open(path);
}

void MainWindow::askForStudy()
{
    askForStudyFile(this, m_document.path(), [this](const QString& path) { openStudy(path); });
}

NewRunDialog* MainWindow::openRunDialog()
{
    auto* dialog = new NewRunDialog(m_services.inspect, this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    if (!m_document.path().isEmpty())
        dialog->setStudy(m_document.path());
    dialog->setSpectraAsker([this](const QString& checkpoint, const auto& answer) {
        m_spectra.start(
            [read = m_services.weightSpectra, path = filePath(checkpoint)] { return read(path); },
            answer);
    });
    connect(dialog, &NewRunDialog::planned, this, &MainWindow::startPlan);
    dialog->open();
    return dialog;
}

void MainWindow::newRun()
{
    openRunDialog();
}

void MainWindow::startPlan(const StudyPlan& plan)
{
    m_document.expect(text(plan.study));
    m_jobs.start(plan);
    m_docks->raisePage(m_refinementPage); // where its progress shows
}

void MainWindow::offerResume(const UnfinishedWork& work)
{
    m_messages->post(
        {Notice::Severity::Info,
         tr("A run of this study was not finished. Its finished layers (%1) and drafts "
            "are kept.")
             .arg(work.finishedLayers),
         {},
         tr("Resume"),
         [this, plan = work.plan] { startPlan(plan); },
         resumeOffer});
}

void MainWindow::showJobState()
{
    const JobId job = m_jobs.current();
    m_status->setText(job == 0 ? tr("No job is running") : m_jobs.list().statusLine(job));
    m_cancel->setEnabled(job != 0);
}

void MainWindow::showEnd(JobId job, const JobEnd& end)
{
    showJobState();
    const StudyPlan* plan = m_jobs.plan(job);
    const QString name = plan ? text(plan->study.stem()) : m_jobs.task(job).title;
    if (end.error)
        fail((plan ? tr("The run of %1 failed") : tr("%1 failed")).arg(name), *end.error);
    else if (plan && end.state == JobState::Cancelled && !m_closing)
        m_messages->post({Notice::Severity::Info,
                          tr("The run of %1 was cancelled. What was finished is kept.").arg(name),
                          {},
                          tr("Resume"),
                          [this, job] { m_jobs.resume(job); },
                          resumeOffer});
    if (m_closing && !m_jobs.busy())
        close();
}

void MainWindow::revealFiles(JobId job)
{
    QDesktopServices::openUrl(QUrl::fromLocalFile(text(m_jobs.task(job).folder)));
}

void MainWindow::exportReport()
{
    askForReportFolder(this, m_document.path(), [this](const QString& directory) {
        ReportOptions options = m_reportPage->options();
        options.directory = directory;
        m_batch.start(m_reportPage->content(), std::move(options));
    });
}

void MainWindow::showTitle()
{
    const QString path = m_document.path();
    const QString program = tr("MLA Draft Workbench");
    setWindowTitle(path.isEmpty() ? program
                                  : QFileInfo(path).fileName() + QStringLiteral(" — ") + program);
    m_export->setEnabled(m_document.isLoaded());
    m_reload->setEnabled(!path.isEmpty());
    m_closeStudy->setEnabled(!path.isEmpty());
}

void MainWindow::fail(const QString& title, const Error& error)
{
    m_messages->post(errorNotice(title, error));
}

void MainWindow::restoreSession()
{
    const QString study = Session::lastStudy();
    if (study.isEmpty())
        return;
    if (QFileInfo::exists(study)) {
        openStudy(study);
        return;
    }
    m_recent->remove(study);
    m_messages->post(
        {Notice::Severity::Warning,
         tr("%1, which was open last, is no longer where it was.").arg(QFileInfo(study).fileName()),
         study, tr("Open study…"), [this] { askForStudy(); }});
}

void MainWindow::closeEvent(QCloseEvent* event)
{
    if (m_jobs.busy()) {
        event->ignore();
        if (!m_closing)
            askToStopAndClose(this, [this] { stopAndClose(); });
        return;
    }
    m_session->save();
    event->accept();
}

void MainWindow::stopAndClose()
{
    m_closing = true;
    if (m_jobs.busy())
        m_jobs.cancelAll(); // showEnd() closes
    else
        close(); // it ended while the question stood
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event)
{
    const QList<QUrl> urls = event->mimeData()->urls();
    if (urls.size() == 1 && urls.first().isLocalFile())
        event->acceptProposedAction();
}

/// A folder is a checkpoint to run; a file is a study to open.
void MainWindow::dropEvent(QDropEvent* event)
{
    const QString path = event->mimeData()->urls().value(0).toLocalFile();
    event->acceptProposedAction();
    if (QFileInfo(path).isDir())
        openRunDialog()->setCheckpoint(path);
    else
        openStudy(path);
}

/// Qt counts pages behind the front one as visible; the focus would vanish into them. A part that
/// cannot be used any more, as the button of a job that has begun, leaves it to its page.
bool MainWindow::focusNextPrevChild(const bool next)
{
    const QWidget* begun = focusWidget();
    QWidget* page = begun && !begun->isEnabled() ? m_docks->pageWith(begun) : nullptr;
    if (page && page->isEnabled()) {
        page->setFocus(Qt::OtherFocusReason);
        return true;
    }
    const QWidget* first = nullptr; // that was met behind: by then all were
    while (QMainWindow::focusNextPrevChild(next)) {
        const QWidget* now = focusWidget();
        if (now == first || !m_docks->isBehind(now))
            return true;
        first = first ? first : now;
    }
    return false;
}

} // namespace mla::ui
