// SPDX-License-Identifier: GPL-3.0-or-later
// The guide beside the real window: a page for every dock, a line for every key.
#include <algorithm>

#include <QAction>
#include <QDir>
#include <QFile>
#include <QMenu>
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QTest>

#include "app/workbench/dock_area.h"
#include "app/workbench/main_window.h"
#include "tests/support/window_parts.h"

using namespace mla::ui;

class HelpTest : public QObject
{
    Q_OBJECT
private slots:
    void initTestCase();
    void everyDockHasAPage();
    void everyKeyIsListed();
    void everyMenuThatIsNamedExists();

private:
    QTemporaryDir m_folder;
    std::unique_ptr<MainWindow> m_window;
};

void HelpTest::initTestCase()
{
    mla::test::isolateSettings(m_folder.filePath("settings"));
    m_window = std::make_unique<MainWindow>(coreServices());
}

void HelpTest::everyDockHasAPage()
{
    const QStringList docks = m_window->findChild<DockArea*>()->pageIds();
    QVERIFY(docks.size() >= 9);
    for (const QString& id : docks)
        QVERIFY2(QFile::exists(MLA_RESOURCES "/help/" + id + ".md"), qPrintable(id));
}

void HelpTest::everyKeyIsListed()
{
    QFile file(MLA_RESOURCES "/help/keys.md");
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QString page = QString::fromUtf8(file.readAll());
    const QList<QAction*>& pages = m_window->findChild<DockArea*>()->pageActions();
    int listed = 0;
    for (const QAction* action : m_window->findChildren<QAction*>()) {
        const bool ofMenu = std::ranges::any_of(action->associatedObjects(), [](QObject* object) {
            return qobject_cast<QMenu*>(object) != nullptr;
        });
        if (!ofMenu || action->shortcut().isEmpty() || pages.contains(action))
            continue; // pages: Ctrl and their number
        const QString key = action->shortcut().toString(QKeySequence::PortableText);
        QVERIFY2(page.contains("`" + key + "`"), qPrintable(action->text() + ": " + key));
        ++listed;
    }
    QVERIFY(listed >= 14);
    QCOMPARE(pages.first()->shortcut(), QKeySequence(Qt::CTRL | Qt::Key_1));
}

/// "**File › New run…**" is the name of a menu and of one of its actions.
void HelpTest::everyMenuThatIsNamedExists()
{
    QStringList known;
    for (const QAction* action : m_window->findChildren<QAction*>())
        known << QString(action->text()).remove('&');
    static const QRegularExpression path(
        QStringLiteral("\\*\\*(File|Run|View|Help) › ([^*]+)\\*\\*"));
    int named = 0;
    for (const QString& name : QDir(MLA_RESOURCES "/help").entryList({"*.md"})) {
        QFile file(MLA_RESOURCES "/help/" + name);
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QString text = QString::fromUtf8(file.readAll());
        for (auto found = path.globalMatch(text); found.hasNext(); ++named) {
            const QString action = found.next().captured(2);
            QVERIFY2(known.contains(action), qPrintable(name + ": " + action));
        }
    }
    QVERIFY(named >= 4);
}

QTEST_MAIN(HelpTest)
#include "tst_help.moc"
