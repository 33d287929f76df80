// SPDX-License-Identifier: GPL-3.0-or-later
#include <QAbstractItemModelTester>
#include <QTemporaryDir>
#include <QTest>

#include "tests/support/small_guide.h"
#include "widgets/help/help_page_model.h"

using namespace mla::ui;

namespace
{

QStringList titles(const QAbstractItemModel& model)
{
    QStringList all;
    for (int row = 0; row < model.rowCount(); ++row)
        all << model.index(row, 0).data().toString();
    return all;
}

} // namespace

class HelpPageModelTest : public QObject
{
    Q_OBJECT
private slots:
    void initTestCase() { QVERIFY(mla::test::writeSmallGuide(m_folder.path())); }
    void pagesStandInTheOrderOfTheIndex();
    void searchFindsTextOfABody();
    void thereMayBeNoPages();

private:
    QTemporaryDir m_folder;
};

void HelpPageModelTest::pagesStandInTheOrderOfTheIndex()
{
    HelpPageModel model;
    QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
    QCOMPARE(model.rowCount({}), 0);
    model.setPages(readHelpPages(m_folder.path()));
    QCOMPARE(titles(model), (QStringList{"Where do I start?", "Why do wheels turn?",
                                         "How do doors open?", "attic"}));
    QCOMPARE(model.index(1).data(HelpPageModel::idRole).toString(), QStringLiteral("wheels"));
    QVERIFY(model.hasPage("attic"));
    QVERIFY(!model.hasPage("cellar"));
    QVERIFY(!model.indexOf("cellar").isValid());
    model.setPages({});
    QCOMPARE(model.rowCount({}), 0);
}

void HelpPageModelTest::searchFindsTextOfABody()
{
    HelpPageModel model;
    QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
    model.setPages(readHelpPages(m_folder.path()));
    model.setWords("HINGES");
    QCOMPARE(titles(model), (QStringList{"Why do wheels turn?", "How do doors open?"}));
    model.setWords("doors"); // a question before an answer; the index names them too
    QCOMPARE(titles(model),
             (QStringList{"How do doors open?", "Where do I start?", "Why do wheels turn?"}));
    model.setWords("axle hinges");
    QCOMPARE(titles(model), QStringList{"Why do wheels turn?"});
    QVERIFY(!model.indexOf("doors").isValid());
    QVERIFY(model.hasPage("doors"));
    model.setWords("doors.md"); // an address is no text
    QCOMPARE(model.rowCount({}), 0);
    model.setWords("  ");
    QCOMPARE(model.rowCount({}), 4);
}

void HelpPageModelTest::thereMayBeNoPages()
{
    QVERIFY(readHelpPages({}).empty()); // not the current folder
    QVERIFY(readHelpPages(m_folder.filePath("nowhere")).empty());
    QCOMPARE(linkedHelpPages("[a](b.md) [c](https://d.org/e.md) [f](b.md) [g](h.md#i)"),
             QStringList{"b"});
}

QTEST_MAIN(HelpPageModelTest)
#include "tst_help_page_model.moc"
