// SPDX-License-Identifier: GPL-3.0-or-later
// The command line's contract when something is wrong: exit codes, JSON and text of errors.
#include <QTemporaryDir>

#include "tests/support/cli_program.h"

using namespace mla::test;

class TestCliErrors : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase();
    void usageErrors_data();
    void usageErrors();
    void laterFeaturesAreRefused_data();
    void laterFeaturesAreRefused();
    void badInputs_data();
    void badInputs();
    void errorTextIsTheSameOnBothStreams();

private:
    QTemporaryDir m_dir;
    QString path(const QString& name) const { return m_dir.filePath(name); }
};

void TestCliErrors::initTestCase()
{
    QVERIFY2(QFile::exists(programPath()), qPrintable(programPath() + " is not built"));
    QVERIFY(m_dir.isValid());
}

void TestCliErrors::usageErrors_data()
{
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<QString>("named");
    const QString model = demoCheckpoint();
    const QStringList convert = {"convert",
                                 model,
                                 "-o",
                                 path("never"),
                                 "--converter",
                                 "transmla",
                                 "--kv-lora-rank",
                                 "28",
                                 "--qk-rope-head-dim",
                                 "4"};
    const QStringList refine = {"refine", model, "--original", model, "-o", path("never")};
    QTest::newRow("no command") << QStringList() << "--json";
    QTest::newRow("unknown command") << QStringList{"grind"} << "grind";
    QTest::newRow("unknown option") << QStringList{"inspect", model, "--colour"} << "--colour";
    QTest::newRow("option of another command")
        << QStringList{"inspect", model, "--overwrite"} << "--overwrite";
    QTest::newRow("missing argument") << QStringList{"inspect"} << "CKPT";
    QTest::newRow("surplus argument") << QStringList{"inspect", model, "more"} << "more";
    QTest::newRow("bad device") << QStringList{"inspect", model, "--device", "tpu"} << "--device";
    QTest::newRow("bad threads") << QStringList{"inspect", model, "--threads", "-1"} << "--threads";
    QTest::newRow("no text") << QStringList{"tokenize", model} << "--text";
    QTest::newRow("two texts") << QStringList{"tokenize", model, "--text", "a", "--decode", "1"}
                               << "--text";
    QTest::newRow("bad ids") << QStringList{"forward", model, "--ids", "1,x"} << "--ids";
    QTest::newRow("negative id") << QStringList{"forward", model, "--ids", "1,-2"} << "--ids";
    QTest::newRow("huge id") << QStringList{"forward", model, "--ids", "99999999999"} << "--ids";
    QTest::newRow("no ids") << QStringList{"forward", model, "--ids", ","} << "--ids";
    QTest::newRow("no prompt") << QStringList{"generate", model, "-n", "4"} << "--prompt";
    QTest::newRow("no tokens") << QStringList{"generate", model, "--ids", "1", "-n", "0"} << "-n";
    QTest::newRow("cold") << QStringList{"generate", model, "--ids", "1", "--temperature", "-1"}
                          << "--temperature";
    QTest::newRow("not a temperature")
        << QStringList{"generate", model, "--ids", "1", "--temperature", "nan"} << "--temperature";
    QTest::newRow("short window") << QStringList{"perplexity", model,      "--text",
                                                 "x",          "--length", "1"}
                                  << "--length";
    QTest::newRow("unknown converter") << QStringList{"convert",
                                                      model,
                                                      "-o",
                                                      path("never"),
                                                      "--converter",
                                                      "magic",
                                                      "--kv-lora-rank",
                                                      "8",
                                                      "--qk-rope-head-dim",
                                                      "4"}
                                       << "--converter";
    QTest::newRow("no rank") << convert.mid(0, 6) << "--kv-lora-rank";
    QTest::newRow("mha2mla option") << convert + QStringList{"--svd", "joint"} << "--svd";
    QTest::newRow("bad freqfold") << convert + QStringList{"--freqfold", "two"} << "--freqfold";
    QTest::newRow("fraction of steps")
        << refine + QStringList{"--objective", "functional", "--steps", "1.5"} << "--steps";
    QTest::newRow("no objective") << refine << "--objective";
    QTest::newRow("objective") << refine + QStringList{"--objective", "logits"} << "--objective";
    QTest::newRow("layers") << refine + QStringList{"--objective", "functional", "--layers", "2-1"}
                            << "--layers";
    QTest::newRow("sizes alone") << refine +
                                        QStringList{"--objective", "functional", "--sequences", "4"}
                                 << "--calibration";
    QTest::newRow("tables") << QStringList{"report", "s.h5", "-o", path("never"), "--tables", "pdf"}
                            << "pdf";
    QTest::newRow("dtype") << QStringList{"export",   model,         "-o",      path("never"),
                                          "--layout", "huggingface", "--dtype", "int4"}
                           << "--dtype";
}

void TestCliErrors::usageErrors()
{
    QFETCH(QStringList, arguments);
    QFETCH(QString, named);
    const CliResult json = runCli(arguments + QStringList{"--json"});
    QVERIFY2(json.exitCode == 2, json.text().constData());
    QVERIFY2(json.err.contains(named.toUtf8()), json.err.constData());
    QVERIFY2(json.error().value("code") == "usage", json.out.constData());
    QVERIFY(!QFile::exists(path("never")));
}

void TestCliErrors::laterFeaturesAreRefused_data()
{
    QTest::addColumn<QStringList>("arguments");
    const QString model = demoCheckpoint();
    const QStringList sizes = {"--kv-lora-rank", "28", "--qk-rope-head-dim", "4"};
    const QStringList convert = QStringList{"convert", model, "-o", path("never")} + sizes;
    QTest::newRow("auto converter") << convert + QStringList{"--converter", "auto"};
    QTest::newRow("auto freqfold")
        << convert + QStringList{"--converter", "transmla", "--freqfold", "auto"};
}

void TestCliErrors::laterFeaturesAreRefused()
{
    QFETCH(QStringList, arguments);
    const CliResult result = runCli(arguments + QStringList{"--json"});
    QVERIFY2(result.exitCode == 2, result.text().constData());
    QVERIFY2(result.err.contains("not available in this version"), result.err.constData());
}

void TestCliErrors::badInputs_data()
{
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<QString>("named");
    const QString model = demoCheckpoint(), none = path("no-such-model");
    QVERIFY(writeText(path("broken.h5"), "not HDF5"));
    QVERIFY(writeText(path("some.txt"), "Once upon a time, there was a cat."));
    QTest::newRow("inspect") << QStringList{"inspect", none} << none;
    QTest::newRow("tokenize") << QStringList{"tokenize", none, "--text", "a"} << none;
    QTest::newRow("text file") << QStringList{"tokenize", model, "--file", none} << none;
    QTest::newRow("decode") << QStringList{"tokenize", model, "--decode", "1,512"} << "512";
    QTest::newRow("forward") << QStringList{"forward", none, "--ids", "1"} << none;
    QTest::newRow("forward id") << QStringList{"forward", model, "--ids", "1,512"} << "512";
    QTest::newRow("generate") << QStringList{"generate", none, "--prompt", "a"} << none;
    QTest::newRow("generate id") << QStringList{"generate", model, "--ids", "512"} << "512";
    QTest::newRow("perplexity text") << QStringList{"perplexity", model, "--text", none} << none;
    QTest::newRow("fidelity") << QStringList{"fidelity", none, "--original", model} << none;
    QTest::newRow("convert") << QStringList{"convert",
                                            none,
                                            "-o",
                                            path("never"),
                                            "--converter",
                                            "transmla",
                                            "--kv-lora-rank",
                                            "28",
                                            "--qk-rope-head-dim",
                                            "4"}
                             << none;
    QTest::newRow("accept tasks") << QStringList{"accept", "--target", model, "--draft",
                                                 model,    "--tasks",  none}
                                  << none;
    QTest::newRow("report") << QStringList{"report", none, "-o", path("never")} << none;
    QTest::newRow("foreign study")
        << QStringList{"report", path("broken.h5"), "-o", path("never")} << "broken.h5";
}

void TestCliErrors::badInputs()
{
    QFETCH(QStringList, arguments);
    QFETCH(QString, named);
    const CliResult result = runCli(arguments + QStringList{"--json"});
    QVERIFY2(result.exitCode == 3, result.text().constData());
    QCOMPARE(result.error().value("code").toString(), QString("bad_input"));
    QVERIFY2(result.err.contains(named.toUtf8()), result.err.constData());
    QVERIFY(!QFile::exists(path("never")));
}

void TestCliErrors::errorTextIsTheSameOnBothStreams()
{
    const CliResult plain = runCli({});
    QCOMPARE(plain.exitCode, 2);
    QVERIFY(plain.out.isEmpty() && plain.err.contains("a command is missing"));
    const CliResult result = runCli({"inspect", path("no-such-model"), "--json"});
    const QJsonObject error = result.error();
    for (const char* key : {"code", "message", "context", "hint"})
        QVERIFY2(error.value(key).isString(), key);
    QVERIFY(!error.value("message").toString().isEmpty());
    for (const char* key : {"message", "context", "hint"})
        QVERIFY2(result.err.contains(error.value(key).toString().toUtf8()), key);
    QCOMPARE(result.out.count('\n'), 1);
}

QTEST_APPLESS_MAIN(TestCliErrors)
#include "tst_cli_errors.moc"
