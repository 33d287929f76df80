// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/command_line.h"

#include <QCommandLineParser>

namespace mla::ui
{

namespace
{

Error usage(const QString& message)
{
    return usageError(message.toStdString(), "mla-workbench --help lists the options");
}

QStringList listOf(const QCommandLineParser& parser, const QString& option)
{
    const QString value = parser.value(option).toLower();
    return value == QLatin1String("none") ? QStringList()
                                          : value.split(QLatin1Char(','), Qt::SkipEmptyParts);
}

Status checkNames(const QString& option, const QStringList& names, const QStringList& known)
{
    for (const QString& name : names)
        if (!known.contains(name))
            return usage(QStringLiteral("--%1: unknown format '%2'; known are %3, none")
                             .arg(option, name, known.join(QStringLiteral(", "))));
    return {};
}

/// A number of the printed size; its range is checked when figures are written.
Status readNumber(const QCommandLineParser& parser, const QString& option, double& value)
{
    if (!parser.isSet(option))
        return {};
    bool good = false;
    value = parser.value(option).toDouble(&good);
    if (!good)
        return usage(QStringLiteral("--%1: '%2' is no number").arg(option, parser.value(option)));
    return {};
}

Result<CommandLine> reportTask(const QCommandLineParser& parser)
{
    CommandLine line;
    line.task = CommandLine::Task::Report;
    ReportOptions& options = line.report.options;
    line.report.study = parser.value(QStringLiteral("report"));
    options.directory = parser.value(QStringLiteral("output"));
    options.formats = listOf(parser, QStringLiteral("format"));
    options.tableFormats = listOf(parser, QStringLiteral("tables"));
    if (options.directory.isEmpty())
        return usage(QStringLiteral("--report needs -o DIR"));
    MLA_CHECK(checkNames(QStringLiteral("format"), options.formats, figureFormats()));
    QStringList tables;
    for (const TableFormat& format : tableFormats())
        tables << QString::fromStdString(format.name);
    MLA_CHECK(checkNames(QStringLiteral("tables"), options.tableFormats, tables));
    if (options.formats.isEmpty() && options.tableFormats.isEmpty())
        return usage(QStringLiteral("--format and --tables together name no format"));
    double dpi = options.figure.dpi, columns = line.report.sheetColumns;
    MLA_CHECK(readNumber(parser, QStringLiteral("width"), options.figure.widthMm));
    MLA_CHECK(readNumber(parser, QStringLiteral("height"), options.figure.heightMm));
    MLA_CHECK(readNumber(parser, QStringLiteral("font"), options.figure.fontPt));
    MLA_CHECK(readNumber(parser, QStringLiteral("line"), options.figure.linePt));
    MLA_CHECK(readNumber(parser, QStringLiteral("dpi"), dpi));
    MLA_CHECK(readNumber(parser, QStringLiteral("columns"), columns));
    constexpr double most = 100'000;
    if (!(dpi >= 1 && dpi <= most) || !(columns >= 1 && columns <= most))
        return usage(QStringLiteral("--dpi and --columns must be positive numbers"));
    options.figure.dpi = static_cast<int>(dpi);
    line.report.sheetColumns = static_cast<int>(columns);
    for (const QString& ids : parser.values(QStringLiteral("sheet")))
        line.report.sheets << ids.split(QLatin1Char(','), Qt::SkipEmptyParts);
    return line;
}

} // namespace

Result<CommandLine> parseCommandLine(const QStringList& arguments)
{
    QCommandLineParser parser;
    parser.addOptions({{{"h", "help"}, {}},
                       {{"v", "version"}, {}},
                       {"report", {}, "STUDY"},
                       {{"o", "output"}, {}, "DIR"},
                       {"format", {}, "FORMATS", "pdf,svg,png"},
                       {"tables", {}, "FORMATS", "csv,latex,md"},
                       {"sheet", {}, "IDS"},
                       {"columns", {}, "N"},
                       {"width", {}, "MM"},
                       {"height", {}, "MM"},
                       {"font", {}, "PT"},
                       {"line", {}, "PT"},
                       {"dpi", {}, "N"}});
    if (!parser.parse(QStringList{QStringLiteral("mla-workbench")} + arguments))
        return usage(parser.errorText());
    CommandLine line;
    if (parser.isSet(QStringLiteral("help")))
        line.task = CommandLine::Task::Help;
    else if (parser.isSet(QStringLiteral("version")))
        line.task = CommandLine::Task::Version;
    if (line.task != CommandLine::Task::Window)
        return line;
    const QStringList positional = parser.positionalArguments();
    if (parser.isSet(QStringLiteral("report"))) {
        if (!positional.isEmpty())
            return usage(QStringLiteral("unexpected argument '%1'").arg(positional.first()));
        return reportTask(parser);
    }
    if (const QStringList given = parser.optionNames(); !given.isEmpty())
        return usage(QStringLiteral("--%1 belongs to --report STUDY").arg(given.first()));
    if (positional.size() > 1)
        return usage(
            QStringLiteral("one study can be opened; unexpected argument '%1'").arg(positional[1]));
    line.study = positional.value(0);
    return line;
}

QString helpText()
{
    return QStringLiteral(
        "Usage: mla-workbench [STUDY]\n"
        "       mla-workbench --report STUDY -o DIR [options]\n"
        "\n"
        "Shows a study of MLA drafts, and starts new runs. With --report, writes every figure\n"
        "of the study, its numbers and the study's tables to DIR; needs no display.\n"
        "\n"
        "  STUDY              study file (.h5) to open\n"
        "  --report STUDY     write the report of STUDY and exit\n"
        "  -o, --output DIR   folder for the report; made if missing\n"
        "  --format FORMATS   of figures: of pdf, svg, png, or none; all by default\n"
        "  --tables FORMATS   of tables: of csv, latex, md, or none; all by default\n"
        "  --sheet IDS        one more picture of several figures, by their ids joined by commas,\n"
        "                     marked (a), (b), ...; may be given again\n"
        "  --columns N        panels beside each other in a sheet; 2 by default\n"
        "  --width MM         of a figure or sheet; 85 by default\n"
        "  --height MM        of a figure or a row of panels; 60 by default\n"
        "  --font PT          size of all text; 8 by default\n"
        "  --line PT          width of curves; 1 by default\n"
        "  --dpi N            of png files; 300 by default\n"
        "  -h, --help         this text\n"
        "  -v, --version      name and version\n"
        "\n"
        "Exit code: 0 ok, 2 usage, 3 bad input, 4 writing or computing failed, 130 cancelled.\n");
}

int exitCode(const Error& error)
{
    switch (error.code) {
    case ErrorCode::Usage:
        return 2;
    case ErrorCode::BadInput:
        return 3;
    case ErrorCode::Cancelled:
        return 130;
    default:
        return 4;
    }
}

} // namespace mla::ui
