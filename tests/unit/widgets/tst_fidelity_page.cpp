// SPDX-License-Identifier: GPL-3.0-or-later
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QTest>

#include "tests/support/sample_study.h"
#include "tests/support/window_parts.h"
#include "widgets/common/empty_state.h"
#include "widgets/common/plain_text.h"
#include "widgets/common/theme.h"
#include "widgets/pages/fidelity_page.h"

using namespace mla;
using namespace mla::ui;
using mla::test::button;
using mla::test::named;

namespace
{

const QString functional = QStringLiteral("transmla-4+2/functional");
const QString converted = QStringLiteral("transmla-4+2/converted");

/// The sample study with an original of 2 layers and 4 heads.
StudyData study()
{
    StudyData data = test::sampleStudy();
    data.put(CheckpointRecord{"toy", "models/toy", "abc",
                              R"({"num_hidden_layers": 2, "num_attention_heads": 4})"});
    return data;
}

/// A page over a study in memory; what it asks for is written down and stored.
struct Fixture {
    explicit Fixture(StudyData data)
        : stored(std::move(data)), document([this](const auto&) {
              return LoadedStudy{stored, {}};
          }),
          jobs(
              [](JobContext&, const StudyPlan&) -> Result<StudyOutcome> { return StudyOutcome{}; }),
          page(document, selection, jobs, meters())
    {
        QObject::connect(&jobs, &StudyJobs::studyWritten, &document, &StudyDocument::reload);
        page.resize(1200, 800);
        page.show();
    }
    void open(const QString& run)
    {
        document.open("toy.h5");
        QTRY_VERIFY(document.isLoaded());
        selection.setRun(run);
    }
    FidelityMeters meters()
    {
        return {
            [this](JobContext&, const DiagnosticsRequest& request) -> Result<ErrorSourcesReport> {
                sources = request;
                return computeFailed("no such draft");
            },
            [this](JobContext&, const PositionRequest& request) -> Result<PositionScores> {
                positions = request;
                return PositionScores{};
            },
            [this](JobContext&, const AttentionMapRequest& request) -> Result<AttentionMapRecord> {
                map = request;
                return AttentionMapRecord{};
            }};
    }
    [[nodiscard]] PlotView* plot(const QString& name) const { return named<PlotView>(page, name); }
    [[nodiscard]] bool shows(const QString& part) const
    {
        for (const QLabel* label : page.findChildren<QLabel*>())
            if (label->isVisible() && label->text().contains(part))
                return true;
        return false;
    }

    StudyData stored;
    std::optional<DiagnosticsRequest> sources;
    std::optional<PositionRequest> positions;
    std::optional<AttentionMapRequest> map;
    StudyDocument document;
    SelectionModel selection;
    StudyJobs jobs;
    FidelityPage page;
};

} // namespace

class FidelityPageTest : public QObject
{
    Q_OBJECT
private slots:
    void emptyStateSaysWhatToDo();
    void showsWhatWasMeasured();
    void saysWhatIsMissing();
    void layerIsLinked();
    void measuresInTheBackground();
    void failureLeavesTheButton();
    void asksForAMap();
    void storedMapsAreOffered();
    void everyFieldHasAName();
    void drawsInBothThemes();
};

void FidelityPageTest::emptyStateSaysWhatToDo()
{
    Fixture f{StudyData{}};
    QVERIFY(f.shows("No draft to look at"));
    QVERIFY(f.shows("File › New run"));
    QVERIFY(!f.plot("Functional error per layer")->isVisible());
}

void FidelityPageTest::showsWhatWasMeasured()
{
    Fixture f{study()};
    f.open(functional);
    QVERIFY(f.plot("Functional error per layer")->isVisible());
    QCOMPARE(f.plot("Functional error per layer")->figure().series.size(), std::size_t{2});
    QCOMPARE(f.plot("Sources of the functional error")->figure().series.size(), std::size_t{4});
    QVERIFY(f.shows("low rank alone 0.375"));
    QCOMPARE(f.plot("KL by position")->figure().series.front().y, (std::vector<double>{.5, .25}));
    QCOMPARE(f.plot("Perplexity by position")->figure().series.size(), std::size_t{2});
    const auto& original = f.plot("Attention of the original")->figure();
    const auto& draft = f.plot("Attention of the draft")->figure();
    QCOMPARE(original.heatmap->range->high, draft.heatmap->range->high); // one colour scale
    QVERIFY(f.plot("Difference of attention")->figure().heatmap->diverging);
}

void FidelityPageTest::saysWhatIsMissing()
{
    Fixture f{study()};
    f.open(converted);
    QVERIFY(!f.plot("Functional error per layer")->isEmpty());
    for (const char* name :
         {"Sources of the functional error", "KL by position", "Perplexity by position",
          "Attention of the original", "Attention of the draft", "Difference of attention"})
        QVERIFY2(f.plot(name)->isEmpty(), name);
    QVERIFY(button(f.page, "Measure error sources")->isEnabled());
    // Without its original a draft cannot be measured.
    f.stored.checkpoints.clear();
    f.document.open("toy.h5");
    QTRY_VERIFY(!button(f.page, "Measure error sources")->isEnabled());
    QVERIFY(!button(f.page, "Measure positions")->isEnabled());
    QVERIFY(f.shows("does not say where"));
}

void FidelityPageTest::layerIsLinked()
{
    Fixture f{study()};
    f.open(functional);
    f.selection.setLayer(1);
    for (const char* name : {"Functional error per layer", "Sources of the functional error"})
        QCOMPARE(f.plot(name)->selectedLayer(), std::optional(1));
    QCOMPARE(named<QSpinBox>(f.page, "Layer")->value(), 1);
    named<QSpinBox>(f.page, "Layer")->setValue(0);
    QCOMPARE(f.selection.layer(), std::optional(0));
    emit f.plot("Sources of the functional error")->layerActivated(1);
    QCOMPARE(f.selection.layer(), std::optional(1));
}

void FidelityPageTest::measuresInTheBackground()
{
    Fixture f{study()};
    f.open(converted);
    named<QLineEdit>(f.page, "Text to score")->setText("tale.txt");
    QPushButton* measure = button(f.page, "Measure positions");
    measure->click();
    QVERIFY(!measure->isEnabled()); // not twice
    QVERIFY(button(f.page, "Measure error sources")->isEnabled());
    QTRY_VERIFY(measure->isEnabled());
    QVERIFY(f.positions.has_value());
    QCOMPARE(f.positions->draft, std::filesystem::path("drafts/transmla-4+2/converted"));
    QCOMPARE(f.positions->original, std::filesystem::path("models/toy"));
    QCOMPARE(f.positions->study, std::optional(filePath(f.document.path())));
    QCOMPARE(f.positions->text, std::optional(std::filesystem::path("tale.txt")));
    QVERIFY(f.jobs.list().rowCount({}) == 1);
}

void FidelityPageTest::failureLeavesTheButton()
{
    Fixture f{study()};
    f.open(converted);
    QPushButton* measure = button(f.page, "Measure error sources");
    measure->click();
    QVERIFY(!measure->isEnabled());
    QTRY_VERIFY(measure->isEnabled());
    QVERIFY(f.sources.has_value());
}

void FidelityPageTest::asksForAMap()
{
    Fixture f{study()};
    f.open(converted);
    QPushButton* compute = button(f.page, "Compute map");
    QVERIFY(!compute->isEnabled()); // no prompt
    named<QLineEdit>(f.page, "Prompt")->setText("Once upon");
    QCOMPARE(named<QSpinBox>(f.page, "Head")->maximum(), 3);
    QCOMPARE(named<QSpinBox>(f.page, "Layer")->maximum(), 1);
    named<QSpinBox>(f.page, "Head")->setValue(2);
    named<QSpinBox>(f.page, "Layer")->setValue(1);
    compute->click();
    QTRY_VERIFY(!f.jobs.busy());
    QVERIFY(f.map.has_value());
    QCOMPARE(f.map->layer.value, 1);
    QCOMPARE(f.map->head.value, 2);
    QCOMPARE(f.map->prompt, std::string("Once upon"));
    // What the job stored is shown once the study is read again.
    for (RunRecord& run : f.stored.runs)
        if (run.variant == "converted")
            run.put(AttentionMapRecord{LayerIndex(1),
                                       HeadIndex(2),
                                       "Once upon",
                                       {"Once", " upon"},
                                       {1, 0, .25, .75},
                                       {1, 0, .5, .5}});
    f.document.open("toy.h5");
    QTRY_VERIFY(!f.plot("Attention of the draft")->isEmpty());
    QVERIFY(named<QLabel>(f.page, "The map, in words")->text().contains("12.5 %"));
    named<QSpinBox>(f.page, "Head")->setValue(0);
    QVERIFY(f.plot("Attention of the draft")->isEmpty()); // not computed
}

void FidelityPageTest::storedMapsAreOffered()
{
    StudyData data = study();
    for (RunRecord& run : data.runs)
        if (run.variant == "functional")
            run.put(AttentionMapRecord{LayerIndex(0), HeadIndex(1), "b", {"b"}, {1}, {1}});
    Fixture f{std::move(data)};
    f.open(functional);
    auto* maps = named<QComboBox>(f.page, "Computed maps");
    QCOMPARE(maps->count(), 2);
    QCOMPARE(maps->currentText(), QString("layer 0, head 1: b")); // the newest
    QCOMPARE(f.selection.layer(), std::optional<int>());          // nobody chose one
    maps->setCurrentIndex(0);
    QCOMPARE(named<QLineEdit>(f.page, "Prompt")->text(), QString("é"));
    QCOMPARE(named<QSpinBox>(f.page, "Head")->value(), 3);
    QCOMPARE(f.selection.layer(), std::optional(1));
    QCOMPARE(f.plot("Attention of the draft")->figure().heatmap->columns, 2);
}

void FidelityPageTest::everyFieldHasAName()
{
    Fixture f{study()};
    for (const QString& name :
         {QStringLiteral("Prompt"), QStringLiteral("Layer"), QStringLiteral("Head"),
          QStringLiteral("Computed maps"), QStringLiteral("Text to score")})
        QVERIFY2(named<QWidget>(f.page, name), qPrintable(name));
    for (const PlotView* plot : f.page.plots())
        QVERIFY(!plot->accessibleName().isEmpty());
    QCOMPARE(f.page.plots().size(), 7);
}

void FidelityPageTest::drawsInBothThemes()
{
    Fixture f{study()};
    f.open(functional);
    QImage light, dark;
    for (const auto theme : {Theme::Light, Theme::Dark}) {
        applyTheme(*qApp, theme);
        QCoreApplication::processEvents();
        (theme == Theme::Light ? light : dark) = f.page.grab().toImage();
    }
    QVERIFY(!light.isNull() && light.size() == dark.size());
    QVERIFY(qGray(light.pixel(3, 3)) > qGray(dark.pixel(3, 3)));
}

QTEST_MAIN(FidelityPageTest)
#include "tst_fidelity_page.moc"
