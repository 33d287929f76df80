// SPDX-License-Identifier: GPL-3.0-or-later
#include <QDir>
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>

#include "app/workbench/command_line.h"
#include "core/store/study.h"
#include "tests/support/study_fixture.h"

using namespace mla;
using namespace mla::ui;

namespace
{

struct Ended {
    int code = -1;
    QString out, err;
};

/// Runs the built program without a display.
Ended runProgram(const QStringList& arguments)
{
    QProcess process;
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"})
        environment.remove(name);
    process.setProcessEnvironment(environment);
    process.start(QStringLiteral(MLA_BIN "/mla-workbench"), arguments);
    process.waitForFinished(120000);
    return {process.exitStatus() == QProcess::NormalExit ? process.exitCode() : -1,
            QString::fromUtf8(process.readAllStandardOutput()),
            QString::fromUtf8(process.readAllStandardError())};
}

} // namespace

class CommandLineTest : public QObject
{
    Q_OBJECT
private slots:
    void parses();
    void refuses_data();
    void refuses();
    void programSaysWhatItIs();
    void reportNeedsNoDisplay();
    void errorsHaveTheirExitCodes();
};

void CommandLineTest::parses()
{
    QVERIFY(parseCommandLine({})->study.isEmpty());
    QCOMPARE(parseCommandLine({"a.h5"})->study, QStringLiteral("a.h5"));
    QCOMPARE(parseCommandLine({"--help"})->task, CommandLine::Task::Help);
    QCOMPARE(parseCommandLine({"--version"})->task, CommandLine::Task::Version);
    const auto report = parseCommandLine({"--report", "a.h5", "-o", "out", "--format", "pdf,SVG"});
    QVERIFY(report.ok());
    QCOMPARE(report->task, CommandLine::Task::Report);
    QCOMPARE(report->report.study, QStringLiteral("a.h5"));
    QCOMPARE(report->report.options.directory, QStringLiteral("out"));
    QCOMPARE(report->report.options.formats, QStringList({"pdf", "svg"}));
    const ReportRequest all = parseCommandLine({"--report", "a.h5", "-o", "out"})->report;
    QCOMPARE(all.options.formats, QStringList({"pdf", "svg", "png"}));
    QCOMPARE(all.options.tableFormats, QStringList({"csv", "latex", "md"}));
    const ReportRequest set =
        parseCommandLine({"--report",  "a.h5", "-o",       "out", "--width", "178",
                          "--height",  "45.5", "--font",   "7",   "--line",  "0.5",
                          "--dpi",     "600",  "--sheet",  "a,b", "--sheet", "c,d",
                          "--columns", "3",    "--tables", "none"})
            ->report;
    QCOMPARE(set.options.figure.widthMm, 178.0);
    QCOMPARE(set.options.figure.heightMm, 45.5);
    QCOMPARE(set.options.figure.fontPt, 7.0);
    QCOMPARE(set.options.figure.linePt, 0.5);
    QCOMPARE(set.options.figure.dpi, 600);
    QCOMPARE(set.sheets, (QList<QStringList>{{"a", "b"}, {"c", "d"}}));
    QCOMPARE(set.sheetColumns, 3);
    QVERIFY(set.options.tableFormats.isEmpty());
}

void CommandLineTest::refuses_data()
{
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<QString>("named");
    QTest::newRow("unknown option") << QStringList{"--colour"} << "colour";
    QTest::newRow("two studies") << QStringList{"a.h5", "b.h5"} << "b.h5";
    QTest::newRow("report without folder") << QStringList{"--report", "a.h5"} << "-o";
    QTest::newRow("unknown format")
        << QStringList{"--report", "a.h5", "-o", "x", "--format", "gif"} << "gif";
    const QStringList report = {"--report", "a.h5", "-o", "x"};
    QTest::newRow("unknown table") << report + QStringList{"--tables", "xls"} << "xls";
    QTest::newRow("no number") << report + QStringList{"--width", "wide"} << "wide";
    QTest::newRow("no columns") << report + QStringList{"--columns", "0"} << "--columns";
    QTest::newRow("nothing to write")
        << report + QStringList{"--format", "none", "--tables", "none"} << "--tables";
    QTest::newRow("folder without report") << QStringList{"-o", "x"} << "--report";
}

void CommandLineTest::refuses()
{
    QFETCH(QStringList, arguments);
    QFETCH(QString, named);
    const auto line = parseCommandLine(arguments);
    QVERIFY(!line.ok());
    QCOMPARE(exitCode(line.error()), 2);
    QVERIFY2(QString::fromStdString(line.error().text()).contains(named),
             line.error().text().c_str());
}

void CommandLineTest::programSaysWhatItIs()
{
    const Ended version = runProgram({"--version"});
    QCOMPARE(version.code, 0);
    QVERIFY(version.out.startsWith("mla-workbench "));
    const Ended help = runProgram({"--help"});
    QCOMPARE(help.code, 0);
    QVERIFY(help.out.contains("--report STUDY"));
}

void CommandLineTest::reportNeedsNoDisplay()
{
    QTemporaryDir folder;
    const QString study = folder.filePath("toy.h5");
    QVERIFY(saveStudy(study.toStdString(), test::toyStudy()).ok());
    const QString out = folder.filePath("figures");
    const Ended ended = runProgram({"--report", study, "-o", out, "--format", "svg,pdf"});
    QVERIFY2(ended.code == 0, qPrintable(ended.err));
    const QStringList svg = QDir(out).entryList({"*.svg"});
    QVERIFY(svg.size() >= 5);
    QCOMPARE(QDir(out).entryList({"*.pdf"}).size(), svg.size());
    for (const QString& figure : svg) // every figure has its numbers beside it
        QVERIFY2(QFile::exists(out + '/' + QFileInfo(figure).completeBaseName() + ".csv"),
                 qPrintable(figure));
    const Ended wrong = runProgram({"--report", study, "-o", out, "--sheet", "no-such-figure"});
    QCOMPARE(wrong.code, 2);
    QVERIFY(wrong.err.contains("no-such-figure"));
}

void CommandLineTest::errorsHaveTheirExitCodes()
{
    QTemporaryDir folder;
    const Ended missing =
        runProgram({"--report", folder.filePath("gone.h5"), "-o", folder.filePath("x")});
    QCOMPARE(missing.code, 3);
    QVERIFY(missing.err.contains("gone.h5"));
    QCOMPARE(runProgram({"--report"}).code, 2);
    const Ended window = runProgram({});
    QCOMPARE(window.code, 2);
    QVERIFY(window.err.contains("no display"));
}

QTEST_GUILESS_MAIN(CommandLineTest)
#include "tst_command_line.moc"
