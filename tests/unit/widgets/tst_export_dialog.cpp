// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>

#include <QCheckBox>
#include <QComboBox>
#include <QDir>
#include <QFile>
#include <QLineEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <QTextBrowser>

#include "tests/support/window_parts.h"
#include "widgets/dialogs/export_draft_dialog.h"

using namespace mla;
using namespace mla::ui;
using mla::test::button;
using mla::test::checkBox;
using mla::test::named;

namespace
{

std::vector<LayoutDescription> layouts()
{
    return {{"huggingface", "Transformers", {"every tensor"}, {}, {}},
            {"vllm-plugin", "vLLM with the package", {"every tensor"}, {}, {}},
            {"deepseek", "Transformers", {}, {}, "it has <3> rotary heads"}};
}

DraftState goodDraft()
{
    return {DraftState::Status::Good, {}, layouts()};
}

QStringList blocking(const ExportForm& form, Field field, const DraftState& draft = goodDraft())
{
    QStringList texts;
    for (const Issue& issue : checkExport(form, draft))
        if (issue.blocking && issue.field == field)
            texts << issue.text;
    return texts;
}

} // namespace

class ExportDialogTest : public QObject
{
    Q_OBJECT
private slots:
    void init() { m_folder = std::make_unique<QTemporaryDir>(); }
    void rulesOfTheDraft();
    void rulesOfTheOutput();
    void requestSaysWhatWasAsked();
    void summaryNamesWhatWasChecked();
    void showsWhatALayoutKeepsAndLoses();
    void unreadableDraftIsSaid();
    void outputFollowsUntilItIsChosen();

private:
    ExportForm validForm() const
    {
        ExportForm form;
        form.draft = m_folder->filePath("draft");
        form.output = m_folder->filePath("out");
        return form;
    }
    std::unique_ptr<QTemporaryDir> m_folder;
};

void ExportDialogTest::rulesOfTheDraft()
{
    ExportForm form = validForm();
    QVERIFY(checkExport(form, goodDraft()).empty());
    form.layout = "deepseek";
    QCOMPARE(blocking(form, Field::ExportLayout).size(), 1);
    QVERIFY(blocking(form, Field::ExportLayout).first().contains("it has <3> rotary heads"));
    form.layout = "vllm-plugin";
    QVERIFY(blocking(form, Field::ExportLayout).isEmpty());
    QCOMPARE(blocking(form, Field::ExportDraft, {DraftState::Status::Bad, "no config.json", {}}),
             QStringList{"no config.json"});
    QCOMPARE(blocking(form, Field::ExportDraft, {DraftState::Status::Checking, {}, {}}).size(), 1);
    form.draft.clear();
    QCOMPARE(blocking(form, Field::ExportDraft).size(), 1);
}

void ExportDialogTest::rulesOfTheOutput()
{
    ExportForm form = validForm();
    form.output.clear();
    QCOMPARE(blocking(form, Field::ExportOutput).size(), 1);
    form.output = form.draft + "/../draft";
    QVERIFY(blocking(form, Field::ExportOutput).first().contains("draft itself"));
    form.output = m_folder->path();
    QVERIFY(blocking(form, Field::ExportOutput).first().contains("exists"));
    form.overwrite = true;
    QVERIFY(blocking(form, Field::ExportOutput).isEmpty());
    QCOMPARE(checkExport(form, goodDraft()).size(), std::size_t(1)); // the warning stays
    QFile file(m_folder->filePath("file"));
    QVERIFY(file.open(QIODevice::WriteOnly));
    form.output = file.fileName();
    QVERIFY(blocking(form, Field::ExportOutput).first().contains("file"));
    form.output = file.fileName() + "/below/it";
    QCOMPARE(blocking(form, Field::ExportOutput).size(), 1);
}

void ExportDialogTest::requestSaysWhatWasAsked()
{
    ExportForm form = validForm();
    ExportRequest request = requestFromForm(form);
    QVERIFY(!request.dtype && !request.study && request.verify && !request.overwrite);
    QCOMPARE(request.maxShardBytes, defaultShardBytes);
    form.dtype = "bf16";
    form.study = m_folder->filePath("s.h5");
    form.shardGigabytes = 0.25;
    request = requestFromForm(form);
    QCOMPARE(*request.dtype, std::string("bf16"));
    QCOMPARE(*request.study, std::filesystem::path(form.study.toStdString()));
    QCOMPARE(request.maxShardBytes, std::int64_t(250'000'000));
}

void ExportDialogTest::summaryNamesWhatWasChecked()
{
    ExportOutcome outcome;
    outcome.output = "/x/out";
    QCOMPARE(exportSummary(outcome), QString("Draft exported to /x/out."));
    ExportCheckRecord tried;
    tried.stack = "transformers";
    tried.prompts = 2;
    tried.logitDifference = 0.5;
    tried.equalTokens = 47;
    tried.greedyTokens = 48;
    ExportCheckRecord untried;
    untried.stack = "vllm";
    untried.remark = "vllm is not installed";
    outcome.record.checks = {tried, untried};
    outcome.record.loses = {"a norm"};
    QCOMPARE(exportSummary(outcome), QString("Draft exported to /x/out. Checked in transformers. "
                                             "Not checked in vllm."));
    QCOMPARE(exportDetails(outcome),
             QString("transformers: logits within 0.5 of their spread, 47 of 48 greedy tokens "
                     "equal\nvllm: not tried, vllm is not installed\nLost: a norm"));
}

void ExportDialogTest::showsWhatALayoutKeepsAndLoses()
{
    ExportDraftDialog dialog([](const auto&) { return layouts(); });
    dialog.show();
    QPushButton* start = button(dialog, "Export");
    QVERIFY(start && !start->isEnabled());
    dialog.setDraft(m_folder->filePath("draft"));
    QTRY_VERIFY(start->isEnabled());
    auto* shown = named<QTextBrowser>(dialog, "What the layout keeps and loses");
    QVERIFY(shown->toPlainText().contains("every tensor"));
    QVERIFY(shown->toPlainText().contains("Loses nothing"));
    auto* choice = named<QComboBox>(dialog, "Layout");
    QCOMPARE(choice->itemText(2), QString("deepseek (cannot hold this draft)"));
    choice->setCurrentIndex(2);
    QVERIFY(!start->isEnabled());
    QVERIFY(shown->toPlainText().contains("it has <3> rotary heads"));
    choice->setCurrentIndex(0);

    QSignalSpy planned(&dialog, &ExportDraftDialog::planned);
    checkBox(dialog, "Verify in Transformers and vLLM")->setChecked(false);
    QVERIFY(!checkBox(dialog, "Record it in the open study")->isEnabled());
    QTest::mouseClick(start, Qt::LeftButton);
    QCOMPARE(planned.size(), 1);
    QVERIFY(!planned.first().first().value<ExportRequest>().verify);
    QVERIFY(!dialog.isVisible());
}

void ExportDialogTest::unreadableDraftIsSaid()
{
    ExportDraftDialog dialog([](const auto&) -> Result<std::vector<LayoutDescription>> {
        return badInput("config.json is missing", "somewhere");
    });
    dialog.setDraft(m_folder->path());
    QTRY_VERIFY(std::ranges::any_of(dialog.issues(), [](const Issue& issue) {
        return issue.field == Field::ExportDraft && issue.text.contains("config.json is missing");
    }));
    QVERIFY(!button(dialog, "Export")->isEnabled());
}

void ExportDialogTest::outputFollowsUntilItIsChosen()
{
    ExportDraftDialog dialog([](const auto&) { return layouts(); });
    dialog.setDraft("/models/a");
    QCOMPARE(dialog.form().output, QString("/models/a-huggingface"));
    named<QComboBox>(dialog, "Layout")->setCurrentIndex(1);
    QCOMPARE(dialog.form().output, QString("/models/a-vllm-plugin"));
    auto* output = named<QLineEdit>(dialog, "Folder to write");
    output->clear();
    QTest::keyClicks(output, "/elsewhere");
    dialog.setDraft("/models/b");
    QCOMPARE(dialog.form().output, QString("/elsewhere"));
    dialog.setStudy("/x/s.h5");
    QCOMPARE(dialog.form().study, QString("/x/s.h5"));
}

QTEST_MAIN(ExportDialogTest)
#include "tst_export_dialog.moc"
