// SPDX-License-Identifier: GPL-3.0-or-later
#include <cstdio>

#include <QApplication>

#include "app/workbench/command_line.h"
#include "app/workbench/main_window.h"
#include "widgets/common/theme.h"

namespace
{

using mla::ui::CommandLine;

void print(std::FILE* stream, const QString& text)
{
    std::fputs(text.toLocal8Bit().constData(), stream);
}

int failWith(const mla::Error& error)
{
    print(stderr, QStringLiteral("mla-workbench: ") + QString::fromStdString(error.text()) +
                      QLatin1Char('\n'));
    return mla::ui::exitCode(error);
}

QStringList argumentsOf(int argc, char** argv)
{
    QStringList arguments;
    for (int i = 1; i < argc; ++i)
        arguments << QString::fromLocal8Bit(argv[i]);
    return arguments;
}

/// Qt ends the process with an abort when it finds no display; this says what to do instead.
bool hasDisplay()
{
    return qEnvironmentVariableIsSet("DISPLAY") || qEnvironmentVariableIsSet("WAYLAND_DISPLAY") ||
           qEnvironmentVariableIsSet("QT_QPA_PLATFORM");
}

int writeReport(const CommandLine& line, int argc, char** argv)
{
    mla::ui::chooseHeadlessPlatform();
    QApplication application(argc, argv);
    mla::ui::applyTheme(application, mla::ui::Theme::Light);
    const mla::Result<QStringList> files = mla::ui::renderReport(line.report);
    if (!files)
        return failWith(files.error());
    for (const QString& file : *files)
        print(stdout, file + QLatin1Char('\n'));
    return 0;
}

int showWindow(const CommandLine& line, int argc, char** argv)
{
    if (!hasDisplay())
        return failWith(
            mla::usageError("there is no display (DISPLAY and WAYLAND_DISPLAY are unset)",
                            "--report STUDY -o DIR writes the figures without one"));
    QApplication application(argc, argv);
    mla::ui::applyTheme(application, mla::ui::Theme::System);
    mla::ui::MainWindow window(mla::ui::coreServices());
    window.show();
    if (line.study.isEmpty())
        window.restoreSession();
    else
        window.openStudy(line.study);
    return QApplication::exec();
}

} // namespace

int main(int argc, char** argv)
{
    QCoreApplication::setOrganizationName(QStringLiteral("mla-draft-workbench"));
    QCoreApplication::setApplicationName(QStringLiteral("mla-workbench"));
    QCoreApplication::setApplicationVersion(QStringLiteral(MLA_VERSION));
    QGuiApplication::setDesktopFileName(QStringLiteral("mla-workbench"));
    const mla::Result<CommandLine> line = mla::ui::parseCommandLine(argumentsOf(argc, argv));
    if (!line)
        return failWith(line.error());
    switch (line->task) {
    case CommandLine::Task::Help:
        print(stdout, mla::ui::helpText());
        return 0;
    case CommandLine::Task::Version:
        print(stdout, QStringLiteral("mla-workbench " MLA_VERSION "\n"));
        return 0;
    case CommandLine::Task::Report:
        return writeReport(*line, argc, argv);
    default:
        return showWindow(*line, argc, argv);
    }
}
