// SPDX-License-Identifier: GPL-3.0-or-later
// Drives the real window offscreen: once with a pipeline under the test's control, once for real.
#include <atomic>
#include <thread>

#include <QCheckBox>
#include <QComboBox>
#include <QDir>
#include <QDragEnterEvent>
#include <QFile>
#include <QFileDialog>
#include <QMessageBox>
#include <QMimeData>
#include <QPushButton>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>
#include <QToolButton>
#include <QTreeView>

#include "app/workbench/main_window.h"
#include "core/base/file.h"
#include "core/pipeline/settings.h"
#include "core/store/study.h"
#include "tests/support/study_fixture.h"
#include "tests/support/window_parts.h"
#include "widgets/dialogs/converter_section.h"
#include "widgets/dialogs/path_field.h"
#include "widgets/pages/layer_table_view.h"
#include "widgets/plots/plot_view.h"

#include <nlohmann/json.hpp>

using namespace mla;
using namespace mla::ui;
using mla::test::button;
using mla::test::checkBox;
using mla::test::named;
using namespace std::chrono_literals;

namespace
{

/// A pipeline that refines one layer, a step whenever the test asks, until it is stopped.
struct SteeredPipeline {
    std::atomic<int> steps = 0;
    std::atomic<bool> finish = false;
    std::atomic<int> runs = 0, resumed = 0;

    StudyRunner runner()
    {
        return [this](JobContext& job, const StudyPlan& plan) -> Result<StudyOutcome> {
            ++runs;
            resumed += plan.resume;
            job.emitEvent(StageStarted{"refine", 2, "layers", "toy/transmla-4+2/functional"});
            job.emitEvent(LossPoint{LayerIndex(0), 0, 0, 1.0, 0});
            for (int done = 0; !finish;) {
                if (job.stopRequested())
                    return cancelled();
                if (done < steps) {
                    ++done;
                    job.emitEvent(LossPoint{LayerIndex(0), done, 1.0 / done, 1.0 / done, 1e-3});
                    job.emitEvent(StageProgress{"refine", done / 10.0, 2});
                }
                std::this_thread::sleep_for(1ms);
            }
            return StudyOutcome{};
        };
    }
};

Services steered(SteeredPipeline& pipeline)
{
    Services services = coreServices();
    services.runStudy = pipeline.runner();
    return services;
}

PlotView* plot(const QWidget& window, const QString& name)
{
    for (PlotView* view : window.findChildren<PlotView*>())
        if (view->accessibleName() == name)
            return view;
    return nullptr;
}

StudyPlan planFor(const QTemporaryDir& folder)
{
    StudyPlan plan;
    plan.study = folder.filePath("new.h5").toStdString();
    plan.drafts = folder.filePath("drafts").toStdString();
    return plan;
}

} // namespace

class WorkbenchTest : public QObject
{
    Q_OBJECT
private slots:
    void init();
    void opensAStudy();
    void layerSelectionIsLinked();
    void emptyWindowSaysWhatToDo();
    void brokenStudyIsAMessageThatStays();
    void pointsArriveAndCancelAndResumeWork();
    void closingWithAJobAsksAndStops();
    void unfinishedRunIsOffered();
    void exportsAllFigures();
    void sessionIsRestored();
    void droppedCheckpointOpensTheDialog();
    void realRunThroughTheDialog();

private:
    QString saveToyStudy();
    std::unique_ptr<QTemporaryDir> m_folder;
};

void WorkbenchTest::init()
{
    m_folder = std::make_unique<QTemporaryDir>();
    test::isolateSettings(m_folder->filePath("settings"));
}

QString WorkbenchTest::saveToyStudy()
{
    const QString path = m_folder->filePath("toy.h5");
    const Status saved = saveStudy(path.toStdString(), test::toyStudy());
    return saved.ok() ? path : QString();
}

void WorkbenchTest::opensAStudy()
{
    MainWindow window(coreServices());
    window.show();
    window.openStudy(saveToyStudy());
    QTRY_VERIFY(window.document().isLoaded());
    QVERIFY(window.windowTitle().startsWith("toy.h5"));
    QCOMPARE(window.selection().run(), QStringLiteral("toy/transmla-4+2/functional"));
    QCOMPARE(named<QTreeView>(window, "Study contents")->model()->rowCount(), 5);
    for (const char* name :
         {"Loss of the selected layer", "Held-out loss of all layers",
          "Functional error before and after refinement", "Singular values", "Retained energy",
          "Key energy that leaves the rotary path", "Attention logit residual against distance",
          "Acceptance by task", "Acceptance by draft position"})
        QVERIFY2(!plot(window, name)->isEmpty(), name);
    QCOMPARE(named<QTableView>(window, "Acceptance measurements")->model()->rowCount(), 12);
}

void WorkbenchTest::layerSelectionIsLinked()
{
    MainWindow window(coreServices());
    window.show();
    window.openStudy(saveToyStudy());
    QTRY_VERIFY(window.document().isLoaded());
    const auto tables = window.findChildren<LayerTableView*>();
    QCOMPARE(tables.size(), 4);
    // A row of one table ...
    auto* rows = tables.first()->findChild<QTableView*>();
    rows->setCurrentIndex(rows->model()->index(1, 0));
    QCOMPARE(window.selection().layer(), std::optional(1));
    // ... is the row of every table, the highlight of every plot, and the tool bar's choice.
    for (LayerTableView* table : tables)
        QCOMPARE(table->findChild<QTableView*>()->currentIndex().row(), 1);
    QCOMPARE(plot(window, "Held-out loss of all layers")->selectedLayer(), std::optional(1));
    QCOMPARE(plot(window, "Retained energy")->selectedLayer(), std::optional(1));
    QCOMPARE(named<QComboBox>(window, "Layer")->currentText(), QStringLiteral("Layer 1"));
    // A click on a plot does the same.
    emit plot(window, "Retained energy")->layerActivated(0);
    QCOMPARE(rows->currentIndex().row(), 0);
    QCOMPARE(plot(window, "Loss of the selected layer")->figure().series.front().layer,
             std::optional(0));
    window.selection().setLayer(std::nullopt);
    QVERIFY(rows->selectionModel()->selectedRows().isEmpty());
}

void WorkbenchTest::emptyWindowSaysWhatToDo()
{
    MainWindow window(coreServices());
    window.show();
    for (PlotView* view : window.findChildren<PlotView*>())
        QVERIFY2(view->isEmpty(), qPrintable(view->accessibleName()));
    QVERIFY(button(window, "Open study…"));
    QVERIFY(button(window, "New run…"));
    QCOMPARE(window.messages().texts(), QStringList());
}

void WorkbenchTest::brokenStudyIsAMessageThatStays()
{
    const QString path = saveToyStudy();
    QFile file(path);
    QVERIFY(file.resize(file.size() - 1024));
    MainWindow window(coreServices());
    window.show();
    window.openStudy(path);
    QTRY_COMPARE(window.messages().texts().size(), 1);
    QVERIFY(window.messages().texts().first().contains("toy.h5"));
    QVERIFY(window.messages().isVisible());
    QVERIFY(!window.document().isLoaded());
    window.openStudy(m_folder->filePath("gone.h5"));
    QTRY_COMPARE(window.messages().texts().size(), 2);
    window.messages().dismissAll();
    QVERIFY(!window.messages().isVisible());
}

void WorkbenchTest::pointsArriveAndCancelAndResumeWork()
{
    SteeredPipeline pipeline;
    MainWindow window(steered(pipeline));
    window.show();
    const JobId job = window.jobs().start(planFor(*m_folder));
    PlotView* loss = plot(window, "Loss of the selected layer");
    QTRY_VERIFY(!loss->isEmpty());
    const auto points = [loss] {
        std::size_t most = 0;
        for (const Series& series : loss->figure().series)
            most = std::max(most, series.x.size());
        return most;
    };
    pipeline.steps = 10;
    QTRY_COMPARE(points(), std::size_t(11)); // held-out: steps 0 to 10
    pipeline.steps = 30;
    QTRY_COMPARE(points(), std::size_t(31));
    QVERIFY(checkBox(window, "Follow the running job")->isChecked());

    QTRY_VERIFY(button(window, "Cancel")->isEnabled());
    QTest::mouseClick(button(window, "Cancel"), Qt::LeftButton);
    QTRY_VERIFY(!window.jobs().busy());
    QCOMPARE(window.jobs().list().stateOf(job), JobState::Cancelled);
    QVERIFY(window.messages().texts().last().contains("cancelled"));
    QCOMPARE(points(), std::size_t(31)); // what arrived stays in view

    QTest::mouseClick(button(window, "Resume"), Qt::LeftButton);
    QTRY_COMPARE(pipeline.resumed.load(), 1);
    QVERIFY(window.messages().texts().isEmpty()); // the offer to resume no longer holds
    pipeline.finish = true;
    QTRY_VERIFY(!window.jobs().busy());
    QCOMPARE(window.jobs().list().stateOf(job + 1), JobState::Finished);
    QCOMPARE(pipeline.runs.load(), 2);
}

void WorkbenchTest::closingWithAJobAsksAndStops()
{
    SteeredPipeline pipeline;
    MainWindow window(steered(pipeline));
    window.show();
    window.jobs().start(planFor(*m_folder));
    QTRY_COMPARE(pipeline.runs.load(), 1);
    window.close();
    QVERIFY(window.isVisible());
    auto* question = window.findChild<QMessageBox*>();
    QVERIFY(question);
    QTest::mouseClick(button(*question, "Keep running"), Qt::LeftButton);
    QTRY_VERIFY(!window.findChild<QMessageBox*>());
    QVERIFY(window.isVisible() && window.jobs().busy());
    window.close();
    QTRY_VERIFY(window.findChild<QMessageBox*>());
    QTest::mouseClick(button(*window.findChild<QMessageBox*>(), "Stop and close"), Qt::LeftButton);
    QTRY_VERIFY(!window.isVisible());
    QVERIFY(!window.jobs().busy());
}

void WorkbenchTest::unfinishedRunIsOffered()
{
    const QString study = saveToyStudy();
    StudyPlan plan;
    plan.checkpoint = "/models/toy";
    plan.study = study.toStdString();
    QVERIFY(QDir(m_folder->path()).mkpath("toy.parts"));
    QVERIFY(writeFileAtomically(m_folder->filePath("toy.parts/plan.json").toStdString(),
                                toJson(plan).dump())
                .ok());
    SteeredPipeline pipeline;
    pipeline.finish = true;
    MainWindow window(steered(pipeline));
    window.show();
    window.openStudy(study);
    QTRY_COMPARE(window.messages().texts().size(), 1);
    auto* resume = named<QToolButton>(window.messages(), "Resume");
    QVERIFY(resume);
    QTest::mouseClick(resume, Qt::LeftButton);
    QTRY_COMPARE(pipeline.resumed.load(), 1);
    QTRY_VERIFY(!window.jobs().busy());
}

void WorkbenchTest::exportsAllFigures()
{
    MainWindow window(coreServices());
    window.show();
    window.openStudy(saveToyStudy());
    QTRY_VERIFY(window.document().isLoaded());
    QVERIFY(QDir(m_folder->path()).mkpath("figures"));
    window.exportReport();
    auto* dialog = window.findChild<QFileDialog*>();
    QVERIFY(dialog);
    dialog->selectFile(m_folder->filePath("figures"));
    static_cast<QDialog*>(dialog)->accept();
    QTRY_COMPARE_WITH_TIMEOUT(window.messages().texts().size(), 1, 60000);
    const QDir written(m_folder->filePath("figures"));
    const auto count = written.entryList({"*.pdf"}).size();
    QVERIFY(count >= 5);
    QCOMPARE(written.entryList({"*.svg"}).size(), count);
    QCOMPARE(written.entryList({"*.png"}).size(), count);
}

void WorkbenchTest::sessionIsRestored()
{
    const QString study = saveToyStudy();
    QSize size;
    {
        MainWindow window(coreServices());
        window.resize(1111, 777);
        window.show();
        window.openStudy(study);
        QTRY_VERIFY(window.document().isLoaded());
        size = window.size();
        QVERIFY(window.close());
    }
    MainWindow window(coreServices());
    window.show();
    window.restoreSession();
    QTRY_VERIFY(window.document().isLoaded());
    QCOMPARE(window.document().path(), study);
    QCOMPARE(window.size(), size);
}

void WorkbenchTest::droppedCheckpointOpensTheDialog()
{
    MainWindow window(coreServices());
    window.show();
    QMimeData data;
    data.setUrls({QUrl::fromLocalFile(QStringLiteral(MLA_RESOURCES "/demo/stories260K"))});
    QDragEnterEvent enter(QPoint(10, 10), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QCoreApplication::sendEvent(&window, &enter);
    QVERIFY(enter.isAccepted());
    QDropEvent drop(QPointF(10, 10), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QCoreApplication::sendEvent(&window, &drop);
    auto* dialog = window.findChild<NewRunDialog*>();
    QVERIFY(dialog && dialog->isVisible());
    QVERIFY(dialog->form().checkpoint.endsWith("stories260K"));
}

void WorkbenchTest::realRunThroughTheDialog()
{
    MainWindow window(coreServices());
    window.show();
    window.newRun();
    auto* dialog = window.findChild<NewRunDialog*>();
    QVERIFY(dialog);
    const QString study = m_folder->filePath("run.h5");
    dialog->setStudy(study);
    dialog->setCheckpoint(QStringLiteral(MLA_RESOURCES "/demo/stories260K"));
    const auto set = [dialog](const QString& name, int value) {
        auto* box = named<QSpinBox>(*dialog, name);
        QVERIFY2(box, qPrintable(name));
        box->setValue(value);
    };
    set("Calibration sequences", 8);
    set("Tokens of a calibration sequence", 32);
    set("Optimizer steps a layer", 300);
    set("Tokens a step", 64);
    named<QLineEdit>(*dialog, "Calibration text or JSONL files")
        ->setText(QStringLiteral(MLA_RESOURCES "/prompts/stories.txt"));
    for (ConverterSection* section : dialog->findChildren<ConverterSection*>())
        section->setChecked(section->title() == "TransMLA");
    QTRY_VERIFY_WITH_TIMEOUT(dialog->canStart(), 20000);

    QSignalSpy points(&window.jobs().live(), &LiveRun::pointsAdded);
    QTest::mouseClick(button(*dialog, "Start"), Qt::LeftButton);
    QTRY_VERIFY(window.jobs().busy());
    QTRY_VERIFY_WITH_TIMEOUT(!points.isEmpty(), 120000);
    PlotView* loss = plot(window, "Loss of the selected layer");
    QTRY_VERIFY(!loss->isEmpty());

    QTest::mouseClick(button(window, "Cancel"), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(!window.jobs().busy(), 60000);
    QCOMPARE(window.jobs().list().stateOf(1), JobState::Cancelled);
    QTRY_VERIFY(window.document().study().findRun("stories260K/transmla-28+4-f2/converted"));
    QVERIFY(!loss->isEmpty());
    QVERIFY(!window.document().study().findRun("stories260K/transmla-28+4-f2/functional"));

    QTest::mouseClick(button(window, "Resume"), Qt::LeftButton);
    QTRY_VERIFY(window.jobs().busy());
    QTRY_VERIFY_WITH_TIMEOUT(!window.jobs().busy(), 300000);
    QVERIFY2(window.jobs().list().stateOf(2) == JobState::Finished,
             qPrintable(window.jobs().list().logOf(2)));
    QTRY_COMPARE(window.document().study().runs.size(), std::size_t(3));
    for (const RunRecord& run : window.document().study().runs) {
        QCOMPARE(run.layers.size(), std::size_t(5));
        QCOMPARE(run.layers.front().loss.has_value(), run.variant != "converted");
    }
    window.selection().setLayer(2);
    QVERIFY(!loss->isEmpty());
    QVERIFY(!plot(window, "Singular values")->isEmpty());

    // What the Fidelity page shows is measured when it is asked for.
    window.selection().setRun("stories260K/transmla-28+4-f2/functional");
    PlotView *sources = plot(window, "Sources of the functional error"),
             *map = plot(window, "Difference of attention");
    QVERIFY(sources->isEmpty() && map->isEmpty());
    button(window, "Measure error sources")->click();
    named<QLineEdit>(window, "Prompt")->setText("Once upon a time");
    named<QSpinBox>(window, "Head")->setValue(3);
    button(window, "Compute map")->click();
    QTRY_VERIFY_WITH_TIMEOUT(!window.jobs().busy(), 60000);
    QTRY_COMPARE(sources->figure().series.size(), std::size_t(4));
    QTRY_VERIFY(!map->isEmpty());
    QVERIFY(map->figure().title.find("layer 2, head 3") != std::string::npos);
}

QTEST_MAIN(WorkbenchTest)
#include "tst_workbench.moc"
