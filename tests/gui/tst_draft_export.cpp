// SPDX-License-Identifier: GPL-3.0-or-later
// A draft is exported through the real window, for real.
#include <QFile>
#include <QLineEdit>
#include <QPushButton>
#include <QTemporaryDir>
#include <QTest>
#include <QTextBrowser>
#include <QTreeView>

#include "app/workbench/main_window.h"
#include "core/base/file.h"
#include "core/store/study.h"
#include "tests/support/window_parts.h"

using namespace mla;
using namespace mla::ui;
using mla::test::button;
using mla::test::checkBox;
using mla::test::named;

class DraftExportTest : public QObject
{
    Q_OBJECT
private slots:
    void initTestCase();
    void exportsTheSelectedRun();
    void aDraftThatVanishedIsAMessage();

private:
    [[nodiscard]] QString path(const char* name) const { return m_folder.filePath(name); }
    QTemporaryDir m_folder;
};

void DraftExportTest::initTestCase()
{
    test::isolateSettings(path("settings"));
    ConvertRequest request;
    request.checkpoint = std::filesystem::path(MLA_RESOURCES "/demo/stories260K");
    request.output = path("draft").toStdString();
    request.settings.kvLoraRank = 28;
    request.settings.qkRopeHeadDim = 4;
    request.settings.freqfold = 2;
    request.calibration = {"self", 8, 32};
    request.compute.device = "cpu";
    request.study = path("study.h5").toStdString();
    JobContext job;
    const auto converted = convertCheckpoint(job, request);
    QVERIFY2(converted.ok(), converted.ok() ? "" : converted.error().text().c_str());
}

void DraftExportTest::exportsTheSelectedRun()
{
    MainWindow window(coreServices());
    window.show();
    window.openStudy(path("study.h5"));
    QTRY_VERIFY(window.document().isLoaded());
    window.activateWindow();
    QVERIFY(QTest::qWaitForWindowActive(&window));
    QTest::keyClick(&window, Qt::Key_E, Qt::ControlModifier | Qt::ShiftModifier);
    auto* dialog = window.findChild<ExportDraftDialog*>();
    QVERIFY(dialog && dialog->isVisible());
    QPushButton* start = button(*dialog, "Export");
    QTRY_VERIFY_WITH_TIMEOUT(start->isEnabled(), 20000);
    QCOMPARE(dialog->form().draft, path("draft"));
    QVERIFY(named<QTextBrowser>(*dialog, "What the layout keeps and loses")
                ->toPlainText()
                .contains("Keeps"));
    checkBox(*dialog, "Verify in Transformers and vLLM")->setChecked(false);
    QTest::mouseClick(start, Qt::LeftButton);
    QTRY_COMPARE_WITH_TIMEOUT(window.messages().texts().size(), 1, 60000);
    QCOMPARE(window.messages().texts().first(),
             "Draft exported to " + path("draft-huggingface") + ".");
    for (const char* file : {"config.json", "model.safetensors", "README.md"})
        QVERIFY2(QFile::exists(path("draft-huggingface/") + file), file);
    QCOMPARE(window.jobs().list().stateOf(1), JobState::Finished);
    // The export stands in the study, and the window has read it again.
    QTRY_COMPARE(window.document().study().exports.size(), std::size_t(1));
    QCOMPARE(window.document().study().exports.front().path,
             path("draft-huggingface").toStdString());
    const auto* tree = named<QTreeView>(window, "Study contents")->model();
    QCOMPARE(tree->index(4, 0).data().toString(), QString("Exports"));
    QCOMPARE(tree->rowCount(tree->index(4, 0)), 1);
}

void DraftExportTest::aDraftThatVanishedIsAMessage()
{
    MainWindow window(coreServices());
    window.show();
    window.activateWindow();
    QVERIFY(QTest::qWaitForWindowActive(&window));
    QTest::keyClick(&window, Qt::Key_E, Qt::ControlModifier | Qt::ShiftModifier);
    auto* dialog = window.findChild<ExportDraftDialog*>();
    QVERIFY(dialog);
    dialog->setDraft(path("draft"));
    QPushButton* start = button(*dialog, "Export");
    named<QLineEdit>(*dialog, "Folder to write")->setText(path("nothing"));
    QTRY_VERIFY_WITH_TIMEOUT(start->isEnabled(), 20000);
    QVERIFY(QFile::rename(path("draft/model.safetensors"), path("weights-aside")));
    QTest::mouseClick(start, Qt::LeftButton);
    QTRY_COMPARE_WITH_TIMEOUT(window.messages().texts().size(), 1, 60000);
    QVERIFY2(window.messages().texts().first().contains("failed"),
             qPrintable(window.messages().texts().first()));
    QVERIFY(!QFile::exists(path("nothing")));
    QCOMPARE(window.jobs().list().stateOf(1), JobState::Failed);
    QVERIFY(QFile::rename(path("weights-aside"), path("draft/model.safetensors")));
}

QTEST_MAIN(DraftExportTest)
#include "tst_draft_export.moc"
