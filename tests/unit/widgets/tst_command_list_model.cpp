// SPDX-License-Identifier: GPL-3.0-or-later
#include <QAbstractItemModelTester>
#include <QMenu>
#include <QMenuBar>
#include <QTest>

#include "widgets/models/command_list_model.h"

using namespace mla::ui;

namespace
{

QStringList column(const CommandListModel& model, int column)
{
    QStringList texts;
    for (int row = 0; row < model.rowCount({}); ++row)
        texts << model.data(model.index(row, column), Qt::DisplayRole).toString();
    return texts;
}

} // namespace

class CommandListModelTest : public QObject
{
    Q_OBJECT
private slots:
    void init();
    void holdsWhatIsEnabled();
    void filtersAndRanks();
    void survivesAnActionThatGoes();

private:
    std::unique_ptr<QMenuBar> m_menus;
    QAction* m_export = nullptr;
};

void CommandListModelTest::init()
{
    m_menus = std::make_unique<QMenuBar>();
    QMenu* file = m_menus->addMenu("&File");
    file->addAction("&Open study…")->setShortcut(Qt::CTRL | Qt::Key_O);
    m_export = file->addAction("&Export report…");
    file->addSeparator();
    file->addAction("Close")->setEnabled(false);
    QMenu* view = m_menus->addMenu("&View");
    view->addAction(m_export); // once more, as menus do
    QMenu* theme = view->addMenu("&Theme");
    theme->addAction("Light && bright");
    QMenu* empty = view->addMenu("Recent");
    empty->addAction("gone.h5");
    empty->setEnabled(false);
}

void CommandListModelTest::holdsWhatIsEnabled()
{
    CommandListModel model;
    QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
    model.setCommands(enabledCommands(*m_menus));
    QCOMPARE(column(model, CommandListModel::Name),
             (QStringList{"Open study…", "Export report…", "Light & bright"}));
    QCOMPARE(column(model, CommandListModel::Place), (QStringList{"File", "File", "View › Theme"}));
    QCOMPARE(column(model, CommandListModel::Shortcut).first(),
             QKeySequence(Qt::CTRL | Qt::Key_O).toString(QKeySequence::NativeText));
    QCOMPARE(model.data(model.index(2, 0), Qt::AccessibleTextRole).toString(),
             QStringLiteral("Light & bright, View › Theme"));
}

void CommandListModelTest::filtersAndRanks()
{
    CommandListModel model;
    QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
    model.setCommands(enabledCommands(*m_menus));
    model.setFilter("e"); // a word begins with it before a word that holds it
    QCOMPARE(column(model, CommandListModel::Name), (QStringList{"Export report…", "Open study…"}));
    QCOMPARE(model.actionAt(0), m_export);
    model.setFilter("nothing has this");
    QCOMPARE(model.rowCount({}), 0);
    QCOMPARE(model.actionAt(0), nullptr);
    model.setFilter("");
    QCOMPARE(model.rowCount({}), 3);
}

void CommandListModelTest::survivesAnActionThatGoes()
{
    CommandListModel model;
    model.setCommands(enabledCommands(*m_menus));
    m_menus.reset();
    QCOMPARE(model.rowCount({}), 3);
    QCOMPARE(model.actionAt(0), nullptr);
    QCOMPARE(model.data(model.index(0, 0), Qt::DisplayRole).toString(),
             QStringLiteral("Open study…"));
    QCOMPARE(model.actionAt(-1), nullptr);
}

QTEST_MAIN(CommandListModelTest)
#include "tst_command_list_model.moc"
