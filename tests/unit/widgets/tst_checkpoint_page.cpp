// SPDX-License-Identifier: GPL-3.0-or-later
// The Checkpoint page with a core under the test's control.
#include <atomic>
#include <thread>

#include <QComboBox>
#include <QDir>
#include <QDoubleSpinBox>
#include <QDragEnterEvent>
#include <QLabel>
#include <QMenu>
#include <QMimeData>
#include <QPushButton>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>
#include <QToolButton>
#include <QTreeView>

#include "tests/support/smol_config.h"
#include "tests/support/study_fixture.h"
#include "widgets/models/tensor_tree_model.h"
#include "widgets/pages/cache_planner.h"
#include "widgets/pages/checkpoint_page.h"

using namespace mla;
using namespace mla::ui;
using mla::test::smolConfig;
using namespace std::chrono_literals;

namespace
{

InspectReport report()
{
    InspectReport report;
    report.modelType = "llama";
    report.attention = "gqa";
    report.layers = 30;
    report.config = smolConfig();
    report.properties = {{"model_type", std::string("llama")},
                         {"num_hidden_layers", std::int64_t{30}},
                         {"qk_norm", false}};
    report.cacheDtype = "bf16";
    for (const char* name : {"model.layers.0.a.weight", "model.layers.0.b.weight", "norm.weight"}) {
        TensorSummary tensor;
        tensor.name = name;
        tensor.storage = tensor.dtype = "F32";
        tensor.shape = {2};
        tensor.bytes = 8;
        report.tensors.push_back(std::move(tensor));
    }
    report.warnings = {"no tokenizer.json beside the weights"};
    return report;
}

Result<InspectReport> inspect(const std::filesystem::path& path)
{
    if (path.filename() == "smol")
        return report();
    return badInput("no config.json", path.string());
}

/// Measures a tensor whenever the test allows one more.
struct SteeredMeter {
    std::atomic<int> allowed = 0, running = 0;
    TensorMeter meter()
    {
        return [this](JobContext& job, const std::filesystem::path&,
                      const std::vector<std::string>& names,
                      const std::function<void(const TensorStatistics&)>& onResult) -> Status {
            ++running;
            int done = 0;
            for (const std::string& name : names) {
                while (allowed <= done) {
                    if (job.stopRequested()) {
                        --running;
                        return cancelled();
                    }
                    std::this_thread::sleep_for(1ms);
                }
                TensorStatistics statistics;
                statistics.name = name;
                statistics.minimum = statistics.maximum = 1.5;
                onResult(statistics);
                job.emitEvent(StageProgress{"statistics", double(++done), int(names.size())});
            }
            --running;
            return {};
        };
    }
};

template <typename Widget>
Widget* named(const QWidget& parent, const QString& accessibleName)
{
    for (Widget* found : parent.findChildren<Widget*>())
        if (found->accessibleName() == accessibleName)
            return found;
    return nullptr;
}

QPushButton* button(const QWidget& parent, const QString& text)
{
    for (QPushButton* found : parent.findChildren<QPushButton*>())
        if (QString(found->text()).remove(QLatin1Char('&')) == text)
            return found;
    return nullptr;
}

struct Shown {
    StudyDocument document{[](const std::filesystem::path&) -> Result<LoadedStudy> {
        return LoadedStudy{test::toyStudy(), std::nullopt};
    }};
    SelectionModel selection;
    SteeredMeter steered;
    CheckpointPage page{document, selection, inspect, steered.meter()};
    Shown() { page.show(); }
};

} // namespace

class CheckpointPageTest : public QObject
{
    Q_OBJECT
private slots:
    void emptyPageSaysWhatToDo();
    void showsAModel();
    void errorsAreReported();
    void dropsOpen();
    void studyOffersItsModels();
    void statisticsArriveAndStop();
    void anotherModelDropsOldResults();
    void plannerGoesBothWays();
    void plannerNamesLimits();
    void plannerTurnsToTheConverterThatWorks();
    void draftsHaveNoPlan();
    void planBecomesARun();
};

void CheckpointPageTest::emptyPageSaysWhatToDo()
{
    Shown shown;
    bool said = false;
    for (const QLabel* label : shown.page.findChildren<QLabel*>())
        said |= label->isVisible() && label->text().contains("No checkpoint is open");
    QVERIFY(said);
    QVERIFY(!shown.page.findChild<QTreeView*>()->isVisible());
}

void CheckpointPageTest::showsAModel()
{
    Shown shown;
    shown.page.openModel("/models/smol");
    auto* config = named<QTableView>(shown.page, "Configuration");
    QTRY_COMPARE(config->model()->rowCount(), 3);
    QCOMPARE(config->model()->index(2, 0).data().toString(), QStringLiteral("qk_norm"));
    QCOMPARE(config->model()->index(2, 1).data().toString(), QStringLiteral("false"));
    QVERIFY(config->isVisible());
    QCOMPARE(named<QTreeView>(shown.page, "Tensors")->model()->rowCount(), 2); // layer 0, norm
    const auto* warnings = named<QLabel>(shown.page, "Warnings");
    QVERIFY(warnings->isVisible() && warnings->text().contains("tokenizer.json"));
}

void CheckpointPageTest::errorsAreReported()
{
    Shown shown;
    QSignalSpy failed(&shown.page, &Page::failed);
    shown.page.openModel("/models/smol");
    QTRY_VERIFY(shown.page.findChild<QTreeView*>()->isVisible());
    shown.page.openModel("/models/broken");
    QTRY_COMPARE(failed.size(), 1);
    QVERIFY(failed.front().front().toString().contains("no config.json"));
    QVERIFY(!shown.page.findChild<QTreeView*>()->isVisible()); // nothing of the other model stays
    QVERIFY(shown.page.model().isEmpty());
}

void CheckpointPageTest::dropsOpen()
{
    QTemporaryDir folder;
    QVERIFY(QDir(folder.path()).mkpath("smol"));
    Shown shown;
    QMimeData data;
    data.setUrls({QUrl::fromLocalFile(folder.filePath("smol"))});
    QDragEnterEvent enter(QPoint(1, 1), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QCoreApplication::sendEvent(&shown.page, &enter);
    QVERIFY(enter.isAccepted());
    QDropEvent drop(QPointF(1, 1), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QCoreApplication::sendEvent(&shown.page, &drop);
    QTRY_VERIFY(shown.page.findChild<QTreeView*>()->isVisible());
}

void CheckpointPageTest::studyOffersItsModels()
{
    Shown shown;
    auto* menu = named<QToolButton>(shown.page, "From the study");
    QVERIFY(!menu->isEnabled());
    shown.document.open("toy.h5");
    QTRY_VERIFY(menu->isEnabled());
    QCOMPARE(menu->menu()->actions().first()->text(), QStringLiteral("toy"));
}

void CheckpointPageTest::statisticsArriveAndStop()
{
    Shown shown;
    shown.page.openModel("/models/smol");
    auto* view = named<QTreeView>(shown.page, "Tensors");
    QTRY_VERIFY(view->isVisible());
    QVERIFY(view->isColumnHidden(TensorTreeModel::Minimum)); // nothing to show yet
    auto* start = button(shown.page, "Compute statistics");
    auto* stop = button(shown.page, "Stop");
    QVERIFY(start->isEnabled() && !stop->isVisible());
    QTest::mouseClick(start, Qt::LeftButton); // nothing is selected: all three
    QTRY_COMPARE(shown.steered.running.load(), 1);
    QVERIFY(!start->isEnabled() && stop->isVisible());
    shown.steered.allowed = 1;
    const auto minimum = [view](const QModelIndex& row) {
        return row.siblingAtColumn(TensorTreeModel::Minimum).data().toString();
    };
    const QModelIndex layer = view->model()->index(0, 0);
    QTRY_COMPARE(minimum(view->model()->index(0, 0, layer)), QStringLiteral("1.5"));
    QCOMPARE(minimum(layer), QStringLiteral("1.5"));
    QVERIFY(minimum(view->model()->index(1, 0, layer)).isEmpty());
    QTest::mouseClick(stop, Qt::LeftButton);
    QTRY_VERIFY(start->isEnabled());
    QCOMPARE(shown.steered.running.load(), 0);
    QCOMPARE(minimum(view->model()->index(0, 0, layer)), QStringLiteral("1.5")); // stays
    // A selection limits what is read.
    shown.steered.allowed = 10;
    view->setCurrentIndex(view->model()->index(1, 0));
    QTest::mouseClick(start, Qt::LeftButton);
    QTRY_COMPARE(minimum(view->model()->index(1, 0)), QStringLiteral("1.5"));
    QTRY_VERIFY(start->isEnabled());
    QVERIFY(minimum(view->model()->index(1, 0, layer)).isEmpty());
}

void CheckpointPageTest::anotherModelDropsOldResults()
{
    Shown shown;
    QSignalSpy failed(&shown.page, &Page::failed);
    shown.page.openModel("/models/smol");
    auto* view = named<QTreeView>(shown.page, "Tensors");
    QTRY_VERIFY(view->isVisible());
    QTest::mouseClick(button(shown.page, "Compute statistics"), Qt::LeftButton);
    QTRY_COMPARE(shown.steered.running.load(), 1);
    shown.page.openModel("/other/smol");
    QTRY_COMPARE(shown.steered.running.load(), 0); // asked to stop
    QTRY_VERIFY(button(shown.page, "Compute statistics")->isEnabled());
    QVERIFY(view->isColumnHidden(TensorTreeModel::Minimum));
    QVERIFY(failed.isEmpty()); // stopping is no failure
}

void CheckpointPageTest::plannerGoesBothWays()
{
    CachePlanner planner;
    planner.setModel(smolConfig(), "bf16");
    auto* rank = named<QSpinBox>(planner, "Latent rank r");
    auto* budget = named<QDoubleSpinBox>(planner, "Cache budget in per cent of the original");
    auto* rope = named<QComboBox>(planner, "Rotary dimensions");
    // Proposed: half of 384 elements, d_r = h / 2.
    QCOMPARE(planner.settings().converter, std::string("transmla"));
    QCOMPARE(planner.settings().qkRopeHeadDim, 32);
    QCOMPARE(rank->value(), 192 - 32);
    QCOMPARE(budget->value(), 50.0);
    budget->setValue(28.2); // 108.288 elements
    QCOMPARE(rank->value(), 76);
    rank->setValue(64); // 96 of 384
    QCOMPARE(budget->value(), 25.0);
    rope->setCurrentIndex(rope->findData(64));
    QCOMPARE(rank->value(), 64);
    QCOMPARE(budget->value(), 33.3);
    QCOMPARE(rank->maximum(), 384 - 64);
    QCOMPARE(planner.use().bytesPerElement, 2);
    auto* table = named<QTableView>(planner, "KV cache by context length");
    // 8192 tokens x 30 layers x 2 bytes x 384 = 180 MiB, of it a third
    QCOMPARE(table->model()->index(3, 1).data().toString(), QStringLiteral("180.0 MiB"));
    QCOMPARE(table->model()->index(3, 2).data().toString(), QStringLiteral("60.0 MiB"));
    named<QSpinBox>(planner, "Batch (sequences)")->setValue(4);
    QCOMPARE(table->model()->index(3, 1).data().toString(), QStringLiteral("720.0 MiB"));
}

void CheckpointPageTest::plannerNamesLimits()
{
    CachePlanner planner;
    planner.setModel(smolConfig(), "bf16");
    planner.show();
    auto* rank = named<QSpinBox>(planner, "Latent rank r");
    const auto says = [&](const QString& words) {
        for (const QLabel* label : planner.findChildren<QLabel*>())
            if (label->isVisible() && label->text().contains(words))
                return true;
        return false;
    };
    QVERIFY(!says("Saves nothing"));
    rank->setValue(352); // 352 + 32
    QVERIFY(says("Saves nothing: 384 cache elements against 384."));
    QVERIFY(says("351"));
    QVERIFY(button(planner, "Use in a new run…")->isEnabled()); // a warning only
}

void CheckpointPageTest::plannerTurnsToTheConverterThatWorks()
{
    ModelConfig normed = smolConfig();
    normed.qkNorm = true;
    CachePlanner planner;
    planner.setModel(normed, "bf16");
    QCOMPARE(planner.settings().converter, std::string("mha2mla"));
    auto* run = button(planner, "Use in a new run…");
    QVERIFY(run->isEnabled());
    named<QComboBox>(planner, "Converter")->setCurrentIndex(0); // TransMLA refuses
    QVERIFY(!run->isEnabled());
    auto* table = named<QTableView>(planner, "KV cache by context length");
    QCOMPARE(table->model()->index(0, 2).data().toString(), QStringLiteral("–"));
}

void CheckpointPageTest::draftsHaveNoPlan()
{
    ModelConfig draft = smolConfig();
    draft.mla = MlaConfig();
    draft.mla->latentRank.assign(30, 76);
    draft.mla->qkRopeHeadDim = 32;
    draft.mla->ropeKeyHeads = 1;
    CachePlanner planner;
    planner.setModel(draft, "fp32");
    planner.show();
    QVERIFY(!button(planner, "Use in a new run…")->isVisible());
    QVERIFY(!named<QSpinBox>(planner, "Latent rank r")->isVisible());
    QVERIFY(named<QLabel>(planner, "Cache sizes")->text().contains("28.1 %")); // 108 / 384
}

void CheckpointPageTest::planBecomesARun()
{
    Shown shown;
    shown.page.openModel("/models/smol");
    QTRY_VERIFY(shown.page.findChild<QTreeView*>()->isVisible());
    QSignalSpy requested(&shown.page, &CheckpointPage::runRequested);
    named<QSpinBox>(shown.page, "Latent rank r")->setValue(76);
    QTest::mouseClick(button(shown.page, "Use in a new run…"), Qt::LeftButton);
    QCOMPARE(requested.size(), 1);
    QCOMPARE(requested.front().front().toString(), QStringLiteral("/models/smol"));
    const auto settings = requested.front().at(1).value<ConvertSettings>();
    QCOMPARE(settings.kvLoraRank, 76);
    QCOMPARE(settings.qkRopeHeadDim, 32);
}

QTEST_MAIN(CheckpointPageTest)
#include "tst_checkpoint_page.moc"
