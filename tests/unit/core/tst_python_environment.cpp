// SPDX-License-Identifier: GPL-3.0-or-later
// Finding the interpreter, and what is said when there is none. Shell scripts stand in for Python.
#include "core/backends/python_environment.h"

#include <nlohmann/json.hpp>

#include <QDir>
#include <QFile>
#include <QTemporaryDir>
#include <QTest>

using namespace mla;
using namespace std::chrono_literals;

class TestPythonEnvironment : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void init();
    void nothingInstalled();
    void installed();
    void installedButBroken();
    void variableWins();
    void settingWins();
    void namedButMissing();
    void answersAndErrors();
    void missingPackage();
    void missingScript();
    void noPython();

private:
    QString path(const QString& name) const { return m_dir->filePath(name); }
    QString executable(const QString& name, const QByteArray& text);
    std::unique_ptr<QTemporaryDir> m_dir;
    JobContext m_job;
};

void TestPythonEnvironment::init()
{
    m_dir = std::make_unique<QTemporaryDir>();
    QVERIFY(m_dir->isValid());
    qunsetenv("MLA_PYTHON");
    qputenv("XDG_CACHE_HOME", path("cache").toUtf8());
    qputenv("MLA_DRAFT_RESOURCES", MLA_RESOURCES);
}

QString TestPythonEnvironment::executable(const QString& name, const QByteArray& text)
{
    const QString file = path(name);
    QDir().mkpath(QFileInfo(file).path());
    QFile out(file);
    if (!out.open(QIODevice::WriteOnly) || out.write("#!/bin/sh\n" + text) < 0)
        qFatal("cannot write %s", qPrintable(file));
    out.close();
    out.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    return file;
}

void TestPythonEnvironment::nothingInstalled()
{
    const auto python = findPython({});
    QVERIFY(!python.ok());
    QCOMPARE(python.error().code, ErrorCode::Usage);
    for (const char* part : {"Transformers", "installer/setup.sh --python", "MLA_PYTHON"})
        QVERIFY(python.error().text().find(part) != std::string::npos);
    qputenv("XDG_CACHE_HOME", "");
    const QByteArray home = qgetenv("HOME");
    qunsetenv("HOME");
    QVERIFY(!findPython({}).ok());
    qputenv("HOME", home);
}

void TestPythonEnvironment::installed()
{
    const QString program = executable("env/bin/python", "exit 0\n");
    QDir().mkpath(path("cache/mla-draft-workbench"));
    QFile complete(path("env/complete")),
        note(path("cache/mla-draft-workbench/python-environment"));
    QVERIFY(complete.open(QIODevice::WriteOnly) && note.open(QIODevice::WriteOnly));
    note.write(path("env").toUtf8() + "\n");
    note.close();
    const auto python = findPython({});
    QVERIFY2(python.ok(), python.ok() ? "" : python.error().text().c_str());
    QCOMPARE(QString::fromStdString(python->string()), program);
}

void TestPythonEnvironment::installedButBroken()
{
    QDir().mkpath(path("cache/mla-draft-workbench"));
    QFile note(path("cache/mla-draft-workbench/python-environment"));
    QVERIFY(note.open(QIODevice::WriteOnly));
    note.write(path("gone").toUtf8() + "\n");
    note.close();
    const auto python = findPython({});
    QVERIFY(!python.ok());
    QVERIFY(python.error().text().find(path("gone").toStdString()) != std::string::npos);
    QVERIFY(python.error().text().find("installer/setup.sh --python") != std::string::npos);
}

void TestPythonEnvironment::variableWins()
{
    const QString program = executable("mine", "exit 0\n");
    qputenv("MLA_PYTHON", program.toUtf8());
    QCOMPARE(QString::fromStdString(findPython({})->string()), program);
}

void TestPythonEnvironment::settingWins()
{
    qputenv("MLA_PYTHON", executable("mine", "exit 0\n").toUtf8());
    const QString chosen = executable("chosen", "exit 0\n");
    QCOMPARE(QString::fromStdString(findPython(chosen.toStdString())->string()), chosen);
}

void TestPythonEnvironment::namedButMissing()
{
    qputenv("MLA_PYTHON", "/no/python");
    const auto set = findPython({});
    QVERIFY(!set.ok());
    QCOMPARE(set.error().code, ErrorCode::Usage);
    QVERIFY(set.error().message.find("MLA_PYTHON") != std::string::npos);
    QVERIFY(set.error().message.find("/no/python") != std::string::npos);
    const auto chosen = findPython("/etc/passwd");
    QVERIFY(!chosen.ok());
    QVERIFY(chosen.error().message.find("--python") != std::string::npos);
}

void TestPythonEnvironment::answersAndErrors()
{
    const QString program = executable(
        "server", "read a; echo '{\"ids\":[1,2]}'; echo '{\"more\":1}'; read b; "
                  "echo '{\"error\":\"ValueError: no\",\"kind\":\"ValueError\"}'; cat\n");
    auto harness = PythonHarness::start(program.toStdString(), "json_lines.py");
    QVERIFY(harness.ok());
    const auto answer = harness->ask(m_job, {{"prompt", "x"}}, 10s);
    QVERIFY(answer.ok());
    QCOMPARE(answer->at("ids").size(), std::size_t{2});
    QCOMPARE(harness->next(m_job, 10s)->at("more").get<int>(), 1);
    const auto error = harness->ask(m_job, {{"prompt", "y"}}, 10s);
    QVERIFY(!error.ok());
    QCOMPARE(error.error().code, ErrorCode::ComputeFailed);
    QCOMPARE(error.error().message, std::string("ValueError: no"));
    QVERIFY(harness->finish(m_job).ok());
}

void TestPythonEnvironment::missingPackage()
{
    const QString program =
        executable("bare", "read a; echo '{\"error\":\"ModuleNotFoundError: No module named "
                           "transformers\",\"missing\":\"transformers\"}'\n");
    auto harness = PythonHarness::start(program.toStdString(), "json_lines.py");
    QVERIFY(harness.ok());
    const auto answer = harness->ask(m_job, {{"tokenizer", "x"}}, 10s);
    QVERIFY(!answer.ok());
    QCOMPARE(answer.error().code, ErrorCode::Usage);
    for (const char* part : {"lacks the package transformers", "installer/setup.sh --python"})
        QVERIFY2(answer.error().text().find(part) != std::string::npos,
                 answer.error().text().c_str());
}

void TestPythonEnvironment::missingScript()
{
    const auto harness = PythonHarness::start("/bin/sh", "no_such_script.py");
    QVERIFY(!harness.ok());
    QVERIFY(harness.error().text().find("no_such_script.py") != std::string::npos);
}

/// A program that is no Python at all.
void TestPythonEnvironment::noPython()
{
    auto harness = PythonHarness::start("/bin/cat", "json_lines.py");
    QVERIFY(harness.ok());
    const auto answer = harness->ask(m_job, {{"tokenizer", "x"}}, 10s);
    QVERIFY(!answer.ok());
    QCOMPARE(answer.error().code, ErrorCode::ComputeFailed);
}

QTEST_GUILESS_MAIN(TestPythonEnvironment)
#include "tst_python_environment.moc"
