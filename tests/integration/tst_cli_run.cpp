// SPDX-License-Identifier: GPL-3.0-or-later
// A whole study from one file.
#include "core/store/study.h"

#include <QTemporaryDir>
#include <QTest>

#include "tests/support/cli_program.h"

using namespace mla::test;

class TestCliRun : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void runsAPlan();
    void readsStandardInput();
    void wrongPlansAreNamed_data();
    void wrongPlansAreNamed();
    void measurementsAreRefusedBeforeTheWork_data();
    void measurementsAreRefusedBeforeTheWork();

private:
    [[nodiscard]] QJsonObject plan(const QString& name) const;
    [[nodiscard]] QString path(const QString& name) const { return m_folder.filePath(name); }
    QString written(const QByteArray& content);
    QTemporaryDir m_folder;
};

QJsonObject TestCliRun::plan(const QString& name) const
{
    return {{"checkpoint", demoCheckpoint()},
            {"study", path(name + ".h5")},
            {"drafts", path(name)},
            {"calibration", QJsonObject{{"source", "self"}, {"sequences", 8}, {"length", 32}}},
            {"conversions",
             QJsonArray{QJsonObject{
                 {"converter", "transmla"}, {"kv_lora_rank", 28}, {"qk_rope_head_dim", 4}}}},
            {"objectives", QJsonArray{"functional"}},
            {"refine", QJsonObject{{"steps", 10}, {"batch_tokens", 64}}},
            {"compute", QJsonObject{{"device", "cpu"}, {"threads", 1}}}};
}

QString TestCliRun::written(const QByteArray& content)
{
    QFile file(path("plan.json"));
    return file.open(QIODevice::WriteOnly) && file.write(content) == content.size()
               ? file.fileName()
               : QString();
}

void TestCliRun::runsAPlan()
{
    const QString file = written(QJsonDocument(plan("a")).toJson());
    const CliResult run = runCli({"run", file, "--json", "--seed", "7"});
    QVERIFY2(run.exitCode == 0, run.text());
    QCOMPARE(run.json().value("study").toString(), path("a.h5"));
    const auto study = mla::loadStudy(path("a.h5").toStdString());
    QVERIFY(study.ok());
    QCOMPARE(study->runs.size(), std::size_t(2));
    QCOMPARE(study->runs[0].variant, std::string("converted"));
    QCOMPARE(study->runs[1].variant, std::string("functional"));
    QCOMPARE(study->runs[1].seed, std::uint64_t(7)); // an option beats the plan
    for (const mla::RunRecord& made : study->runs)
        QVERIFY2(QFile::exists(QString::fromStdString(made.draftPath) + "/model.safetensors"),
                 made.draftPath.c_str());
    const CliResult again = runCli({"run", file, "--json", "--seed", "7", "--resume"});
    QVERIFY2(again.exitCode == 0, again.text());
    QCOMPARE(mla::loadStudy(path("a.h5").toStdString())->runs[1].created,
             study->runs[1].created); // kept, not run again
}

void TestCliRun::readsStandardInput()
{
    QProcess process;
    process.start(programPath(), {"run", "-", "--json", "--quiet"});
    process.write(QJsonDocument(plan("b")).toJson());
    process.closeWriteChannel();
    const CliResult run = finished(process, 120);
    QVERIFY2(run.exitCode == 0, run.text());
    QVERIFY(QFile::exists(path("b.h5")));
}

void TestCliRun::wrongPlansAreNamed_data()
{
    QTest::addColumn<QByteArray>("content");
    QTest::addColumn<QByteArray>("named");
    const auto with = [this](const QString& key, const QJsonValue& value) {
        QJsonObject changed = plan("c");
        changed[key] = value;
        return QJsonDocument(changed).toJson();
    };
    QTest::newRow("no JSON") << QByteArray("{\"study\"") << QByteArray("plan.json");
    QTest::newRow("unknown key") << with("kv_rank", 3) << QByteArray("kv_rank");
    QTest::newRow("wrong type") << with("study", 3) << QByteArray("study");
    QTest::newRow("no checkpoint") << with("checkpoint", "") << QByteArray("checkpoint");
    QTest::newRow("no study") << with("study", "") << QByteArray("study");
    QTest::newRow("no drafts") << with("drafts", "") << QByteArray("drafts");
    QTest::newRow("no conversion")
        << with("conversions", QJsonArray()) << QByteArray("conversions");
}

void TestCliRun::wrongPlansAreNamed()
{
    QFETCH(QByteArray, content);
    QFETCH(QByteArray, named);
    const CliResult run = runCli({"run", written(content), "--json"});
    QVERIFY2(run.exitCode == 3, run.text());
    QVERIFY2(run.out.contains(named), run.text());
    QVERIFY(!QFile::exists(path("c.h5")));
    QVERIFY(!QFile::exists(path("c")));
}

void TestCliRun::measurementsAreRefusedBeforeTheWork_data()
{
    QTest::addColumn<QString>("task");
    QTest::addColumn<QJsonObject>("accept");
    QTest::addColumn<QByteArray>("python");
    QTest::addColumn<QByteArray>("named");
    const QString bare = path("bare-python");
    QVERIFY(writeText(bare, "#!/bin/sh\necho '[\"vllm\"]'\n"));
    QVERIFY(QFile::setPermissions(bare, QFile::ReadOwner | QFile::ExeOwner));
    const QString task = path("task.jsonl"), odd = path("odd.jsonl");
    QVERIFY(writeText(task, "{\"prompt\": \"Once upon a time\"}\n"));
    QVERIFY(writeText(odd, "{\"prompt\": 3}\n"));
    QTest::newRow("no interpreter") << task << QJsonObject{{"backend", "hf"}}
                                    << QByteArray("/no/python") << QByteArray("/no/python");
    QTest::newRow("no vLLM") << task << QJsonObject{{"backend", "vllm"}} << bare.toUtf8()
                             << QByteArray("lacks the package vllm");
    QTest::newRow("no task") << path("absent.jsonl") << QJsonObject{} << QByteArray()
                             << QByteArray("absent.jsonl");
    QTest::newRow("no prompt") << odd << QJsonObject{} << QByteArray() << QByteArray("odd.jsonl");
    QTest::newRow("context too short")
        << task << QJsonObject{{"max_new_tokens", 4000}} << QByteArray() << QByteArray("context");
}

/// Not after hours of refinement.
void TestCliRun::measurementsAreRefusedBeforeTheWork()
{
    QFETCH(QString, task);
    QFETCH(QJsonObject, accept);
    QFETCH(QByteArray, python);
    QFETCH(QByteArray, named);
    accept["tasks"] = QJsonArray{task};
    QJsonObject asked = plan("d");
    asked["accept"] = accept;
    if (!python.isEmpty())
        asked["compute"] = QJsonObject{{"device", "cpu"}, {"python", QString::fromUtf8(python)}};
    const CliResult run = runCli({"run", written(QJsonDocument(asked).toJson()), "--json"});
    QVERIFY2(run.exitCode == 2 || run.exitCode == 3, run.text());
    QVERIFY2(run.out.contains(named), run.text());
    QVERIFY2(!run.err.contains("converting"), run.text());
    for (const char* left : {"d.h5", "d", "d.parts"})
        QVERIFY2(!QFile::exists(path(QString::fromLatin1(left))), left);
}

QTEST_GUILESS_MAIN(TestCliRun)
#include "tst_cli_run.moc"
