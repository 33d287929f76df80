// SPDX-License-Identifier: GPL-3.0-or-later
// Closes the real window, opens it again, and compares what it shows.
#include <QAction>
#include <QFile>
#include <QHeaderView>
#include <QSplitter>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>
#include <QTreeView>

#include "app/workbench/dock_area.h"
#include "app/workbench/main_window.h"
#include "core/store/study.h"
#include "tests/support/study_fixture.h"
#include "tests/support/window_parts.h"
#include "widgets/pages/layer_table_view.h"
#include "widgets/pages/rope_page.h"
#include "widgets/pages/spectra_page.h"

using namespace mla::ui;
using mla::test::named;

namespace
{

PlotView* plot(const QWidget& window, const QString& name)
{
    return named<PlotView>(window, name);
}

/// Brings a page to the front as its menu entry does.
void show(const MainWindow& window, const QString& title)
{
    // The dock's own action, which shows and hides it, has the same text.
    for (QAction* action : window.findChild<DockArea*>()->pageActions())
        if (action->text() == title)
            return action->trigger();
    QFAIL("no such page");
}

QSplitter* splitter(const MainWindow& window)
{
    return window.findChild<SpectraPage*>()->findChild<QSplitter*>();
}

QHeaderView* columns(const MainWindow& window)
{
    auto* page = window.findChild<SpectraPage*>();
    return page->findChild<LayerTableView*>()->findChild<QTableView*>()->horizontalHeader();
}

QString front(const MainWindow& window)
{
    return window.findChild<DockArea*>()->frontPage();
}

constexpr PlotZoom zoomedTo{1, 3, 0.25, 0.75};

} // namespace

class SessionTest : public QObject
{
    Q_OBJECT
private slots:
    void init();
    void selectionAndPageComeBack();
    void zoomComesBack();
    void splittersAndColumnsComeBack();
    void eachStudyHasItsOwn();
    void vanishedStudyIsAMessage();
    void changedStudyKeepsWhatIsThere();
    void resetSetsAllBack();

private:
    QString saveStudyAs(const QString& name);
    /// A window with the study open.
    std::unique_ptr<MainWindow> open(const QString& study);
    /// As the program starts without arguments.
    std::unique_ptr<MainWindow> restart();
    std::unique_ptr<QTemporaryDir> m_folder;
    QString m_run; ///< not the one a window starts with
};

void SessionTest::init()
{
    m_folder = std::make_unique<QTemporaryDir>();
    mla::test::isolateSettings(m_folder->filePath("settings"));
    m_run = QStringLiteral("toy/transmla-4+2/converted");
}

QString SessionTest::saveStudyAs(const QString& name)
{
    const QString path = m_folder->filePath(name);
    return mla::saveStudy(path.toStdString(), mla::test::toyStudy()).ok() ? path : QString();
}

std::unique_ptr<MainWindow> SessionTest::open(const QString& study)
{
    auto window = std::make_unique<MainWindow>(coreServices());
    window->show();
    window->openStudy(study);
    [&] { QTRY_VERIFY(window->document().isLoaded()); }();
    return window;
}

std::unique_ptr<MainWindow> SessionTest::restart()
{
    auto window = std::make_unique<MainWindow>(coreServices());
    window->show();
    window->restoreSession();
    [&] { QTRY_VERIFY(window->document().isLoaded()); }();
    return window;
}

void SessionTest::selectionAndPageComeBack()
{
    {
        const auto window = open(saveStudyAs("toy.h5"));
        QVERIFY(window->selection().run() != m_run && window->document().run(m_run));
        window->selection().setRun(m_run);
        window->selection().setLayer(1);
        show(*window, "RoPE residuals");
        QTRY_COMPARE(front(*window), QStringLiteral("rope"));
        QVERIFY(window->close());
    }
    const auto window = restart();
    QCOMPARE(window->selection().run(), m_run);
    QCOMPARE(window->selection().layer(), std::optional(1));
    QTRY_COMPARE(front(*window), QStringLiteral("rope"));
}

void SessionTest::zoomComesBack()
{
    const QString name = "Retained energy";
    {
        const auto window = open(saveStudyAs("toy.h5"));
        QVERIFY(!plot(*window, name)->zoom());
        plot(*window, name)->setZoom(zoomedTo);
        QVERIFY(window->close());
    }
    const auto window = restart();
    const auto zoom = plot(*window, name)->zoom();
    QVERIFY(zoom);
    QCOMPARE(zoom->left, zoomedTo.left);
    QCOMPARE(zoom->right, zoomedTo.right);
    QCOMPARE(zoom->bottom, zoomedTo.bottom);
    QCOMPARE(zoom->top, zoomedTo.top);
    QVERIFY(!plot(*window, "Singular values")->zoom()); // what was whole stays whole
}

void SessionTest::splittersAndColumnsComeBack()
{
    QList<int> sizes;
    {
        const auto window = open(saveStudyAs("toy.h5"));
        show(*window, "Rank spectra");
        QTest::qWait(50);
        const QList<int> before = splitter(*window)->sizes();
        splitter(*window)->setSizes({before[0] + 60, before[1] - 60});
        QTest::qWait(50);
        sizes = splitter(*window)->sizes();
        QVERIFY(sizes != before);
        columns(*window)->resizeSection(0, 143);
        columns(*window)->setSortIndicator(1, Qt::DescendingOrder);
        QVERIFY(window->close());
    }
    const auto window = restart();
    QTRY_COMPARE(splitter(*window)->sizes(), sizes);
    QCOMPARE(columns(*window)->sectionSize(0), 143);
    QCOMPARE(columns(*window)->sortIndicatorSection(), 1);
    QCOMPARE(columns(*window)->sortIndicatorOrder(), Qt::DescendingOrder);
}

void SessionTest::eachStudyHasItsOwn()
{
    const QString first = saveStudyAs("first.h5"), second = saveStudyAs("second.h5");
    const auto window = open(first);
    window->selection().setRun(m_run);
    window->selection().setLayer(1);
    plot(*window, "Retained energy")->setZoom(zoomedTo);
    const auto show = [&](const QString& study) {
        window->openStudy(study);
        QTRY_COMPARE(window->document().path(), study);
    };
    show(second);
    window->selection().setLayer(0);
    plot(*window, "Retained energy")->resetView();
    show(first);
    QCOMPARE(window->selection().run(), m_run);
    QCOMPARE(window->selection().layer(), std::optional(1));
    QVERIFY(plot(*window, "Retained energy")->zoom());
    show(second);
    QCOMPARE(window->selection().layer(), std::optional(0));
    // Opened again although it is open: nothing moves back.
    window->selection().setLayer(1);
    window->openStudy(second);
    QTest::qWait(300);
    QCOMPARE(window->selection().layer(), std::optional(1));
}

void SessionTest::vanishedStudyIsAMessage()
{
    const QString study = saveStudyAs("toy.h5");
    {
        const auto window = open(study);
        QVERIFY(window->close());
    }
    QVERIFY(QFile::remove(study));
    MainWindow window(coreServices());
    window.show();
    window.restoreSession();
    QCOMPARE(window.messages().texts().size(), 1);
    QVERIFY(window.messages().texts().first().contains("toy.h5"));
    QVERIFY(window.document().path().isEmpty());
}

void SessionTest::changedStudyKeepsWhatIsThere()
{
    const QString study = saveStudyAs("toy.h5");
    {
        const auto window = open(study);
        window->selection().setRun(m_run);
        window->selection().setLayer(1);
        QVERIFY(window->close());
    }
    mla::StudyData data = mla::test::toyStudy();
    std::erase_if(data.runs, [](const mla::RunRecord& run) { return run.variant == "converted"; });
    for (mla::RunRecord& run : data.runs) {
        run.parent.clear();
        run.layers.resize(1);
    }
    QVERIFY(mla::saveStudy(study.toStdString(), data).ok());
    const auto window = restart();
    QVERIFY(window->document().run(window->selection().run()));
    QCOMPARE(window->selection().layer(), std::optional<int>());
}

void SessionTest::resetSetsAllBack()
{
    const auto window = open(saveStudyAs("toy.h5"));
    show(*window, "Rank spectra");
    QTest::qWait(50);
    const QList<int> sizes = splitter(*window)->sizes();
    const int width = columns(*window)->sectionSize(0);
    const QSize size = window->size();
    window->resize(1000, 700);
    splitter(*window)->setSizes({100, 900});
    columns(*window)->resizeSection(0, width + 77);
    plot(*window, "Retained energy")->setZoom(zoomedTo);
    mla::test::labelled<QAction>(*window, "Reset layout")->trigger();
    QTRY_COMPARE(window->size(), size);
    show(*window, "Rank spectra");
    QTRY_COMPARE(splitter(*window)->sizes(), sizes);
    QCOMPARE(columns(*window)->sectionSize(0), width);
    QVERIFY(!plot(*window, "Retained energy")->zoom());
}

QTEST_MAIN(SessionTest)
#include "tst_session.moc"
