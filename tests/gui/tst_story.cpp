// SPDX-License-Identifier: GPL-3.0-or-later
// The whole story of a first user, in the real window, with the keyboard alone: welcome, new run,
// live losses, every page, comparison, report, exported draft, close, and open again.
//
// MLA_STORY_SHOTS=DIR keeps a picture of every stop, MLA_STORY_THEME=dark changes the look;
// tests/support/story.sh takes them under Xvfb at each theme and scale.
// MLA_STORY_PAGES=DIR keeps the page or dialog alone, for tests/support/guide_pictures.sh;
// MLA_STORY_FOLDER is where the story takes place then.
#include <QAction>
#include <QDir>
#include <QFileDialog>
#include <QLineEdit>
#include <QListWidget>
#include <QPainter>
#include <QProcess>
#include <QPushButton>
#include <QSettings>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTabBar>
#include <QTabWidget>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>
#include <QTreeView>

#include "app/workbench/dock_area.h"
#include "app/workbench/main_window.h"
#include "tests/support/keyboard.h"
#include "tests/support/window_parts.h"
#include "widgets/common/command_palette.h"
#include "widgets/dialogs/converter_section.h"
#include "widgets/dialogs/export_draft_dialog.h"
#include "widgets/dialogs/new_run_dialog.h"
#include "widgets/help/help_window.h"
#include "widgets/pages/checkpoint_page.h"
#include "widgets/pages/compare_page.h"
#include "widgets/pages/welcome_page.h"
#include "widgets/plots/plot_view.h"

using namespace mla::ui;
using mla::test::button;
using mla::test::mostTabs;
using mla::test::named;
using mla::test::press;
using mla::test::reach;
using mla::test::type;

class StoryTest : public QObject
{
    Q_OBJECT
private slots:
    void initTestCase();
    void welcome();
    void newRun();
    void liveRun();
    void tabStaysInSight();
    void everyPage();
    void fidelity();
    void compare();
    void guide();
    void findACommand();
    void exportReport();
    void exportDraft();
    void closeAndOpenAgain();

private:
    [[nodiscard]] QString path(const QString& name) const { return m_place + '/' + name; }
    [[nodiscard]] PlotView* plot(const QString& name) const
    {
        return named<PlotView>(*m_window, name);
    }
    [[nodiscard]] QString front() const { return m_window->findChild<DockArea*>()->frontPage(); }
    void openWindow();
    void readCheckpoint();
    /// Brings a page to the front by the shortcut that its menu entry shows.
    void goTo(const QString& title);
    void shoot(QWidget* window, const QString& name);
    [[nodiscard]] QWidget* pageOf(QWidget* window) const;
    /// After a dialog. Window managers do so; the offscreen platform has none.
    void comeBack();
    QTemporaryDir m_folder;
    QString m_place;
    std::unique_ptr<MainWindow> m_window;
    int m_shots = 0;
};

void StoryTest::initTestCase()
{
    QVERIFY(m_folder.isValid());
    m_place = qEnvironmentVariable("MLA_STORY_FOLDER", m_folder.path());
    const QStringList used = {MLA_RESOURCES "/demo", MLA_RESOURCES "/prompts"};
    QCOMPARE(QProcess::execute("cp", QStringList{"-r"} + used + QStringList{m_place}), 0);
    mla::test::isolateSettings(path("settings"));
    qputenv("HOME", path("home").toUtf8());
    const bool dark = qEnvironmentVariable("MLA_STORY_THEME") == QLatin1String("dark");
    QSettings().setValue("theme", dark ? 2 : 1);
    openWindow();
}

void StoryTest::openWindow()
{
    m_window = std::make_unique<MainWindow>(coreServices());
    m_window->show();
    m_window->activateWindow();
    QVERIFY(QTest::qWaitForWindowActive(m_window.get()));
}

void StoryTest::comeBack()
{
    m_window->activateWindow();
    QVERIFY(QTest::qWaitForWindowActive(m_window.get()));
}

void StoryTest::goTo(const QString& title)
{
    for (const QAction* action : m_window->findChild<DockArea*>()->pageActions())
        if (action->text() == title) {
            const QKeyCombination keys = action->shortcut()[0];
            press(keys.key(), keys.keyboardModifiers());
            return;
        }
    QFAIL(qPrintable("there is no page " + title));
}

void StoryTest::shoot(QWidget* window, const QString& name)
{
    const auto keep = [](QWidget* part, const QString& folder, const QString& file) {
        QTest::qWait(300); // for animations and figures that are drawn later
        const QImage grabbed = part->grab().toImage();
        QImage picture(grabbed.size(), QImage::Format_RGB32);
        picture.setDevicePixelRatio(grabbed.devicePixelRatio());
        picture.fill(part->palette().color(QPalette::Window)); // a page has no ground of its own
        QPainter(&picture).drawImage(0, 0, grabbed);
        QVERIFY2(picture.save(QStringLiteral("%1/%2.png").arg(folder, file)), qPrintable(file));
    };
    if (const QString folder = qEnvironmentVariable("MLA_STORY_SHOTS"); !folder.isEmpty())
        keep(window, folder,
             QStringLiteral("%1-%2").arg(++m_shots, 2, 10, QLatin1Char('0')).arg(name));
    if (const QString folder = qEnvironmentVariable("MLA_STORY_PAGES"); !folder.isEmpty())
        keep(pageOf(window), folder, name);
}

/// What the user works in at the moment; a dialog is that as a whole.
QWidget* StoryTest::pageOf(QWidget* window) const
{
    auto* docks = window->findChild<DockArea*>();
    QWidget* page = docks ? docks->page(docks->currentPage()) : nullptr;
    return page && page->isVisible() ? page : window;
}

void StoryTest::welcome()
{
    QVERIFY(m_window->findChild<WelcomePage*>()->isVisible());
    const QSize whole = m_window->size();
    if (qEnvironmentVariableIsSet("MLA_STORY_PAGES"))
        m_window->resize(900, 560); // little stands in it
    shoot(m_window.get(), "welcome");
    m_window->resize(whole);
}

void StoryTest::newRun()
{
    press(Qt::Key_Tab); // from "Run the demo"
    press(Qt::Key_Space);
    auto* dialog = m_window->findChild<NewRunDialog*>();
    QVERIFY(dialog);
    QTRY_VERIFY(dialog->isActiveWindow());
    const auto fill = [dialog](const char* name, const QString& text) {
        auto* part = named<QWidget>(*dialog, QString::fromLatin1(name));
        QVERIFY2(part, name);
        reach(part);
        type(text);
    };
    fill("Checkpoint folder", path("demo/stories260K"));
    fill("Calibration text or JSONL files", "self:" + path("prompts/stories.txt"));
    fill("Calibration sequences", "16");
    fill("Tokens of a calibration sequence", "96");
    fill("Task files", path("demo/tasks/animals.jsonl") + "," + path("demo/tasks/weather.jsonl"));
    fill("New tokens at most", "48");
    fill("Study file", path("story.h5"));
    fill("Drafts folder", path("drafts"));
    for (ConverterSection* section : dialog->findChildren<ConverterSection*>())
        if (section->title() != QLatin1String("TransMLA")) {
            reach(section);
            if (section->isChecked())
                press(Qt::Key_Space);
            QVERIFY(!section->isChecked());
        }
    fill("Optimizer steps a layer", "150");
    fill("Tokens a step", "256");
    QTRY_VERIFY_WITH_TIMEOUT(dialog->canStart(), 20000);
    shoot(dialog, "new-run");
    reach(button(*dialog, "Start"));
    press(Qt::Key_Space);
    QTRY_VERIFY(m_window->jobs().busy());
}

void StoryTest::liveRun()
{
    comeBack();
    QTRY_COMPARE(front(), QStringLiteral("refinement"));
    PlotView* loss = plot("Loss of the selected layer");
    QTRY_VERIFY_WITH_TIMEOUT(!loss->isEmpty(), 120000);
    shoot(m_window.get(), "live-run");
    QTRY_VERIFY_WITH_TIMEOUT(!m_window->jobs().busy(), 300000);
    QVERIFY2(m_window->jobs().list().stateOf(1) == JobState::Finished,
             qPrintable(m_window->jobs().list().logOf(1)));
    QTRY_COMPARE(m_window->document().study().runs.size(), std::size_t(3));
    QCOMPARE(m_window->messages().texts(), QStringList());
}

/// The focus never goes to a page behind the front one.
void StoryTest::tabStaysInSight()
{
    const auto* docks = m_window->findChild<DockArea*>();
    for (const char* title : {"Refinement", "Fidelity", "Acceptance"}) {
        goTo(QString::fromLatin1(title));
        QSet<const QWidget*> met;
        for (int i = 0; i < mostTabs; ++i) {
            press(Qt::Key_Tab);
            const QWidget* focus = QApplication::focusWidget();
            QVERIFY(focus);
            QVERIFY2(!docks->isBehind(focus), qPrintable(focus->accessibleName()));
            met << focus;
        }
        QVERIFY(met.size() > 10);
        const QWidget* front = docks->page(docks->frontPage());
        QVERIFY(
            std::ranges::any_of(met, [front](auto* part) { return front->isAncestorOf(part); }));
    }
}

void StoryTest::everyPage()
{
    press(Qt::Key_Down, Qt::AltModifier);
    press(Qt::Key_Down, Qt::AltModifier);
    QVERIFY(m_window->selection().layer().has_value());
    for (const char* title : {"Study", "Checkpoint", "Refinement", "Rank spectra", "RoPE residuals",
                              "Acceptance", "Report", "Jobs"}) {
        goTo(QString::fromLatin1(title));
        if (title == QLatin1String("Checkpoint"))
            readCheckpoint();
        QTest::qWait(50);
        shoot(m_window.get(), QString::fromLatin1(title).toLower().replace(' ', '-'));
    }
    for (const char* name : {"Loss of the selected layer", "Singular values", "Retained energy",
                             "Key energy that leaves the rotary path", "Acceptance by task"})
        QVERIFY2(!plot(name)->isEmpty(), name);
    goTo("Acceptance");
    auto* views = named<QTabBar>(*m_window, "Views of acceptance");
    if (!views)
        views = named<QWidget>(*m_window, "Views of acceptance")->findChild<QTabBar*>();
    reach(views);
    for (int view = 1; view < views->count(); ++view) {
        press(Qt::Key_Right);
        QCOMPARE(views->currentIndex(), view);
        QTest::qWait(50);
        shoot(m_window.get(), QStringLiteral("acceptance-view-%1").arg(view));
    }
}

void StoryTest::readCheckpoint()
{
    auto* page = m_window->findChild<CheckpointPage*>();
    reach(named<QLineEdit>(*page, "Checkpoint folder"));
    type(path("demo/stories260K"));
    auto* tensors = named<QTreeView>(*page, "Tensors");
    QVERIFY(tensors);
    QTRY_VERIFY_WITH_TIMEOUT(tensors->model()->rowCount() > 0, 20000);
}

void StoryTest::fidelity()
{
    goTo("Fidelity");
    QTRY_COMPARE(front(), QStringLiteral("fidelity"));
    const auto measure = [this](const char* label, const char* figure, const QString& name) {
        reach(button(*m_window, QString::fromLatin1(label)));
        press(Qt::Key_Space);
        QTRY_VERIFY_WITH_TIMEOUT(m_window->jobs().busy(), 5000);
        QTRY_VERIFY_WITH_TIMEOUT(!m_window->jobs().busy(), 120000);
        QTRY_VERIFY2(!plot(QString::fromLatin1(figure))->isEmpty(), figure);
        // The button was out of use meanwhile; the focus has not gone to another page.
        QCOMPARE(m_window->findChild<DockArea*>()->currentPage(), QStringLiteral("fidelity"));
        shoot(m_window.get(), name);
    };
    measure("Measure error sources", "Sources of the functional error", "error-sources");
    auto* views = named<QTabWidget>(*m_window, "Views of fidelity")->findChild<QTabBar*>();
    reach(views);
    press(Qt::Key_Right);
    measure("Measure positions", "KL by position", "positions");
    reach(views);
    press(Qt::Key_Right);
    reach(named<QLineEdit>(*m_window, "Prompt"));
    type("Once upon a time, there was a little girl who loved her dog.");
    measure("Compute map", "Difference of attention", "attention-map");
}

void StoryTest::compare()
{
    goTo("Compare");
    QTRY_COMPARE(front(), QStringLiteral("compare"));
    auto* page = m_window->findChild<ComparePage*>();
    auto* runs = named<QListWidget>(*page, "Runs to compare");
    reach(runs);
    page->setCompared({});
    press(Qt::Key_Home);
    press(Qt::Key_Space);
    press(Qt::Key_End);
    press(Qt::Key_Space);
    QCOMPARE(page->compared().size(), 2);
    shoot(m_window.get(), "compare");
}

void StoryTest::findACommand()
{
    press(Qt::Key_K, Qt::ControlModifier);
    auto* palette = m_window->findChild<CommandPalette*>();
    QVERIFY(palette && palette->isVisible());
    QTest::keyClicks(QApplication::focusWidget(), "rope");
    shoot(m_window.get(), "command-palette");
    press(Qt::Key_Return);
    QTRY_COMPARE(front(), QStringLiteral("rope"));
}

void StoryTest::guide()
{
    goTo("Acceptance");
    press(Qt::Key_F1);
    auto* help = m_window->findChild<HelpWindow*>();
    QVERIFY(help);
    QTRY_VERIFY(help->isActiveWindow());
    QCOMPARE(help->currentPage(), QStringLiteral("acceptance"));
    shoot(help, "guide");
    press(Qt::Key_Escape);
    QTRY_VERIFY(!help->isVisible());
    comeBack();
}

void StoryTest::exportReport()
{
    QVERIFY(QDir().mkpath(path("report")));
    press(Qt::Key_E, Qt::ControlModifier);
    auto* dialog = m_window->findChild<QFileDialog*>();
    QVERIFY(dialog);
    QTRY_VERIFY(dialog->isActiveWindow());
    type(path("report"));
    press(Qt::Key_Return);
    QTRY_VERIFY_WITH_TIMEOUT(!m_window->messages().texts().isEmpty(), 120000);
    QVERIFY(m_window->messages().texts().first().contains("written"));
    comeBack();
    const QStringList files = QDir(path("report")).entryList(QDir::Files);
    for (const char* ending : {".pdf", ".svg", ".png", ".csv", ".tex", ".md", ".json"})
        QVERIFY2(!files.filter(QString::fromLatin1(ending)).isEmpty(), ending);
    shoot(m_window.get(), "report-written");
    press(Qt::Key_M, Qt::ControlModifier | Qt::ShiftModifier);
    QCOMPARE(m_window->messages().texts(), QStringList());
}

void StoryTest::exportDraft()
{
    press(Qt::Key_E, Qt::ControlModifier | Qt::ShiftModifier);
    auto* dialog = m_window->findChild<ExportDraftDialog*>();
    QVERIFY(dialog);
    QTRY_VERIFY(dialog->isActiveWindow());
    auto* verify = mla::test::checkBox(*dialog, "Verify in Transformers and vLLM");
    reach(verify); // they may not be installed here
    if (verify->isChecked())
        press(Qt::Key_Space);
    QPushButton* start = button(*dialog, "Export");
    QTRY_VERIFY_WITH_TIMEOUT(start->isEnabled(), 20000);
    const QString output = dialog->form().output;
    shoot(dialog, "export-draft");
    reach(start);
    press(Qt::Key_Space);
    QTRY_VERIFY_WITH_TIMEOUT(!m_window->messages().texts().isEmpty(), 120000);
    QCOMPARE(m_window->messages().texts().first(), "Draft exported to " + output + ".");
    QVERIFY(QFile::exists(output + "/config.json"));
    comeBack();
    press(Qt::Key_M, Qt::ControlModifier | Qt::ShiftModifier);
}

void StoryTest::closeAndOpenAgain()
{
    const auto layer = m_window->selection().layer();
    const QString run = m_window->selection().run();
    press(Qt::Key_Q, Qt::ControlModifier);
    QTRY_VERIFY(!m_window->isVisible());
    openWindow();
    m_window->restoreSession();
    QTRY_VERIFY(m_window->document().isLoaded());
    QCOMPARE(m_window->document().path(), path("story.h5"));
    QCOMPARE(m_window->selection().run(), run);
    QCOMPARE(m_window->selection().layer(), layer);
    QTRY_COMPARE(front(), QStringLiteral("rope"));
    shoot(m_window.get(), "opened-again");
}

int main(int argc, char** argv)
{
    QCoreApplication::setAttribute(Qt::AA_DontUseNativeDialogs);
    QApplication application(argc, argv);
    StoryTest test;
    return QTest::qExec(&test, argc, argv);
}
#include "tst_story.moc"
