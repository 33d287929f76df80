// SPDX-License-Identifier: GPL-3.0-or-later
// The first thing a user sees: the real window without a study.
#include <QCommandLinkButton>
#include <QDir>
#include <QTemporaryDir>
#include <QTest>

#include "app/workbench/dock_area.h"
#include "app/workbench/main_window.h"
#include "core/store/study.h"
#include "tests/support/study_fixture.h"
#include "tests/support/window_parts.h"
#include "widgets/common/recent_files.h"
#include "widgets/pages/welcome_page.h"

using namespace mla::ui;
using mla::test::labelled;

class WelcomeTest : public QObject
{
    Q_OBJECT
private slots:
    void init();
    void showsBeforeAStudyIsOpen();
    void comesBackWithTheStudyInItsList();
    void vanishedStudiesAreNotListed();
    void pagesTakeItsPlace();
    void demoIsStartedOnce();
    void demoThatIsThereIsOpened();

private:
    [[nodiscard]] QCommandLinkButton* entry(const QString& text) const
    {
        return labelled<QCommandLinkButton>(*m_window, text);
    }
    [[nodiscard]] bool welcomes() const
    {
        const bool shown = m_window->findChild<WelcomePage*>()->isVisible();
        return shown && !m_window->findChild<DockArea*>()->isVisible();
    }
    QString saveStudyAs(const QString& path);
    std::unique_ptr<QTemporaryDir> m_folder;
    std::unique_ptr<MainWindow> m_window;
    std::vector<mla::StudyPlan> m_started; ///< plans that reached the pipeline
};

void WelcomeTest::init()
{
    m_window.reset();
    m_folder = std::make_unique<QTemporaryDir>();
    mla::test::isolateSettings(m_folder->filePath("settings"));
    qputenv("HOME", m_folder->path().toUtf8()); // of the documents
    m_started.clear();
    Services services = coreServices();
    services.runStudy = [this](mla::JobContext&,
                               const mla::StudyPlan& plan) -> mla::Result<mla::StudyOutcome> {
        m_started.push_back(plan);
        return mla::cancelled();
    };
    m_window = std::make_unique<MainWindow>(std::move(services));
    m_window->show();
}

QString WelcomeTest::saveStudyAs(const QString& path)
{
    QDir().mkpath(QFileInfo(path).path());
    return mla::saveStudy(path.toStdString(), mla::test::toyStudy()).ok() ? path : QString();
}

void WelcomeTest::showsBeforeAStudyIsOpen()
{
    QVERIFY(welcomes());
    for (const char* name : {"Run the demo", "New run…", "Open study…", "User guide"}) {
        QVERIFY2(entry(QString::fromUtf8(name)), name);
        QVERIFY2(!entry(QString::fromUtf8(name))->description().isEmpty(), name);
    }
    QVERIFY(entry("Run the demo")->isVisible());
    QCOMPARE(m_window->focusWidget(), entry("Run the demo")); // Enter is enough
}

void WelcomeTest::comesBackWithTheStudyInItsList()
{
    const QString study = saveStudyAs(m_folder->filePath("studies/toy.h5"));
    m_window->openStudy(study);
    QTRY_VERIFY(m_window->document().isLoaded());
    QVERIFY(!welcomes());
    m_window->document().close();
    QVERIFY(welcomes());
    QCommandLinkButton* recent = entry("toy.h5");
    QVERIFY(recent && recent->isVisible());
    QCOMPARE(recent->description(), QString("~/studies"));
    recent->click();
    QTRY_VERIFY(m_window->document().isLoaded());
    QCOMPARE(m_window->document().path(), study);
    QVERIFY(!welcomes());
}

void WelcomeTest::vanishedStudiesAreNotListed()
{
    const QString study = saveStudyAs(m_folder->filePath("toy.h5"));
    auto* recent = m_window->findChild<RecentFiles*>();
    recent->add(study);
    recent->add(m_folder->filePath("gone.h5"));
    QVERIFY(entry("toy.h5"));
    QVERIFY(!entry("gone.h5"));
}

void WelcomeTest::pagesTakeItsPlace()
{
    QVERIFY(welcomes());
    auto* docks = m_window->findChild<DockArea*>();
    const auto pages = docks->pageActions();
    for (QAction* page : pages)
        if (page->text() == QLatin1String("Checkpoint"))
            page->trigger();
    QVERIFY(!welcomes());
    QTRY_COMPARE(docks->frontPage(), QStringLiteral("checkpoint"));
    labelled<QAction>(*m_window, "Welcome")->trigger();
    QVERIFY(welcomes());
}

void WelcomeTest::demoIsStartedOnce()
{
    entry("Run the demo")->click();
    QVERIFY(!welcomes());
    labelled<QAction>(*m_window, "Run the demo")->trigger(); // its study is awaited already
    QTRY_VERIFY(!m_window->jobs().busy());
    QCOMPARE(m_started.size(), std::size_t(1));
    const mla::StudyPlan& plan = m_started.front();
    QCOMPARE(QString::fromStdString(plan.study.string()),
             m_folder->filePath("Documents/mla-draft-demo/demo.h5"));
    QVERIFY(std::filesystem::exists(plan.checkpoint / "model.safetensors"));
    QCOMPARE(plan.conversions.size(), std::size_t(2)); // both converters
    QCOMPARE(plan.accept.tasks.size(), std::size_t(4));
    QVERIFY(!plan.resume);
}

void WelcomeTest::demoThatIsThereIsOpened()
{
    const QString study = saveStudyAs(m_folder->filePath("Documents/mla-draft-demo/demo.h5"));
    QVERIFY(!study.isEmpty());
    entry("Run the demo")->click();
    QTRY_VERIFY(m_window->document().isLoaded());
    QCOMPARE(m_window->document().path(), study);
    QVERIFY(m_started.empty());
}

QTEST_MAIN(WelcomeTest)
#include "tst_welcome.moc"
