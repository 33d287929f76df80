// SPDX-License-Identifier: GPL-3.0-or-later
// What a report writes, and the page that asks for it.
#include <cmath>
#include <set>

#include <QAbstractItemModelTester>
#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QGuiApplication>
#include <QLabel>
#include <QListView>
#include <QPushButton>
#include <QRegularExpression>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTemporaryDir>
#include <QTest>
#include <nlohmann/json.hpp>

#include "tests/support/study_fixture.h"
#include "tests/support/window_parts.h"
#include "widgets/common/plain_text.h"
#include "widgets/pages/report_page.h"
#include "widgets/pages/sheet_preview.h"
#include "widgets/plots/figure_batch.h"

using namespace mla;
using namespace mla::ui;
using mla::test::button;
using mla::test::checkBox;
using mla::test::named;

namespace
{

Figure line(const std::string& id, double value)
{
    Figure figure;
    figure.id = id;
    figure.title = "Title of " + id;
    figure.caption = "Caption of " + id + ".";
    figure.x.label = "Step";
    figure.y.label = "Loss";
    figure.series = {
        {"train", "train", Series::Kind::Line, {0, 1}, {value, value / 2}, {}, {}, {}}};
    return figure;
}

ReportContent smallContent()
{
    ReportContent content;
    content.study = "s.h5";
    content.sheets = {sheetOf(line("a", 0.1)), sheetOf(line("b", 3)),
                      composedSheet("sheet-1", {line("a", 0.1), line("b", 3)}, 2)};
    content.tables = {{"variants", "Variants", {{"Draft", "", 0}}, {{std::string("x")}}}};
    return content;
}

nlohmann::json manifestOf(const QString& folder)
{
    QFile file(folder + "/manifest.json");
    return file.open(QIODevice::ReadOnly)
               ? nlohmann::json::parse(file.readAll().toStdString(), nullptr, false)
               : nlohmann::json();
}

} // namespace

class ReportTest : public QObject
{
    Q_OBJECT
private slots:
    void init();
    void writesFiguresTwinsTablesAndManifest();
    void everyNumberOfAFigureIsInItsTwin();
    void formatsAreChecked();
    void failureNamesTheFile();
    void batchTellsItsProgress();
    void listComposesAndKeepsMarks();
    void pageShowsComposesAndAsks();
    void optionsAreKept();

private:
    std::unique_ptr<QTemporaryDir> m_folder;
};

void ReportTest::init()
{
    m_folder = std::make_unique<QTemporaryDir>();
    test::isolateSettings(m_folder->filePath("settings"));
}

void ReportTest::writesFiguresTwinsTablesAndManifest()
{
    ReportOptions options;
    options.directory = m_folder->filePath("new/report");
    options.formats = {"svg", "png"};
    options.tableFormats = {"csv", "latex"};
    options.figure.dpi = 60;
    auto writer = ReportWriter::create(smallContent(), options);
    QVERIFY(writer.ok());
    // 3 pictures twice, 2 twins and 1 table twice, the manifest.
    QCOMPARE(writer->total(), 13);
    while (!writer->finished())
        QVERIFY(writer->next());
    QStringList found = QDir(options.directory).entryList(QDir::Files, QDir::Name);
    QCOMPARE(found, QStringList({"a.csv", "a.png", "a.svg", "a.tex", "b.csv", "b.png", "b.svg",
                                 "b.tex", "manifest.json", "sheet-1.png", "sheet-1.svg",
                                 "variants.csv", "variants.tex"}));
    const nlohmann::json manifest = manifestOf(options.directory);
    QCOMPARE(manifest["figures"].size(), std::size_t(3));
    QVERIFY(manifest["figures"][0]["files"] == nlohmann::json({"a.svg", "a.png"}));
    QVERIFY(manifest["figures"][2]["panels"] == nlohmann::json({"a", "b"}));
    QVERIFY(manifest["figures"][2]["height_mm"] == nlohmann::json(60.0));
    QVERIFY(manifest["tables"][0]["figure"] == nlohmann::json("a"));
    QVERIFY(manifest["tables"][2]["files"] == nlohmann::json({"variants.csv", "variants.tex"}));
}

void ReportTest::everyNumberOfAFigureIsInItsTwin()
{
    for (const Figure& figure : allFigures(test::toyStudy())) {
        std::set<double> numbers;
        static const QRegularExpression between("[,\\r\\n]");
        for (const QString& cell :
             QString::fromStdString(toCsv(figureTable(figure))).split(between)) {
            bool number = false;
            const double value = cell.toDouble(&number);
            if (number)
                numbers.insert(value);
        }
        const auto holds = [&numbers](double value) {
            return !std::isfinite(value) || numbers.contains(value);
        };
        for (const Series& series : figure.series)
            for (const double value : series.y)
                QVERIFY2(holds(value), (figure.id + " lacks " + std::to_string(value)).c_str());
        if (figure.heatmap)
            for (const double value : figure.heatmap->values)
                QVERIFY2(holds(value), (figure.id + " lacks " + std::to_string(value)).c_str());
    }
}

void ReportTest::formatsAreChecked()
{
    ReportOptions options;
    QVERIFY(!ReportWriter::create(smallContent(), options));
    options.formats = {"gif"};
    const auto figure = ReportWriter::create(smallContent(), options);
    QVERIFY(!figure && figure.error().text().find("gif") != std::string::npos);
    options.formats = {"pdf"};
    options.tableFormats = {"xls"};
    const auto table = ReportWriter::create(smallContent(), options);
    QVERIFY(!table && table.error().text().find("xls") != std::string::npos);
}

void ReportTest::failureNamesTheFile()
{
    QFile blocker(m_folder->filePath("file"));
    QVERIFY(blocker.open(QIODevice::WriteOnly));
    ReportOptions options;
    options.tableFormats = {"csv"};
    options.directory = blocker.fileName();
    auto writer = ReportWriter::create(smallContent(), options);
    QVERIFY(writer.ok());
    const Status failed = writer->next();
    QVERIFY(!failed && failed.error().text().find("file") != std::string::npos);
    QVERIFY(writer->written().isEmpty());
}

void ReportTest::batchTellsItsProgress()
{
    FigureBatch batch;
    QSignalSpy progressed(&batch, &FigureBatch::progressed),
        finished(&batch, &FigureBatch::finished);
    ReportOptions options;
    options.directory = m_folder->filePath("r");
    options.tableFormats = {"md"};
    batch.start(smallContent(), options);
    QVERIFY(batch.busy());
    QTRY_COMPARE(finished.size(), 1);
    QCOMPARE(progressed.size(), 3);
    QVERIFY(!batch.busy());
    QCOMPARE(finished.first().first().toStringList().size(), 4);
}

void ReportTest::listComposesAndKeepsMarks()
{
    ReportListModel list;
    QAbstractItemModelTester tester(&list, QAbstractItemModelTester::FailureReportingMode::QtTest);
    list.setFigures({line("a", 1), line("b", 2), line("c", 3)});
    QCOMPARE(list.checkedSheets().size(), std::size_t(3));
    QVERIFY(list.setData(list.index(1), Qt::Unchecked, Qt::CheckStateRole));
    QCOMPARE(list.compose({0}, 2), -1);
    QCOMPARE(list.compose({2, 0}, 2), 3); // in the list's order
    QCOMPARE(list.sheet(3)->panels[0].id, std::string("a"));
    QCOMPARE(list.sheet(3)->panels[1].id, std::string("c"));
    QCOMPARE(list.compose({3, 1}, 2), -1); // a sheet is no panel of another
    // The study was read again: "c" is gone.
    list.setFigures({line("b", 5), line("a", 4)});
    QCOMPARE(list.rowCount({}), 3);
    QCOMPARE(list.data(list.index(0), Qt::CheckStateRole).toInt(), int(Qt::Unchecked));
    QCOMPARE(list.sheet(2)->panels.size(), std::size_t(1));
    QCOMPARE(list.sheet(2)->panels[0].series[0].y[0], 4.0);
    list.removeSheet(0); // a figure stays
    QCOMPARE(list.rowCount({}), 3);
    list.removeSheet(2);
    QCOMPARE(list.rowCount({}), 2);
    list.setAllChecked(false);
    QVERIFY(list.checkedSheets().empty());
    QVERIFY(!list.sheet(-1) && !list.sheet(2));
}

void ReportTest::pageShowsComposesAndAsks()
{
    StudyDocument document([](const auto&) { return LoadedStudy{test::toyStudy(), {}}; });
    SelectionModel selection;
    ReportPage page(document, selection);
    page.resize(1100, 800);
    page.show();
    QVERIFY(!button(page, "Export report…")->isVisible()); // the empty state says what to do
    document.open("toy.h5");
    QTRY_VERIFY(document.isLoaded());
    const std::vector<Figure> figures = allFigures(document.study());
    auto* view = named<QListView>(page, "Figures and sheets of the report");
    QTRY_COMPARE(view->model()->rowCount(), static_cast<int>(figures.size()));
    auto* preview = page.findChild<SheetPreview*>();
    auto* caption = named<QLabel>(page, "Caption");
    QTRY_VERIFY(!preview->image().isNull());
    QCOMPARE(caption->text(), text(figures.front().caption));
    QVERIFY(!button(page, "Compose sheet")->isEnabled());

    view->setFocus();
    QTest::keyClick(view, Qt::Key_Down, Qt::ShiftModifier);
    QVERIFY(button(page, "Compose sheet")->isEnabled());
    QVERIFY(caption->text().startsWith("(a) "));
    QTest::mouseClick(button(page, "Compose sheet"), Qt::LeftButton);
    QCOMPARE(view->model()->rowCount(), static_cast<int>(figures.size()) + 1);
    QCOMPARE(view->currentIndex().row(), static_cast<int>(figures.size()));
    QVERIFY(button(page, "Remove sheet")->isEnabled());
    QTest::mouseClick(button(page, "Copy caption"), Qt::LeftButton);
    QCOMPARE(QGuiApplication::clipboard()->text(), caption->text());

    QTest::mouseClick(button(page, "Check none"), Qt::LeftButton);
    QVERIFY(page.content().sheets.empty());
    QTest::keyClick(view, Qt::Key_Space); // checks the sheet
    QCOMPARE(page.content().sheets.size(), std::size_t(1));
    QCOMPARE(page.content().sheets.front().panels.size(), std::size_t(2));
    QVERIFY(!page.content().tables.empty());
    QSignalSpy asked(&page, &ReportPage::exportRequested);
    QTest::mouseClick(button(page, "Export report…"), Qt::LeftButton);
    QCOMPARE(asked.size(), 1);
    for (const char* format : {"PDF", "SVG", "PNG", "CSV", "LaTeX", "MD"})
        checkBox(page, format)->setChecked(false);
    QVERIFY(!button(page, "Export report…")->isEnabled());
}

void ReportTest::optionsAreKept()
{
    StudyDocument document([](const auto&) { return LoadedStudy{test::toyStudy(), {}}; });
    SelectionModel selection;
    {
        ReportPage page(document, selection);
        named<QDoubleSpinBox>(page, "Width of a figure")->setValue(178);
        named<QDoubleSpinBox>(page, "Height of a figure")->setValue(90);
        checkBox(page, "PNG")->setChecked(false);
        QVERIFY(named<QComboBox>(page, "Printed size")->currentText().startsWith("Two columns"));
    }
    const ReportPage page(document, selection);
    QCOMPARE(page.options().figure.widthMm, 178.0);
    QCOMPARE(page.options().formats, QStringList({"pdf", "svg"}));
}

QTEST_MAIN(ReportTest)
#include "tst_report.moc"
