// SPDX-License-Identifier: GPL-3.0-or-later
// Exported figures have their printed size, their fonts and their own colours, whatever the screen
// is.
#include <QtSvg/QSvgRenderer>
#include <QtTest>
#include <QtWidgets>

#include "widgets/common/theme.h"
#include "widgets/plots/figure_export.h"

using namespace mla;
using namespace mla::ui;

namespace
{

Figure sample()
{
    Figure figure;
    figure.id = "loss";
    figure.title = "Reconstruction loss";
    figure.x.label = "Optimizer step";
    figure.y.label = "Loss";
    figure.y.unit = "nats";
    for (const char* role : {"train", "heldout"}) {
        Series series;
        series.name = role;
        series.role = role;
        for (int i = 0; i < 60; ++i) {
            series.x.push_back(i);
            series.y.push_back(2 * std::exp(-i / 20.0) + (series.role == "train" ? 0 : 0.3));
        }
        figure.series.push_back(series);
    }
    return figure;
}

QByteArray contents(const QString& path)
{
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

QSizeF mediaBox(const QString& path)
{
    static const QRegularExpression box(R"(/MediaBox\s*\[\s*0\s+0\s+([\d.]+)\s+([\d.]+)\s*\])");
    const auto match = box.match(QString::fromLatin1(contents(path)));
    return match.hasMatch() ? QSizeF(match.captured(1).toDouble(), match.captured(2).toDouble())
                            : QSizeF();
}

/// Share of pixels that are clearly not background.
double inked(const QImage& image, const QRect& area)
{
    int dark = 0;
    for (int y = area.top(); y <= area.bottom(); ++y)
        for (int x = area.left(); x <= area.right(); ++x)
            dark += qGray(image.pixel(x, y)) < 128;
    return static_cast<double>(dark) / (area.width() * area.height());
}

int exportInDarkTheme(QApplication& application, const QString& folder)
{
    applyTheme(application, Theme::Dark);
    for (const char* suffix : {"pdf", "svg", "png"})
        if (!exportFigure(sample(), folder + "/loss." + suffix, {}))
            return 1;
    return 0;
}

} // namespace

class TestFigureExport : public QObject
{
    Q_OBJECT

private slots:
    void init() { QVERIFY(m_folder.isValid()); }
    void pagesAreEqualOnEveryScreen();
    void pdfHasItsSizeAndItsFonts();
    void svgIsOutlines();
    void svgIsInMillimetres();
    void pngHasItsPixels();
    void textIsThere();
    void everyKindOfFigureIsDrawn();
    void longCurvesStaySmall();
    void sheetHoldsItsPanels();
    void refusesWhatItCannotWrite();
    void keepsTheOldFileOnFailure();

private:
    [[nodiscard]] QString path(const QString& name) const { return m_folder.filePath(name); }
    QTemporaryDir m_folder;
};

void TestFigureExport::pagesAreEqualOnEveryScreen()
{
    QList<QSizeF> boxes;
    QList<QByteArray> drawings;
    QList<QImage> images;
    for (const char* scale : {"1", "1.25", "2"}) {
        QTemporaryDir folder;
        QProcess child;
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        environment.insert("QT_SCALE_FACTOR", scale);
        environment.insert("QT_QPA_PLATFORM", "offscreen");
        child.setProcessEnvironment(environment);
        child.start(QCoreApplication::applicationFilePath(), {"--export", folder.path()});
        QVERIFY(child.waitForFinished(120'000));
        QCOMPARE(child.exitCode(), 0);
        boxes << mediaBox(folder.filePath("loss.pdf"));
        drawings << contents(folder.filePath("loss.svg"));
        images << QImage(folder.filePath("loss.png"));
    }
    QVERIFY(!boxes[0].isEmpty());
    QVERIFY(!drawings[0].isEmpty());
    for (int i = 1; i < 3; ++i) {
        QCOMPARE(boxes[i], boxes[0]);
        QCOMPARE(drawings[i], drawings[0]);
        QCOMPARE(images[i], images[0]);
    }
    QCOMPARE(images[0].pixelColor(1, 1), QColor(Qt::white));
}

void TestFigureExport::pdfHasItsSizeAndItsFonts()
{
    QVERIFY(exportFigure(sample(), path("a.pdf"), {}));
    // 85 x 60 mm in points, to the printed precision of a point.
    const QSizeF box = mediaBox(path("a.pdf"));
    QVERIFY2(std::abs(box.width() - 85 / 25.4 * 72) < 0.5,
             qPrintable(QString::number(box.width())));
    QVERIFY2(std::abs(box.height() - 60 / 25.4 * 72) < 0.5,
             qPrintable(QString::number(box.height())));
    const QString tool = QStandardPaths::findExecutable("pdffonts");
    if (tool.isEmpty())
        QSKIP("pdffonts is not installed");
    QProcess list;
    list.start(tool, {path("a.pdf")});
    QVERIFY(list.waitForFinished());
    const QStringList lines = QString::fromUtf8(list.readAllStandardOutput()).trimmed().split('\n');
    QVERIFY2(lines.size() > 2, "no font in the file");
    const qsizetype column = lines[0].indexOf("emb");
    for (qsizetype i = 2; i < lines.size(); ++i)
        QVERIFY2(lines[i].mid(column, 3) == "yes", qPrintable(lines[i]));
}

/// What it shows depends on no font of the reader's: every word is drawn.
void TestFigureExport::svgIsOutlines()
{
    ExportOptions options;
    options.dpi = 254; // ten pixels a millimetre
    QVERIFY(exportFigure(sample(), path("words.svg"), options));
    QVERIFY(exportFigure(sample(), path("words.png"), options));
    const QByteArray text = contents(path("words.svg"));
    QVERIFY(!text.contains("<text"));
    QVERIFY(!text.contains("xmlns=\"\"")); // browsers draw what is of SVG's namespace only
    QVERIFY(text.contains("aria-label=\"" + QByteArray::fromStdString(sample().x.label)));
    const QImage expected = QImage(path("words.png")).convertToFormat(QImage::Format_Grayscale8);
    QImage drawn(expected.size(), QImage::Format_RGB32);
    drawn.fill(Qt::white);
    QPainter painter(&drawn);
    QSvgRenderer(text).render(&painter);
    painter.end();
    drawn = drawn.convertToFormat(QImage::Format_Grayscale8);
    double difference = 0;
    for (int y = 0; y < drawn.height(); ++y)
        for (int x = 0; x < drawn.width(); ++x)
            difference += std::abs(qGray(drawn.pixel(x, y)) - qGray(expected.pixel(x, y)));
    difference /= 255.0 * drawn.width() * drawn.height();
    QVERIFY2(difference < 0.02, qPrintable(QString::number(difference)));
}

void TestFigureExport::svgIsInMillimetres()
{
    ExportOptions options;
    options.widthMm = 114.5;
    options.heightMm = 76;
    QVERIFY(exportFigure(sample(), path("a.svg"), options));
    const QByteArray text = contents(path("a.svg"));
    QVERIFY(text.contains("width=\"114.5mm\" height=\"76mm\""));
    QVERIFY(text.contains("Optimizer step"));
    QVERIFY(text.contains("Loss (nats)"));
    QVERIFY(QSvgRenderer(text).isValid());
}

void TestFigureExport::pngHasItsPixels()
{
    ExportOptions options;
    options.dpi = 254; // 10 pixels a millimetre
    QVERIFY(exportFigure(sample(), path("a.png"), options));
    const QImage image(path("a.png"));
    QCOMPARE(image.size(), QSize(850, 600));
    QCOMPARE(image.dotsPerMeterX(), 10000);
    QVERIFY(exportFigure(sample(), path("b.png"), {}));
    QCOMPARE(QImage(path("b.png")).size(), QSize(1004, 709)); // 85 x 60 mm at 300 dpi
}

void TestFigureExport::textIsThere()
{
    QVERIFY(exportFigure(sample(), path("text.png"), {}));
    const QImage image(path("text.png"));
    // The bottom strip holds the x label, the left one the rotated y label.
    QVERIFY(inked(image, QRect(image.width() / 4, image.height() - 45, image.width() / 2, 40)) >
            0.02);
    QVERIFY(inked(image, QRect(15, image.height() / 4, 40, image.height() / 2)) > 0.01);
    QCOMPARE(image.pixelColor(0, 0), QColor(Qt::white));
    Figure bare = sample();
    bare.x.label.clear();
    QVERIFY(exportFigure(bare, path("bare.png"), {}));
    const QImage without(path("bare.png"));
    QVERIFY(without != image);
}

void TestFigureExport::everyKindOfFigureIsDrawn()
{
    Figure bars = sample();
    for (Series& series : bars.series)
        series.kind = Series::Kind::Bars;
    Figure points = sample();
    for (Series& series : points.series)
        series.kind = Series::Kind::Points;
    Figure map;
    map.id = map.title = "map";
    map.heatmap = Heatmap{1, 8, {0, 1, 2, 3, 4, 5, 6, NAN}, "Energy", "%", false};
    Figure empty;
    int index = 0;
    for (const Figure& figure : {bars, points, map, empty}) {
        const QString file = path(QString("kind-%1.png").arg(index++));
        QVERIFY(exportFigure(figure, file, {}));
        QVERIFY(inked(QImage(file), QImage(file).rect()) > 0.001);
    }
}

void TestFigureExport::longCurvesStaySmall()
{
    Figure figure = sample();
    figure.series.resize(1);
    Series& series = figure.series[0];
    series.x.clear();
    series.y.clear();
    for (int i = 0; i < 500'000; ++i) {
        series.x.push_back(i);
        series.y.push_back(std::sin(i * 0.37) + i * 1e-6);
    }
    QVERIFY(exportFigure(figure, path("long.svg"), {}));
    QVERIFY2(QFileInfo(path("long.svg")).size() < 500'000,
             qPrintable(QString::number(QFileInfo(path("long.svg")).size())));
}

/// Three panels in two columns: two rows of 60 mm with 3 mm between, 178 mm wide.
void TestFigureExport::sheetHoldsItsPanels()
{
    Figure second = sample();
    second.id = "second";
    second.caption = "Falls to 0.3.";
    Figure first = sample();
    first.caption = "Falls to 0.1.";
    const Sheet sheet = composedSheet("three", {first, second, first}, 2);
    QCOMPARE(sheet.caption, std::string("(a) Falls to 0.1. (b) Falls to 0.3. (c) Falls to 0.1."));
    ExportOptions options;
    options.widthMm = 178;
    QCOMPARE(sheetSizeMm(sheet, options), QSizeF(178, 123));
    QVERIFY(exportSheet(sheet, path("sheet.pdf"), options));
    constexpr double pt = 72 / 25.4;
    QVERIFY(std::abs(mediaBox(path("sheet.pdf")).width() - 178 * pt) < 0.6);
    QVERIFY(std::abs(mediaBox(path("sheet.pdf")).height() - 123 * pt) < 0.6);
    const QImage image = sheetImage(sheet, options, 10);
    QCOMPARE(image.size(), QSize(1780, 1230));
    for (const QRect& panel :
         {QRect(0, 0, 875, 600), QRect(905, 0, 875, 600), QRect(0, 630, 875, 600)}) {
        QVERIFY(inked(image, panel) > 0.005);
        // The mark stands in the upper left corner: 8 pt bold is about 3 mm high.
        QVERIFY(inked(image, QRect(panel.topLeft(), QSize(60, 45))) > 0.02);
    }
    QCOMPARE(inked(image, QRect(905, 630, 875, 600)), 0.0); // no fourth panel
    QCOMPARE(inked(image, QRect(876, 0, 28, 1230)), 0.0);   // the gap
    ExportOptions high;
    high.heightMm = 600;
    const Status refused = exportSheet(sheet, path("high.pdf"), high);
    QVERIFY(!refused && refused.error().code == ErrorCode::Usage);
    QVERIFY(!exportSheet({}, path("none.pdf"), {}));
}

void TestFigureExport::refusesWhatItCannotWrite()
{
    const Status unknown = exportFigure(sample(), path("a.bmp"), {});
    QVERIFY(!unknown);
    QCOMPARE(unknown.error().code, ErrorCode::Usage);
    ExportOptions tiny;
    tiny.widthMm = 1;
    QVERIFY(!exportFigure(sample(), path("tiny.pdf"), tiny));
    const Status missing = exportFigure(sample(), path("no/such/folder/a.pdf"), {});
    QVERIFY(!missing);
    QCOMPARE(missing.error().code, ErrorCode::ComputeFailed);
    QVERIFY(missing.error().text().find("no/such/folder") != std::string::npos);
}

void TestFigureExport::keepsTheOldFileOnFailure()
{
    QVERIFY(exportFigure(sample(), path("keep.svg"), {}));
    const QByteArray before = contents(path("keep.svg"));
    ExportOptions wrong;
    wrong.fontPt = 0;
    QVERIFY(!exportFigure(sample(), path("keep.svg"), wrong));
    QCOMPARE(contents(path("keep.svg")), before);
    QVERIFY(exportFigure(sample(), path("keep.svg"), {}));
    QCOMPARE(QDir(m_folder.path()).entryList({"keep*"}), QStringList{"keep.svg"});
}

int main(int argc, char** argv)
{
    QApplication application(argc, argv);
    if (argc == 3 && qstrcmp(argv[1], "--export") == 0)
        return exportInDarkTheme(application, QString::fromLocal8Bit(argv[2]));
    TestFigureExport test;
    return QTest::qExec(&test, argc, argv);
}

#include "tst_figure_export.moc"
