// SPDX-License-Identifier: GPL-3.0-or-later
#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QListWidget>
#include <QTableView>
#include <QTest>

#include "tests/support/study_fixture.h"
#include "tests/support/window_parts.h"
#include "widgets/common/plain_text.h"
#include "widgets/pages/compare_page.h"

using namespace mla;
using namespace mla::ui;
using mla::test::checkBox;
using mla::test::named;

class ComparePageTest : public QObject
{
    Q_OBJECT
private slots:
    void emptyStateUntilTwoRuns();
    void showsCurvesDifferencesAndSettings();
    void layerIsFollowed();
};

void ComparePageTest::emptyStateUntilTwoRuns()
{
    StudyDocument document([](const auto&) {
        StudyData study = test::toyStudy();
        study.runs.resize(1);
        return LoadedStudy{study, {}};
    });
    SelectionModel selection;
    ComparePage page(document, selection);
    page.show();
    QVERIFY(!named<QListWidget>(page, "Runs to compare")->isVisible());
    document.open("one.h5");
    QTRY_VERIFY(document.isLoaded());
    QVERIFY(!named<QListWidget>(page, "Runs to compare")->isVisible());
}

void ComparePageTest::showsCurvesDifferencesAndSettings()
{
    StudyDocument document([](const auto&) { return LoadedStudy{test::toyStudy(), {}}; });
    SelectionModel selection;
    ComparePage page(document, selection);
    page.show();
    document.open("toy.h5");
    QTRY_VERIFY(document.isLoaded());
    auto* runs = named<QListWidget>(page, "Runs to compare");
    const auto count = static_cast<int>(document.study().runs.size());
    QTRY_COMPARE(runs->count(), count);
    QVERIFY(runs->isVisible());
    QCOMPARE(page.compared().size(), count); // all of one converter
    QCOMPARE(page.plots().first()->figure().series.size(), document.study().runs.size());
    const auto* table = named<QTableView>(page, "Comparison")->model();
    QCOMPARE(table->columnCount(), 2 * count); // name, then value and difference each but the first
    auto* base = named<QComboBox>(page, "Compared with");
    base->setCurrentIndex(1);
    QVERIFY(base->currentText().endsWith(table->headerData(1, Qt::Horizontal).toString()));

    runs->item(0)->setCheckState(Qt::Unchecked);
    QCOMPARE(page.compared().size(), count - 1);
    QCOMPARE(base->count(), count - 1);
    auto* choice = named<QComboBox>(page, "Table");
    choice->setCurrentIndex(2);
    const int differing = table->rowCount();
    QVERIFY(differing > 0);
    checkBox(page, "equal ones too")->setChecked(true);
    QVERIFY(table->rowCount() > differing);
    page.setCompared({});
    QVERIFY(page.plots().first()->isEmpty());
    bool told = false;
    for (const QLabel* label : page.findChildren<QLabel*>())
        told |= label->isVisible() && label->text() == "Check two runs or more.";
    QVERIFY(told);
}

void ComparePageTest::layerIsFollowed()
{
    StudyDocument document([](const auto&) { return LoadedStudy{test::toyStudy(), {}}; });
    SelectionModel selection;
    ComparePage page(document, selection);
    document.open("toy.h5");
    QTRY_VERIFY(document.isLoaded());
    selection.setLayer(1);
    QCOMPARE(page.plots().first()->selectedLayer(), std::optional<int>(1));
}

QTEST_MAIN(ComparePageTest)
#include "tst_compare_page.moc"
