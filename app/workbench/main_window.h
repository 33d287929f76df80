// SPDX-License-Identifier: GPL-3.0-or-later
// The window: pages as docks around one study and one selection, messages, menus, jobs.
#pragma once

#include <QMainWindow>

#include "app/workbench/draft_export.h"
#include "widgets/common/message_bar.h"
#include "widgets/dialogs/new_run_dialog.h"
#include "widgets/jobs/study_jobs.h"
#include "widgets/models/selection_model.h"
#include "widgets/models/study_document.h"
#include "widgets/pages/cluster_view.h"
#include "widgets/pages/fidelity_page.h"
#include "widgets/pages/tensor_view.h"
#include "widgets/plots/figure_batch.h"

class QLabel;
class QProgressBar;
class QStackedLayout;

namespace mla::ui
{

class CheckpointPage;
class CommandPalette;
class DockArea;
class HelpWindow;
class JobsPage;
class Page;
class RecentFiles;
class ReportPage;
class SelectionBar;
class Session;
class StudyPage;
class WelcomePage;

/// What the window needs from core; tests put their own functions here.
struct Services {
    StudyLoader loadStudy;
    ModelInspector inspect;
    std::function<Result<WeightSpectra>(const std::filesystem::path&)> weightSpectra;
    TensorMeter measureTensors;
    StudyRunner runStudy;
    DraftDescriber describeDraft;
    DraftExporter exportDraft;
    ClusterServices cluster = {}; ///< empty where no Slurm is
    FidelityMeters fidelity = {};
};
[[nodiscard]] Services coreServices();

class MainWindow : public QMainWindow
{
    Q_OBJECT
public:
    explicit MainWindow(Services services, QWidget* parent = nullptr);

    void openStudy(const QString& path);
    void restoreSession(); ///< opens what was open last time, or says that it is gone

    [[nodiscard]] StudyDocument& document() { return m_document; }
    [[nodiscard]] SelectionModel& selection() { return m_selection; }
    [[nodiscard]] StudyJobs& jobs() { return m_jobs; }
    [[nodiscard]] MessageBar& messages() { return *m_messages; }

public slots:
    void newRun();
    void askForStudy();
    void exportReport();

protected:
    void closeEvent(QCloseEvent* event) override;
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;
    bool focusNextPrevChild(bool next) override;

private:
    void buildPages();
    void buildWelcome();
    void buildFileMenu();
    void buildRunMenu();
    void buildViewMenu();
    void buildHelpMenu();
    void findCommand();
    void showGuide();
    void buildStatusBar();
    void connectDocument();
    void connectJobs();
    void addPage(const QString& id, const QString& title, Page* page);
    QAction* addAction(QMenu* menu, const QString& title, const QKeySequence& shortcut,
                       const std::function<void()>& slot);

    NewRunDialog* openRunDialog();
    void runDemo();
    void showWelcome(bool shown);
    void startPlan(const StudyPlan& plan);
    void offerResume(const UnfinishedWork& work);
    void showJobState();
    void showEnd(JobId job, const JobEnd& end);
    void revealFiles(JobId job);
    void showTitle();
    void fail(const QString& title, const Error& error);
    void stopAndClose();

    Services m_services;
    LatestTask m_spectra; ///< of the checkpoint in the dialog; outlives it
    StudyDocument m_document;
    SelectionModel m_selection;
    FigureBatch m_batch;
    MessageBar* m_messages;
    DockArea* m_docks;
    WelcomePage* m_welcome;
    QStackedLayout* m_stack; ///< of the docks and the welcome page
    SelectionBar* m_selectionBar;
    Session* m_session = nullptr;
    RecentFiles* m_recent = nullptr;
    StudyPage* m_studyPage = nullptr;
    CheckpointPage* m_checkpointPage = nullptr;
    Page* m_refinementPage = nullptr;
    ReportPage* m_reportPage = nullptr;
    JobsPage* m_jobsPage = nullptr;
    QAction *m_newRun = nullptr, *m_open = nullptr, *m_export = nullptr, *m_cancel = nullptr,
            *m_reload = nullptr, *m_closeStudy = nullptr, *m_findCommand = nullptr,
            *m_runDemo = nullptr, *m_showGuide = nullptr;
    CommandPalette* m_palette = nullptr; ///< made when it is first asked for
    HelpWindow* m_guide = nullptr;       ///< so is this
    QLabel* m_status = nullptr;
    QProgressBar* m_loading = nullptr;
    bool m_closing = false;
    DraftExport* m_draftExport = nullptr;
    StudyJobs m_jobs; ///< last: its thread is joined while the rest is still there
};

} // namespace mla::ui
