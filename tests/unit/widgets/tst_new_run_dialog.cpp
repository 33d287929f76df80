// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>

#include <QClipboard>
#include <QDir>
#include <QFile>
#include <QGuiApplication>
#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTemporaryDir>
#include <QTest>

#include "widgets/dialogs/converter_section.h"
#include "widgets/dialogs/new_run_dialog.h"
#include "widgets/dialogs/path_field.h"

using namespace mla;
using namespace mla::ui;

namespace
{

/// G = 4 KV heads of h = 8: the original caches 2 G h = 64 elements per token and layer.
InspectReport smallModel()
{
    InspectReport report;
    report.modelType = "llama";
    report.attention = "gqa";
    report.layers = 5;
    report.hiddenSize = 64;
    report.heads = 8;
    report.kvHeads = 4;
    report.headDim = 8;
    report.vocabSize = 512;
    report.dtype = "float32";
    report.config.modelType = report.modelType;
    report.config.numHiddenLayers = report.layers;
    report.config.hiddenSize = report.hiddenSize;
    report.config.numAttentionHeads = report.heads;
    report.config.numKeyValueHeads = report.kvHeads;
    report.config.headDim = report.headDim;
    return report;
}

ModelState good(const InspectReport& report = smallModel())
{
    return {ModelState::Status::Good, {}, report};
}

RunForm validForm()
{
    RunForm form;
    form.checkpoint = "/models/toy";
    form.transmla = {true, halvedCache("transmla", smallModel().config)};
    form.mha2mla = {true, halvedCache("mha2mla", smallModel().config)};
    form.study = "/nowhere/new.h5";
    form.drafts = "/nowhere/drafts";
    return form;
}

/// Asks for acceptance, on a task file in `folder`.
void addTask(RunForm& form, const QTemporaryDir& folder)
{
    form.tasks = {folder.filePath("tales.jsonl")};
    QVERIFY(QFile(form.tasks.first()).open(QIODevice::WriteOnly));
}

/// Texts of the blocking issues of `field`.
QStringList blocking(const RunForm& form, Field field, const ModelState& checkpoint = good(),
                     const ModelState& target = {})
{
    QStringList texts;
    for (const Issue& issue : checkForm(form, checkpoint, target))
        if (issue.blocking && issue.field == field)
            texts << issue.text;
    return texts;
}

bool warns(const RunForm& form, Field field)
{
    const auto issues = checkForm(form, good(), {});
    return std::any_of(issues.begin(), issues.end(),
                       [&](const Issue& issue) { return !issue.blocking && issue.field == field; });
}

bool startable(const RunForm& form)
{
    const auto issues = checkForm(form, good(), {});
    return std::none_of(issues.begin(), issues.end(),
                        [](const Issue& issue) { return issue.blocking; });
}

} // namespace

class NewRunDialogTest : public QObject
{
    Q_OBJECT
private slots:
    void proposalsHalveTheCache();
    void aValidFormHasNoBlockingIssue();
    void modelsAreChecked();
    void transmlaLimits();
    void mha2mlaLimits();
    void aConversionThatSavesNothingWarns();
    void aModelThatAConverterRefuses();
    void settingsFromElsewhereStay();
    void filesAreChecked();
    void chatTemplateNeedsPython();
    void foreignBackendNeedsPython();
    void planHoldsTheForm();
    void planAndFormAreInverse();
    void plansAreSavedOpenedAndCopied();
    void dialogInspectsWhatIsTyped();
    void dialogShowsWhyItCannotStart();
    void errorOfTheRankIsPredicted();
};

void NewRunDialogTest::proposalsHalveTheCache()
{
    const ModelConfig model = smallModel().config;
    for (const char* converter : {"transmla", "mha2mla"})
        QCOMPARE(plannedCacheElements(model, halvedCache(converter, model)), std::int64_t(32));
}

void NewRunDialogTest::aValidFormHasNoBlockingIssue()
{
    QVERIFY(startable(validForm()));
    QVERIFY(warns(validForm(), Field::Tasks));
}

void NewRunDialogTest::modelsAreChecked()
{
    RunForm form = validForm();
    QCOMPARE(blocking(form, Field::Checkpoint, {ModelState::Status::Checking, {}, {}}).size(), 1);
    QCOMPARE(
        blocking(form, Field::Checkpoint, {ModelState::Status::Bad, "config.json: missing", {}}),
        QStringList({"config.json: missing"}));
    InspectReport draft = smallModel();
    draft.attention = "mla";
    QCOMPARE(blocking(form, Field::Checkpoint, good(draft)).size(), 1);
    form.target = "/models/big";
    QCOMPARE(blocking(form, Field::Target).size(), 1);
    QVERIFY(blocking(form, Field::Target, good(), good()).isEmpty());
    form.checkpoint.clear();
    QCOMPARE(blocking(form, Field::Checkpoint).size(), 1);
}

void NewRunDialogTest::transmlaLimits()
{
    RunForm form = validForm();
    ConvertSettings& settings = form.transmla.settings;
    settings.qkRopeHeadDim = 6; // does not divide 8
    QCOMPARE(blocking(form, Field::TransmlaRope).size(), 1);
    settings.qkRopeHeadDim = 4;
    settings.kvLoraRank = 2 * 4 * 8 - 4;
    QVERIFY(blocking(form, Field::TransmlaRank).isEmpty());
    settings.kvLoraRank += 1;
    QCOMPARE(blocking(form, Field::TransmlaRank).size(), 1);
    settings.kvLoraRank = 28;
    for (const int fold : {0, 2, 4}) { // multiples of 8 / 4 that divide 8 / 2
        settings.freqfold = fold;
        QVERIFY2(blocking(form, Field::TransmlaFold).isEmpty(), qPrintable(QString::number(fold)));
    }
    for (const int fold : {1, 3, 8}) {
        settings.freqfold = fold;
        QVERIFY2(!blocking(form, Field::TransmlaFold).isEmpty(), qPrintable(QString::number(fold)));
    }
    form.transmla.enabled = false;
    QVERIFY(startable(form));
    form.mha2mla.enabled = false;
    QCOMPARE(blocking(form, Field::Converters).size(), 1);
}

void NewRunDialogTest::mha2mlaLimits()
{
    RunForm form = validForm();
    ConvertSettings& settings = form.mha2mla.settings;
    settings.qkRopeHeadDim = 4;
    settings.kvLoraRank = 48; // min(64, 4 (16 - 4))
    QVERIFY(blocking(form, Field::Mha2mlaRank).isEmpty());
    settings.kvLoraRank = 49;
    QCOMPARE(blocking(form, Field::Mha2mlaRank).size(), 1);
    settings.kvLoraRank = 16;
    settings.qkRopeHeadDim = 6;
    QVERIFY(startable(form));
    settings.ropeSelect = "uniform"; // every (8 / 6)-th pair
    QCOMPARE(blocking(form, Field::Mha2mlaSelection).size(), 1);
    settings.qkRopeHeadDim = 10;
    QCOMPARE(blocking(form, Field::Mha2mlaRope).size(), 1);
}

void NewRunDialogTest::aConversionThatSavesNothingWarns()
{
    RunForm form = validForm();
    form.transmla.settings.kvLoraRank = 59; // 59 + 4 < 64
    QVERIFY(!warns(form, Field::TransmlaRank));
    form.transmla.settings.kvLoraRank = 60;
    QVERIFY(warns(form, Field::TransmlaRank));
    QVERIFY(startable(form));
}

void NewRunDialogTest::aModelThatAConverterRefuses()
{
    InspectReport normed = smallModel();
    normed.config.qkNorm = true;
    const RunForm form = validForm();
    QCOMPARE(blocking(form, Field::TransmlaModel, good(normed)).size(), 1);
    QVERIFY(blocking(form, Field::Mha2mlaModel, good(normed)).isEmpty());
}

void NewRunDialogTest::settingsFromElsewhereStay()
{
    NewRunDialog dialog(
        [](const std::filesystem::path&) -> Result<InspectReport> { return smallModel(); });
    ConvertSettings settings;
    settings.converter = "mha2mla";
    settings.kvLoraRank = 12;
    settings.qkRopeHeadDim = 2;
    dialog.setStudy("/nowhere/new.h5");
    dialog.setCheckpoint("/models/toy");
    dialog.setConversion(settings);
    QTRY_VERIFY(dialog.canStart());
    QVERIFY(!dialog.form().transmla.enabled);
    QVERIFY(dialog.form().mha2mla.enabled);
    QCOMPARE(dialog.form().mha2mla.settings.kvLoraRank, 12);
    QCOMPARE(dialog.form().mha2mla.settings.qkRopeHeadDim, 2);
}

void NewRunDialogTest::filesAreChecked()
{
    QTemporaryDir folder;
    RunForm form = validForm();
    addTask(form, folder);
    const QString task = form.tasks.first();
    QVERIFY(startable(form) && !warns(form, Field::Tasks));
    form.tasks = {task, folder.filePath("gone.jsonl")};
    QCOMPARE(blocking(form, Field::Tasks).size(), 1);
    form.tasks = {task, task};
    QCOMPARE(blocking(form, Field::Tasks).size(), 1);
    form.tasks.clear();
    form.calibration.source = "self:" + folder.filePath("gone.txt").toStdString();
    QCOMPARE(blocking(form, Field::Calibration).size(), 1);
    form.calibration.source = task.toStdString();
    QVERIFY(blocking(form, Field::Calibration).isEmpty());
    form.study = folder.path();
    QCOMPARE(blocking(form, Field::Study).size(), 1);
    form.study = folder.filePath("study.txt");
    QCOMPARE(blocking(form, Field::Study).size(), 1);
    form.drafts = task;
    QCOMPARE(blocking(form, Field::Drafts).size(), 1);
}

void NewRunDialogTest::chatTemplateNeedsPython()
{
    QTemporaryDir folder;
    RunForm form = validForm();
    addTask(form, folder);
    form.accept.chatTemplate = true;
    const QByteArray python = qgetenv("MLA_PYTHON");
    qputenv("MLA_PYTHON", "/no/python");
    QCOMPARE(blocking(form, Field::ChatTemplate).size(), 1);
    QVERIFY(blocking(form, Field::ChatTemplate).at(0).contains("/no/python"));
    qputenv("MLA_PYTHON", "/bin/sh"); // anything that runs; what it is turns out later
    QVERIFY(startable(form));
    QVERIFY(planFromForm(form).accept.chatTemplate);
    form.tasks.clear(); // nothing is rendered
    qputenv("MLA_PYTHON", "/no/python");
    QVERIFY(startable(form));
    python.isNull() ? qunsetenv("MLA_PYTHON") : qputenv("MLA_PYTHON", python);
}

void NewRunDialogTest::foreignBackendNeedsPython()
{
    QTemporaryDir folder;
    RunForm form = validForm();
    addTask(form, folder);
    form.compute.python = "/no/python";
    QVERIFY(startable(form)); // the native engine asks for none
    for (const char* backend : {"hf", "vllm"}) {
        form.accept.backend = backend;
        const QStringList texts = blocking(form, Field::Backend);
        QCOMPARE(texts.size(), 1);
        QVERIFY2(texts.first().contains("/no/python"), qPrintable(texts.first()));
    }
    form.tasks.clear(); // nothing is measured
    QVERIFY(startable(form));
}

void NewRunDialogTest::planHoldsTheForm()
{
    RunForm form = validForm();
    form.mha2mla.enabled = false;
    form.partialRope = false;
    form.refine.steps = 5;
    form.tasks = {"/tasks/chat.jsonl"};
    const StudyPlan plan = planFromForm(form);
    QCOMPARE(plan.conversions.size(), std::size_t(1));
    QCOMPARE(plan.conversions[0].converter, std::string("transmla"));
    QCOMPARE(plan.objectives, std::vector<std::string>({"functional"}));
    QCOMPARE(plan.refine.steps, 5);
    QCOMPARE(plan.accept.tasks.front(), std::filesystem::path("/tasks/chat.jsonl"));
    QVERIFY(plan.target.empty());
    QVERIFY(!plan.resume);
    QTemporaryDir folder;
    form.study = folder.filePath("old.h5");
    QVERIFY(QFile(form.study).open(QIODevice::WriteOnly));
    QVERIFY(planFromForm(form).resume); // adds to it
}

void NewRunDialogTest::planAndFormAreInverse()
{
    RunForm form = validForm();
    form.partialRope = false;
    form.mha2mla.enabled = false;
    form.tasks = {"/tasks/a.jsonl", "/tasks/b.jsonl"};
    form.accept.backend = "hf";
    form.accept.sweepK = 8;
    form.refine.learningRate = 0.003;
    form.compute.seed = 5;
    const StudyPlan plan = planFromForm(form);
    const StudyPlan again = planFromForm(formFromPlan(plan));
    QCOMPARE(planText(again), planText(plan));
    QVERIFY(planText(plan).contains("\"sweep_k\": 8"));
}

void NewRunDialogTest::plansAreSavedOpenedAndCopied()
{
    QTemporaryDir folder;
    const QString file = folder.filePath("plan.json");
    const auto inspect = [](const auto&) -> Result<InspectReport> { return smallModel(); };
    RunForm form = validForm();
    form.accept.sweepK = 8; // what the dialog does not ask for stays
    form.accept.backend = "vllm";
    form.accept.method = "speculative";
    form.refine.steps = 17;
    QByteArray saved;
    {
        NewRunDialog dialog(inspect);
        dialog.setForm(form);
        dialog.savePlan(file);
        dialog.copyCommandLine();
        saved = planText(planFromForm(dialog.form()));
    }
    QCOMPARE(QGuiApplication::clipboard()->text(),
             "mla-draft run - <<'PLAN'\n" + QString::fromUtf8(saved) + "PLAN\n");
    NewRunDialog dialog(inspect);
    dialog.loadPlan(file);
    QCOMPARE(planText(planFromForm(dialog.form())), saved);
    QCOMPARE(dialog.form().refine.steps, 17);
    QCOMPARE(dialog.form().accept.sweepK, 8);
    QCOMPARE(dialog.form().accept.backend, std::string("vllm"));
    QTRY_VERIFY(!dialog.form().checkpoint.isEmpty());

    QFile wrong(folder.filePath("wrong.json"));
    QVERIFY(wrong.open(QIODevice::WriteOnly) && wrong.write("{\"kv_rank\": 1}") > 0);
    wrong.close();
    dialog.loadPlan(wrong.fileName());
    bool named = false;
    for (const QLabel* label : dialog.findChildren<QLabel*>())
        named |= label->text().contains("kv_rank");
    QVERIFY(named);
    QCOMPARE(dialog.form().refine.steps, 17); // nothing was taken over
}

void NewRunDialogTest::dialogInspectsWhatIsTyped()
{
    NewRunDialog dialog([](const std::filesystem::path& path) -> Result<InspectReport> {
        if (path == "/models/toy")
            return smallModel();
        return badInput("no config.json", path.string());
    });
    dialog.setStudy("/nowhere/new.h5");
    dialog.setCheckpoint("/models/to");
    QVERIFY(!dialog.canStart());
    const auto problem = [&dialog] {
        return dialog.issues().empty() ? QString() : dialog.issues().front().text;
    };
    QTRY_VERIFY(problem().contains("no config.json"));
    dialog.setCheckpoint("/models/toy");
    QTRY_VERIFY(dialog.canStart());
    // Proposed ranks halve the cache, and the user's own stay when another checkpoint is chosen.
    QCOMPARE(dialog.form().transmla.settings.kvLoraRank, 28);
    QCOMPARE(dialog.form().mha2mla.settings.kvLoraRank, 16);
    auto* section = dialog.findChild<ConverterSection*>();
    section->findChild<QSpinBox*>()->setValue(20);
    dialog.setCheckpoint("/models/to");
    dialog.setCheckpoint("/models/toy");
    QTRY_VERIFY(dialog.canStart());
    QCOMPARE(dialog.form().transmla.settings.kvLoraRank, 20);
}

void NewRunDialogTest::dialogShowsWhyItCannotStart()
{
    NewRunDialog dialog(
        [](const std::filesystem::path&) -> Result<InspectReport> { return smallModel(); });
    QPushButton* start = nullptr;
    for (QPushButton* button : dialog.findChildren<QPushButton*>())
        if (button->text() == "Start")
            start = button;
    QVERIFY(start && !start->isEnabled());
    QVERIFY(!start->toolTip().isEmpty());
    dialog.setCheckpoint("/models/toy");
    dialog.setStudy("/nowhere/new.h5");
    QTRY_VERIFY(start->isEnabled());
    QSignalSpy planned(&dialog, &NewRunDialog::planned);
    start->click();
    QCOMPARE(planned.size(), 1);
    const auto plan = planned.front().front().value<StudyPlan>();
    QCOMPARE(plan.drafts, std::filesystem::path("/nowhere/new-drafts"));
}

/// Two layers whose singular values are 4 and 3: the second holds 9 of 25, so 60 % of the norm.
void NewRunDialogTest::errorOfTheRankIsPredicted()
{
    NewRunDialog dialog(
        [](const std::filesystem::path&) -> Result<InspectReport> { return smallModel(); });
    std::function<void(const Result<WeightSpectra>&)> answer;
    QString asked;
    dialog.setSpectraAsker([&](const QString& checkpoint, const auto& whenKnown) {
        asked = checkpoint;
        answer = whenKnown;
    });
    const auto shown = [&dialog](const QString& text) {
        int count = 0;
        for (const QLabel* label : dialog.findChildren<QLabel*>())
            count += label->text().contains(text);
        return count;
    };
    dialog.setCheckpoint("/models/toy");
    QTRY_COMPARE(asked, QString("/models/toy"));
    QCOMPARE(shown("Predicted error"), 0);
    answer(WeightSpectra{{0, 4}, {{4, 3}, {4, 3}}});
    QCOMPARE(shown("Predicted error"), 2); // both converters
    for (ConverterSection* section : dialog.findChildren<ConverterSection*>()) {
        ConverterForm form = section->value();
        form.settings.kvLoraRank = 1;
        section->setSettings(form.settings);
    }
    QCOMPARE(shown("60.0 %"), 2);

    // An answer that comes when another checkpoint stands there is about the wrong one.
    const auto late = answer;
    dialog.setCheckpoint("/models/other");
    QTRY_COMPARE(asked, QString("/models/other"));
    late(WeightSpectra{{0}, {{4, 3}}});
    QCOMPARE(shown("Predicted error"), 0);
    answer(badInput("no such tensor"));
    QCOMPARE(shown("Predicted error"), 0);
}

QTEST_MAIN(NewRunDialogTest)
#include "tst_new_run_dialog.moc"
