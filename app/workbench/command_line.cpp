// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/command_line.h"

#include <QCommandLineParser>

namespace mla::ui
{

namespace
{

const QStringList knownFormats = {QStringLiteral("pdf"), QStringLiteral("svg"),
                                  QStringLiteral("png")};

Error usage(const QString& message)
{
    return usageError(message.toStdString(), "mla-workbench --help lists the options");
}

Result<CommandLine> reportTask(const QCommandLineParser& parser)
{
    CommandLine line;
    line.task = CommandLine::Task::Report;
    line.report.study = parser.value(QStringLiteral("report"));
    line.report.directory = parser.value(QStringLiteral("output"));
    line.report.formats = parser.value(QStringLiteral("format"))
                              .toLower()
                              .split(QLatin1Char(','), Qt::SkipEmptyParts);
    if (line.report.directory.isEmpty())
        return usage(QStringLiteral("--report needs -o DIR"));
    if (line.report.formats.isEmpty())
        return usage(QStringLiteral("--format names no format; known are pdf, svg, png"));
    for (const QString& format : line.report.formats)
        if (!knownFormats.contains(format))
            return usage(QStringLiteral("--format: unknown format '%1'; known are pdf, svg, png")
                             .arg(format));
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
                       {"format", {}, "FORMATS", "pdf,svg,png"}});
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
    if (parser.isSet(QStringLiteral("output")) || parser.isSet(QStringLiteral("format")))
        return usage(QStringLiteral("-o and --format belong to --report STUDY"));
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
        "       mla-workbench --report STUDY -o DIR [--format pdf,svg,png]\n"
        "\n"
        "Shows a study of MLA drafts, and starts new runs. With --report, writes every figure\n"
        "of the study to DIR; needs no display.\n"
        "\n"
        "  STUDY              study file (.h5) to open\n"
        "  --report STUDY     write the figures of STUDY and exit\n"
        "  -o, --output DIR   folder for the figures; made if missing\n"
        "  --format FORMATS   of pdf, svg, png; all by default\n"
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
