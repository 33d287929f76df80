// SPDX-License-Identifier: GPL-3.0-or-later
// The command line's contract on commands that look at one model. Errors are in tst_cli_errors.cpp,
// what makes and measures drafts in tst_cli_drafts.cpp.
#include "core/checkpoint/safetensors.h"

#include <cmath>
#include <cstring>

#include <QTemporaryDir>

#include "tests/support/cli_program.h"

using namespace mla::test;

namespace
{

const QStringList commandNames = {"demo",     "run",      "inspect",       "tokenize",
                                  "forward",  "generate", "perplexity",    "spectrum",
                                  "fidelity", "convert",  "refine",        "accept",
                                  "export",   "report",   "import-results"};

QString joined(const QJsonArray& ids)
{
    QStringList list;
    for (const QJsonValue& id : ids)
        list << QString::number(id.toInt());
    return list.join(',');
}

} // namespace

class TestCli : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase();
    void helpExplainsEveryCommand();
    void inspectNamesTheArchitecture();
    void tokenizeGoesThereAndBack_data();
    void tokenizeGoesThereAndBack();
    void tokenizeReadsFiles();
    void forwardAgreesWithGenerate();
    void forwardWritesLogits();
    void generateContinuesAStory();
    void perplexityCountsScoredTokens_data();
    void perplexityCountsScoredTokens();
    void textOutputIsNoJson();

private:
    QTemporaryDir m_dir;
    QString path(const QString& name) const { return m_dir.filePath(name); }
    static QJsonArray idsOf(const QString& text)
    {
        return runCli({"tokenize", demoCheckpoint(), "--text", text, "--json"})
            .json()
            .value("ids")
            .toArray();
    }
};

void TestCli::initTestCase()
{
    QVERIFY2(QFile::exists(programPath()), qPrintable(programPath() + " is not built"));
    QVERIFY(m_dir.isValid());
}

void TestCli::helpExplainsEveryCommand()
{
    const CliResult program = runCli({"--help"});
    QCOMPARE(program.exitCode, 0);
    for (const QString& command : commandNames) {
        QVERIFY2(program.out.contains("  " + command.toUtf8()), qPrintable(command));
        const CliResult help = runCli({command, "--help"});
        QCOMPARE(help.exitCode, 0);
        for (const char* common : {"--device", "--threads", "--seed", "--json", "--quiet"})
            QVERIFY2(help.out.contains(common), qPrintable(command + " " + common));
        QVERIFY2(help.err.isEmpty(), help.err.constData());
    }
    const QByteArray refine = runCli({"refine", "--help"}).out;
    QVERIFY2(refine.contains("(default: 60)"), refine.constData());
    QVERIFY2(refine.contains("(default: 1024)"), refine.constData());
    const QByteArray accept = runCli({"accept", "--help"}).out;
    QVERIFY2(accept.contains("(default: 4)") && accept.contains("(default: 64)"),
             accept.constData());
    QCOMPARE(runCli({"--version"}).exitCode, 0);
}

void TestCli::inspectNamesTheArchitecture()
{
    const CliResult result = runCli({"inspect", demoCheckpoint(), "--json"});
    QVERIFY2(result.exitCode == 0, result.text().constData());
    const QJsonObject json = result.json();
    QCOMPARE(json.value("model_type").toString(), QString("llama"));
    QCOMPARE(json.value("num_hidden_layers").toInt(), 5);
    QCOMPARE(json.value("hidden_size").toInt(), 64);
    QCOMPARE(json.value("num_attention_heads").toInt(), 8);
    QCOMPARE(json.value("num_key_value_heads").toInt(), 4);
    QCOMPARE(json.value("head_dim").toInt(), 8);
    // embedding (tied) + 5 x (q, o 64 x 64; k, v 32 x 64; MLP 3 x 172 x 64; two norms) + last norm
    QCOMPARE(json.value("parameters").toInt(),
             512 * 64 + 5 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 172 * 64 + 2 * 64) + 64);
    QCOMPARE(json.value("attention").toString(), QString("gqa"));
    QCOMPARE(json.value("cache_elements_per_token_per_layer").toInt(), 2 * 4 * 8);
    QVERIFY(json.value("warnings").isArray());
}

void TestCli::tokenizeGoesThereAndBack_data()
{
    QTest::addColumn<QString>("text");
    QTest::newRow("story") << "Once upon a time, there was a little girl.";
    QTest::newRow("lines") << "one\ntwo\tthree  four";
    QTest::newRow("not in the vocabulary")
        << QString::fromUtf8("na\u00efve \u4f60\u597d \U0001F469");
    QTest::newRow("empty") << "";
    QTest::newRow("dash") << "dash - in the middle";
}

void TestCli::tokenizeGoesThereAndBack()
{
    QFETCH(QString, text);
    const CliResult result =
        runCli({"tokenize", demoCheckpoint(), "--text", text, "--no-special", "--json"});
    QVERIFY2(result.exitCode == 0, result.text().constData());
    const QJsonArray ids = result.json().value("ids").toArray();
    QCOMPARE(result.json().value("tokens").toArray().size(), ids.size());
    QCOMPARE(ids.isEmpty(), text.isEmpty());
    const CliResult back =
        runCli({"tokenize", demoCheckpoint(), "--decode", joined(ids), "--json"});
    QVERIFY2(back.exitCode == 0, back.text().constData());
    QCOMPARE(back.json().value("text").toString(), text);
}

void TestCli::tokenizeReadsFiles()
{
    const QByteArray text = "Once upon a time\nthere was a cat.\n";
    QVERIFY(writeText(path("story.txt"), text));
    const CliResult file =
        runCli({"tokenize", demoCheckpoint(), "--file", path("story.txt"), "--json"});
    QVERIFY2(file.exitCode == 0, file.text().constData());
    const QJsonArray ids = file.json().value("ids").toArray();
    QCOMPARE(ids, idsOf(QString::fromUtf8(text)));
    QCOMPARE(ids.first().toInt(), 1); // bos_token_id of config.json
}

void TestCli::forwardAgreesWithGenerate()
{
    const QString ids = joined(idsOf("Once upon a time"));
    const CliResult forward = runCli({"forward", demoCheckpoint(), "--ids", ids, "--json"});
    QVERIFY2(forward.exitCode == 0, forward.text().constData());
    const QJsonArray argmax = forward.json().value("argmax").toArray();
    QCOMPARE(argmax.size(), ids.count(',') + 1);
    const CliResult generate =
        runCli({"generate", demoCheckpoint(), "--ids", ids, "-n", "1", "--json"});
    QVERIFY2(generate.exitCode == 0, generate.text().constData());
    QCOMPARE(generate.json().value("ids").toArray(), QJsonArray{argmax.last()});
}

void TestCli::forwardWritesLogits()
{
    const QStringList arguments = {"forward", demoCheckpoint(),           "--ids", "1,2,3",
                                   "--out",   path("logits.safetensors"), "--json"};
    const CliResult result = runCli(arguments);
    QVERIFY2(result.exitCode == 0, result.text().constData());
    const auto file = mla::SafetensorsFile::open(path("logits.safetensors").toStdString());
    QVERIFY(file.ok());
    QCOMPARE(file->tensors().size(), std::size_t{1});
    const mla::TensorInfo info = file->tensors().at("logits");
    QCOMPARE(info.dtype, mla::DType::F32);
    QCOMPARE(info.shape, (std::vector<std::int64_t>{3, 512}));
    const auto bytes = file->bytes("logits");
    QVERIFY(bytes.ok());
    std::vector<float> logits(3 * 512);
    std::memcpy(logits.data(), bytes->data(), bytes->size());
    const QJsonArray argmax = result.json().value("argmax").toArray();
    for (int position = 0; position < 3; ++position) {
        const auto row = logits.begin() + position * 512;
        QCOMPARE(argmax.at(position).toInt(),
                 static_cast<int>(std::max_element(row, row + 512) - row));
    }
    QCOMPARE(runCli(arguments).exitCode, 2); // exists
    QCOMPARE(runCli(arguments + QStringList{"--overwrite"}).exitCode, 0);
}

void TestCli::generateContinuesAStory()
{
    const QStringList arguments = {
        "generate", demoCheckpoint(), "--prompt", "Once upon a time, there was a little girl", "-n",
        "32",       "--json"};
    const CliResult result = runCli(arguments);
    QVERIFY2(result.exitCode == 0, result.text().constData());
    QCOMPARE(result.json().value("ids").toArray().size(), 32);
    // The checkpoint's greedy continuation in llama2.c and in Transformers.
    const QString text = result.json().value("text").toString().trimmed();
    QVERIFY2(text.startsWith("named Lily. She loved to play outside in the park."),
             qPrintable(text));
    QCOMPARE(runCli(arguments + QStringList{"--threads", "1"}).out, result.out);

    const QStringList sampled = arguments + QStringList{"--temperature", "1", "--seed", "3"};
    QCOMPARE(runCli(sampled).out, runCli(sampled).out);
    QVERIFY(runCli(sampled).out != runCli(arguments + QStringList{"--temperature", "1"}).out);
}

void TestCli::perplexityCountsScoredTokens_data()
{
    QTest::addColumn<int>("length");
    for (const int length : {2, 7, 16, 512})
        QTest::addRow("%d", length) << length;
}

void TestCli::perplexityCountsScoredTokens()
{
    QFETCH(int, length);
    const QString text =
        "Once upon a time, there was a little cat. The cat liked to play in the park. "
        "One day, the cat saw a big red ball.";
    QVERIFY(writeText(path("text.txt"), text.toUtf8()));
    const CliResult result = runCli({"perplexity", demoCheckpoint(), "--text", path("text.txt"),
                                     "--length", QString::number(length), "--json"});
    QVERIFY2(result.exitCode == 0, result.text().constData());
    const int n = static_cast<int>(idsOf(text).size());
    const int expected = n / length * (length - 1) + std::max(0, n % length - 1);
    QCOMPARE(result.json().value("tokens").toInt(), expected);
    const double perplexity = result.json().value("perplexity").toDouble();
    QVERIFY2(perplexity > 1 && perplexity < 512, result.out.constData());
}

void TestCli::textOutputIsNoJson()
{
    const CliResult inspect = runCli({"inspect", demoCheckpoint()});
    QCOMPARE(inspect.exitCode, 0);
    for (const char* shown :
         {"llama", "64 elements per token", "model.layers.*.self_attn.q_proj.weight"})
        QVERIFY2(inspect.out.contains(shown), inspect.out.constData());
    const CliResult text =
        runCli({"tokenize", demoCheckpoint(), "--decode", joined(idsOf("a cat"))});
    QCOMPARE(text.exitCode, 0);
    QVERIFY2(text.out.contains("a cat\n"), text.out.constData());
    QVERIFY(text.err.isEmpty());
}

QTEST_APPLESS_MAIN(TestCli)
#include "tst_cli.moc"
