// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/figure_export.h"

#include <cmath>

#include <QBuffer>
#include <QFileInfo>
#include <QImage>
#include <QPageSize>
#include <QPdfWriter>
#include <QSaveFile>
#include <QSvgGenerator>

#include "widgets/common/fonts.h"
#include "widgets/plots/figure_painter.h"

namespace mla::ui
{
namespace
{

constexpr double kMmPerInch = 25.4;
constexpr double kPtPerInch = 72;
/// Drawing units in a point: fine enough that rounding to whole units is invisible in print.
constexpr double kUnitsPerPt = 4;
constexpr int kSvgUnitsPerMm = 100;

std::string utf8(const QString& text)
{
    return text.toStdString();
}

QSize drawingSize(const ExportOptions& options)
{
    const double unitsPerMm = kUnitsPerPt * kPtPerInch / kMmPerInch;
    return {static_cast<int>(std::lround(options.widthMm * unitsPerMm)),
            static_cast<int>(std::lround(options.heightMm * unitsPerMm))};
}

void paint(QPaintDevice* device, const Figure& figure, const ExportOptions& options, bool vector)
{
    PaintStyle style;
    style.theme = exportPlotTheme();
    style.font = QFont(sansFamily());
    style.font.setPixelSize(static_cast<int>(std::lround(options.fontPt * kUnitsPerPt)));
    // Hinting fits glyphs to the pixels of a screen; the printed size must not depend on one.
    style.font.setHintingPreference(QFont::PreferNoHinting);
    style.unitsPerPt = kUnitsPerPt;
    style.linePt = options.linePt;
    style.showTitle = options.showTitle;
    const QSize size = drawingSize(options);

    QCustomPlot plot;
    plot.setViewport(QRect(QPoint(0, 0), size));
    FigurePainter painter(&plot);
    painter.build(figure, style);
    painter.updateDetail();
    painter.layoutFor(size);

    QCPPainter canvas;
    if (!canvas.begin(device))
        return;
    canvas.setRenderHint(QPainter::Antialiasing);
    canvas.setRenderHint(QPainter::TextAntialiasing);
    canvas.setMode(QCPPainter::pmVectorized, vector);
    canvas.setMode(QCPPainter::pmNoCaching);
    canvas.setMode(QCPPainter::pmNonCosmetic);
    canvas.setWindow(QRect(QPoint(0, 0), size));
    plot.toPainter(&canvas, size.width(), size.height());
    canvas.end();
}

QByteArray pdf(const Figure& figure, const ExportOptions& options)
{
    QBuffer buffer;
    buffer.open(QIODevice::WriteOnly);
    {
        QPdfWriter writer(&buffer);
        writer.setResolution(static_cast<int>(kUnitsPerPt * kPtPerInch));
        writer.setPageSize(QPageSize(QSizeF(options.widthMm, options.heightMm),
                                     QPageSize::Millimeter, {}, QPageSize::ExactMatch));
        writer.setPageMargins(QMarginsF());
        writer.setTitle(QString::fromStdString(figure.title));
        writer.setCreator(QStringLiteral("MLA Draft Workbench"));
        paint(&writer, figure, options, true);
    }
    return buffer.data();
}

QByteArray svg(const Figure& figure, const ExportOptions& options)
{
    QBuffer buffer;
    buffer.open(QIODevice::WriteOnly);
    {
        QSvgGenerator generator;
        generator.setOutputDevice(&buffer);
        generator.setResolution(static_cast<int>(std::lround(kSvgUnitsPerMm * kMmPerInch)));
        const QSize size(static_cast<int>(std::lround(options.widthMm * kSvgUnitsPerMm)),
                         static_cast<int>(std::lround(options.heightMm * kSvgUnitsPerMm)));
        generator.setSize(size);
        generator.setViewBox(QRect(QPoint(0, 0), size));
        generator.setTitle(QString::fromStdString(figure.title));
        generator.setDescription(QString::fromStdString(figure.caption));
        paint(&generator, figure, options, true);
    }
    // A reader without our font falls back to one of the same kind.
    const QByteArray family = sansFamily().toUtf8();
    QByteArray text = buffer.data();
    return text.replace("font-family=\"" + family + "\"",
                        "font-family=\"" + family + ", sans-serif\"");
}

QByteArray png(const Figure& figure, const ExportOptions& options)
{
    const double pixelsPerMm = options.dpi / kMmPerInch;
    QImage image(static_cast<int>(std::lround(options.widthMm * pixelsPerMm)),
                 static_cast<int>(std::lround(options.heightMm * pixelsPerMm)),
                 QImage::Format_RGB32);
    image.setDotsPerMeterX(static_cast<int>(std::lround(pixelsPerMm * 1000)));
    image.setDotsPerMeterY(static_cast<int>(std::lround(pixelsPerMm * 1000)));
    image.fill(Qt::white);
    paint(&image, figure, options, false);
    QBuffer buffer;
    buffer.open(QIODevice::WriteOnly);
    image.save(&buffer, "PNG");
    return buffer.data();
}

Status checkOptions(const ExportOptions& options)
{
    const auto within = [](double value, double low, double high) {
        return std::isfinite(value) && value >= low && value <= high;
    };
    if (!within(options.widthMm, 20, 1000) || !within(options.heightMm, 20, 1000))
        return usageError("figure size must be 20 to 1000 mm a side");
    if (!within(options.fontPt, 3, 72) || !within(options.linePt, 0.1, 20))
        return usageError("font size must be 3 to 72 pt and line width 0.1 to 20 pt");
    if (options.dpi < 50 || options.dpi > 1200)
        return usageError("resolution must be 50 to 1200 dpi");
    return {};
}

} // namespace

Status exportFigure(const Figure& figure, const QString& path, const ExportOptions& options)
{
    MLA_CHECK(checkOptions(options));
    loadBundledFonts();
    const QString suffix = QFileInfo(path).suffix().toLower();
    QByteArray bytes;
    if (suffix == QLatin1String("pdf"))
        bytes = pdf(figure, options);
    else if (suffix == QLatin1String("svg"))
        bytes = svg(figure, options);
    else if (suffix == QLatin1String("png"))
        bytes = png(figure, options);
    else
        return usageError(utf8(path) + ": unknown figure format \"" + utf8(suffix) + "\"",
                          "use a name that ends in .pdf, .svg or .png");
    QSaveFile file(path);
    if (bytes.isEmpty() || !file.open(QIODevice::WriteOnly) || file.write(bytes) != bytes.size() ||
        !file.commit())
        return computeFailed("cannot write the figure: " + utf8(file.errorString()), utf8(path));
    return {};
}

} // namespace mla::ui
