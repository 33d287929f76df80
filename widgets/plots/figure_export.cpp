// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/figure_export.h"

#include <algorithm>
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
#include "widgets/plots/svg_outlines.h"

namespace mla::ui
{
namespace
{

constexpr double kMmPerInch = 25.4;
constexpr double kPtPerInch = 72;
/// Drawing units in a point: fine enough that rounding to whole units is invisible in print.
constexpr double kUnitsPerPt = 4;
constexpr int kSvgUnitsPerMm = 100;
constexpr double kPanelGapMm = 3;
constexpr double kLargestMm = 1000; ///< a side

std::string utf8(const QString& text)
{
    return text.toStdString();
}

/// "(a)" to "(z)", then "(27)".
std::string panelMark(int index)
{
    constexpr int letters = 26;
    std::string mark = "(";
    if (index < letters)
        mark += static_cast<char>('a' + index);
    else
        mark += std::to_string(index + 1);
    return mark += ')';
}

int unitsOf(double mm)
{
    return static_cast<int>(std::lround(mm * kUnitsPerPt * kPtPerInch / kMmPerInch));
}

int rowsOf(const Sheet& sheet)
{
    const int columns = std::max(1, sheet.columns);
    return (static_cast<int>(sheet.panels.size()) + columns - 1) / columns;
}

PaintStyle styleFor(const ExportOptions& options)
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
    return style;
}

/// Draws at the origin of `canvas`.
void paintFigure(QCPPainter& canvas, const Figure& figure, const PaintStyle& style, QSize size)
{
    QCustomPlot plot;
    plot.setViewport(QRect(QPoint(0, 0), size));
    FigurePainter painter(&plot);
    painter.build(figure, style);
    painter.updateDetail();
    painter.layoutFor(size);
    plot.toPainter(&canvas, size.width(), size.height());
}

/// The mark of a panel and the panel below it; a sheet of one has no mark.
void paintPanels(QCPPainter& canvas, const Sheet& sheet, const ExportOptions& options, QSize size)
{
    const PaintStyle style = styleFor(options);
    if (sheet.panels.size() == 1)
        return paintFigure(canvas, sheet.panels.front(), style, size);
    canvas.fillRect(QRect(QPoint(0, 0), size), style.theme.background);
    const int columns = std::max(1, sheet.columns);
    const int gap = unitsOf(kPanelGapMm);
    const QSize cell((size.width() - gap * (columns - 1)) / columns, unitsOf(options.heightMm));
    QFont bold = style.font;
    bold.setBold(true);
    const int strip = QFontMetrics(bold).height();
    for (int i = 0; i < static_cast<int>(sheet.panels.size()); ++i) {
        canvas.save();
        canvas.translate((i % columns) * (cell.width() + gap),
                         (i / columns) * (cell.height() + gap));
        canvas.setFont(bold);
        canvas.setPen(style.theme.text);
        canvas.drawText(QRect(0, 0, cell.width(), strip), Qt::AlignLeft | Qt::AlignVCenter,
                        QString::fromStdString(panelMark(i)));
        canvas.translate(0, strip);
        paintFigure(canvas, sheet.panels[static_cast<std::size_t>(i)], style,
                    {cell.width(), cell.height() - strip});
        canvas.restore();
    }
}

void paint(QPaintDevice* device, const Sheet& sheet, const ExportOptions& options, bool vector)
{
    const QSizeF mm = sheetSizeMm(sheet, options);
    const QSize size(unitsOf(mm.width()), unitsOf(mm.height()));
    QCPPainter canvas;
    if (!canvas.begin(device))
        return;
    canvas.setRenderHint(QPainter::Antialiasing);
    canvas.setRenderHint(QPainter::TextAntialiasing);
    canvas.setMode(QCPPainter::pmVectorized, vector);
    canvas.setMode(QCPPainter::pmNoCaching);
    canvas.setMode(QCPPainter::pmNonCosmetic);
    canvas.setWindow(QRect(QPoint(0, 0), size));
    paintPanels(canvas, sheet, options, size);
    canvas.end();
}

QByteArray pdf(const Sheet& sheet, const ExportOptions& options)
{
    QBuffer buffer;
    buffer.open(QIODevice::WriteOnly);
    {
        QPdfWriter writer(&buffer);
        writer.setResolution(static_cast<int>(kUnitsPerPt * kPtPerInch));
        writer.setPageSize(QPageSize(sheetSizeMm(sheet, options), QPageSize::Millimeter, {},
                                     QPageSize::ExactMatch));
        writer.setPageMargins(QMarginsF());
        writer.setTitle(QString::fromStdString(sheet.title));
        writer.setCreator(QStringLiteral("MLA Draft Workbench"));
        paint(&writer, sheet, options, true);
    }
    return buffer.data();
}

QByteArray svg(const Sheet& sheet, const ExportOptions& options)
{
    QBuffer buffer;
    buffer.open(QIODevice::WriteOnly);
    {
        QSvgGenerator generator;
        generator.setOutputDevice(&buffer);
        generator.setResolution(static_cast<int>(std::lround(kSvgUnitsPerMm * kMmPerInch)));
        const QSize size = (sheetSizeMm(sheet, options) * kSvgUnitsPerMm).toSize();
        generator.setSize(size);
        generator.setViewBox(QRect(QPoint(0, 0), size));
        generator.setTitle(QString::fromStdString(sheet.title));
        generator.setDescription(QString::fromStdString(sheet.caption));
        paint(&generator, sheet, options, true);
    }
    return withTextAsOutlines(buffer.data());
}

QImage image(const Sheet& sheet, const ExportOptions& options, double pixelsPerMm)
{
    QImage image((sheetSizeMm(sheet, options) * pixelsPerMm).toSize(), QImage::Format_RGB32);
    image.setDotsPerMeterX(static_cast<int>(std::lround(pixelsPerMm * 1000)));
    image.setDotsPerMeterY(static_cast<int>(std::lround(pixelsPerMm * 1000)));
    image.fill(Qt::white);
    paint(&image, sheet, options, false);
    return image;
}

QByteArray png(const Sheet& sheet, const ExportOptions& options)
{
    QBuffer buffer;
    buffer.open(QIODevice::WriteOnly);
    image(sheet, options, options.dpi / kMmPerInch).save(&buffer, "PNG");
    return buffer.data();
}

Status checkOptions(const Sheet& sheet, const ExportOptions& options)
{
    if (sheet.panels.empty())
        return usageError("a sheet needs a figure");
    const auto within = [](double value, double low, double high) {
        return std::isfinite(value) && value >= low && value <= high;
    };
    if (!within(options.widthMm, 20, kLargestMm) || !within(options.heightMm, 20, kLargestMm))
        return usageError("figure size must be 20 to 1000 mm a side");
    if (sheetSizeMm(sheet, options).height() > kLargestMm)
        return usageError("the sheet's rows are together higher than 1000 mm");
    if (!within(options.fontPt, 3, 72) || !within(options.linePt, 0.1, 20))
        return usageError("font size must be 3 to 72 pt and line width 0.1 to 20 pt");
    if (options.dpi < 50 || options.dpi > 1200)
        return usageError("resolution must be 50 to 1200 dpi");
    return {};
}

} // namespace

const QStringList& figureFormats()
{
    static const QStringList formats{QStringLiteral("pdf"), QStringLiteral("svg"),
                                     QStringLiteral("png")};
    return formats;
}

Sheet sheetOf(const Figure& figure)
{
    return {figure.id, figure.title, figure.caption, {figure}, 1};
}

Sheet composedSheet(const std::string& id, std::vector<Figure> panels, int columns)
{
    Sheet sheet{id, {}, {}, std::move(panels), columns};
    for (std::size_t i = 0; i < sheet.panels.size(); ++i) {
        const std::string mark = panelMark(static_cast<int>(i));
        sheet.title += (i ? "; " : "") + mark + " " + sheet.panels[i].title;
        sheet.caption += (i ? " " : "") + mark + " " + sheet.panels[i].caption;
    }
    return sheet;
}

QSizeF sheetSizeMm(const Sheet& sheet, const ExportOptions& options)
{
    const int rows = rowsOf(sheet);
    return {options.widthMm, rows * options.heightMm + (rows - 1) * kPanelGapMm};
}

QImage sheetImage(const Sheet& sheet, const ExportOptions& options, double pixelsPerMm)
{
    if (!checkOptions(sheet, options))
        return {};
    loadBundledFonts();
    return image(sheet, options, pixelsPerMm);
}

Status exportFigure(const Figure& figure, const QString& path, const ExportOptions& options)
{
    return exportSheet(sheetOf(figure), path, options);
}

Status exportSheet(const Sheet& sheet, const QString& path, const ExportOptions& options)
{
    MLA_CHECK(checkOptions(sheet, options));
    loadBundledFonts();
    const QString suffix = QFileInfo(path).suffix().toLower();
    QByteArray bytes;
    if (suffix == QLatin1String("pdf"))
        bytes = pdf(sheet, options);
    else if (suffix == QLatin1String("svg"))
        bytes = svg(sheet, options);
    else if (suffix == QLatin1String("png"))
        bytes = png(sheet, options);
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
