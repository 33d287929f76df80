// SPDX-License-Identifier: GPL-3.0-or-later
// Ctrl+K in the real window: find, move, run, close.
#include <QAction>
#include <QDockWidget>
#include <QLabel>
#include <QLineEdit>
#include <QStatusBar>
#include <QTemporaryDir>
#include <QTest>
#include <QTreeView>

#include "app/workbench/main_window.h"
#include "tests/support/window_parts.h"
#include "widgets/common/command_palette.h"
#include "widgets/pages/rope_page.h"

using namespace mla::ui;
using mla::test::named;

class CommandPaletteTest : public QObject
{
    Q_OBJECT
private slots:
    void init();
    void listsActionsAndPages();
    void enterRaisesThePage();
    void escapeClosesAndGivesTheFocusBack();
    void arrowsMove();
    void disabledActionsAreLeftOut();
    void clickElsewhereCloses();

private:
    [[nodiscard]] QStringList names() const;
    std::unique_ptr<QTemporaryDir> m_folder;
    std::unique_ptr<MainWindow> m_window;
    CommandPalette* m_palette = nullptr;
    QLineEdit* m_line = nullptr;
    QTreeView* m_list = nullptr;
};

void CommandPaletteTest::init()
{
    m_window.reset();
    m_folder = std::make_unique<QTemporaryDir>();
    mla::test::isolateSettings(m_folder->filePath("settings"));
    m_window = std::make_unique<MainWindow>(coreServices());
    m_window->show();
    m_window->activateWindow();
    QVERIFY(QTest::qWaitForWindowActive(m_window.get()));
    QTest::keyClick(m_window.get(), Qt::Key_K, Qt::ControlModifier);
    m_palette = m_window->findChild<CommandPalette*>();
    QVERIFY(m_palette && m_palette->isVisible());
    m_line = named<QLineEdit>(*m_palette, "Command");
    m_list = named<QTreeView>(*m_palette, "Commands found");
    QVERIFY(m_line && m_list);
    QTRY_VERIFY(m_line->hasFocus());
}

QStringList CommandPaletteTest::names() const
{
    QStringList all;
    for (int row = 0; row < m_list->model()->rowCount(); ++row)
        all << m_list->model()->index(row, CommandListModel::Name).data().toString();
    return all;
}

void CommandPaletteTest::listsActionsAndPages()
{
    for (const char* name : {"New run…", "Open study…", "Study", "Refinement", "RoPE residuals",
                             "Acceptance", "Report", "Reset layout", "Dark"})
        QVERIFY2(names().contains(QString::fromUtf8(name)), name);
    QVERIFY(!names().contains(QStringLiteral("Find a command")));
    const int study = int(names().indexOf("Study"));
    QCOMPARE(m_list->model()->index(study, CommandListModel::Shortcut).data().toString(),
             QStringLiteral("Ctrl+1"));
    QVERIFY(m_window->rect().contains(m_palette->geometry()));
}

void CommandPaletteTest::enterRaisesThePage()
{
    auto* page = m_window->findChild<RopePage*>();
    QVERIFY(page->visibleRegion().isEmpty()); // behind another tab
    QTest::keyClicks(m_line, "rop");
    QCOMPARE(names().first(), QStringLiteral("RoPE residuals"));
    QTest::keyClick(m_line, Qt::Key_Return);
    QVERIFY(!m_palette->isVisible());
    QTRY_VERIFY(!page->visibleRegion().isEmpty());
}

void CommandPaletteTest::escapeClosesAndGivesTheFocusBack()
{
    QTest::keyClick(m_line, Qt::Key_Escape);
    QVERIFY(!m_palette->isVisible());
    auto* tree = m_window->findChildren<QTreeView*>().first();
    for (QTreeView* each : m_window->findChildren<QTreeView*>())
        if (each->isVisible())
            tree = each;
    tree->setFocus();
    QWidget* before = QApplication::focusWidget();
    QVERIFY(before);
    QTest::keyClick(m_window.get(), Qt::Key_K, Qt::ControlModifier);
    QVERIFY(m_palette->isVisible());
    QTest::keyClicks(m_line, "zzz");
    QCOMPARE(m_list->model()->rowCount(), 0);
    QTest::keyClick(m_line, Qt::Key_Return); // nothing to run: stays
    QTest::keyClick(m_line, Qt::Key_Down);
    QVERIFY(m_palette->isVisible());
    QTest::keyClick(m_line, Qt::Key_Escape);
    QCOMPARE(QApplication::focusWidget(), before);
    QTest::keyClick(m_window.get(), Qt::Key_K, Qt::ControlModifier);
    QCOMPARE(m_line->text(), QString()); // each time from the start
}

void CommandPaletteTest::arrowsMove()
{
    QCOMPARE(m_list->currentIndex().row(), 0);
    QTest::keyClick(m_line, Qt::Key_Up);
    QCOMPARE(m_list->currentIndex().row(), 0);
    QTest::keyClick(m_line, Qt::Key_Down);
    QTest::keyClick(m_line, Qt::Key_Down);
    QCOMPARE(m_list->currentIndex().row(), 2);
    QTest::keyClick(m_line, Qt::Key_Up);
    QCOMPARE(m_list->currentIndex().row(), 1);
    for (int i = 0; i < 20; ++i)
        QTest::keyClick(m_line, Qt::Key_PageDown);
    QCOMPARE(m_list->currentIndex().row(), m_list->model()->rowCount() - 1);
    QTest::keyClicks(m_line, "re"); // another list: from its first row again
    QCOMPARE(m_list->currentIndex().row(), 0);
}

void CommandPaletteTest::disabledActionsAreLeftOut()
{
    QVERIFY(!names().contains(QStringLiteral("Close study")));
    QVERIFY(!names().contains(QStringLiteral("Export report…")));
    QVERIFY(!names().contains(QStringLiteral("Cancel running job")));
}

void CommandPaletteTest::clickElsewhereCloses()
{
    QTest::mouseClick(m_line, Qt::LeftButton);
    QVERIFY(m_palette->isVisible());
    auto* label = m_window->statusBar()->findChild<QLabel*>(); // takes no focus
    QVERIFY(label && label->isVisible());
    QTest::mouseClick(label, Qt::LeftButton);
    QVERIFY(!m_palette->isVisible());
}

QTEST_MAIN(CommandPaletteTest)
#include "tst_command_palette.moc"
