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
    QCOMPARE(report->report.directory, QStringLiteral("out"));
    QCOMPARE(report->report.formats, QStringList({"pdf", "svg"}));
    QCOMPARE(parseCommandLine({"--report", "a.h5", "-o", "out"})->report.formats,
             QStringList({"pdf", "svg", "png"}));
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
