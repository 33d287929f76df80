// SPDX-License-Identifier: GPL-3.0-or-later
// mla-draft on checkpoints that are not plain safetensors, and on broken numbers.
#include "core/checkpoint/checkpoint.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include <QDir>
#include <QTemporaryDir>

#include "core/checkpoint/tensor_decode.h"
#include "tests/support/cli_program.h"

namespace fs = std::filesystem;
using namespace mla;
using namespace mla::test;

namespace
{

QString stored(const QString& name)
{
    return QStringLiteral(MLA_TEST_DATA "/golden/data/storage/") + name;
}
QString tiny(const QString& name)
{
    return QStringLiteral(MLA_TEST_DATA "/golden/data/tiny/") + name;
}

} // namespace

class TestCliStorage : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase()
    {
        QVERIFY2(QFile::exists(programPath()), qPrintable(programPath() + " is not built"));
    }

    void ggufComputesTheSame_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("file");
        QTest::newRow("llama3") << "llama3"
                                << "llama3.gguf";
        QTest::newRow("biased") << "biased"
                                << "biased.gguf";
        QTest::newRow("qwen2") << "qwen2"
                               << "qwen2-model.gguf";
        QTest::newRow("qwen3") << "qwen3"
                               << "qwen3-model.gguf";
    }
    void ggufComputesTheSame()
    {
        QFETCH(QString, name);
        QFETCH(QString, file);
        const std::vector<float> gguf = logits(stored(file));
        const std::vector<float> hf = logits(tiny(name));
        QCOMPARE(gguf.size(), hf.size());
        float worst = 0, largest = 0;
        for (std::size_t i = 0; i < hf.size(); ++i) {
            worst = std::max(worst, std::abs(gguf[i] - hf[i]));
            largest = std::max(largest, std::abs(hf[i]));
        }
        QVERIFY2(worst < 1e-4F * largest, std::to_string(worst / largest).c_str());
    }

    void inspectReadsGguf()
    {
        const CliResult result = runCli({"inspect", stored("llama3.gguf"), "--json"});
        QVERIFY2(result.exitCode == 0, result.text().constData());
        QCOMPARE(result.json().value("model_type").toString(), QString("llama"));
        QCOMPARE(result.json().value("head_dim").toInt(), 16);
        QCOMPARE(result.json().value("cache_elements_per_token_per_layer").toInt(), 2 * 1 * 16);
    }

    /// A draft keeps what the base's tensors decode to, in fp32; its config names no quantisation.
    void convertsGguf()
    {
        const fs::path base = m_dir.path().toStdString() + "/base";
        fs::create_directory(base);
        fs::copy(stored("stories260K.gguf").toStdString(), base);
        fs::copy(demoCheckpoint().toStdString() + "/tokenizer.json", base);
        const QString out = m_dir.filePath("draft");
        const CliResult result =
            runCli({"convert", QString::fromStdString(base), "-o", out, "--converter", "mha2mla",
                    "--kv-lora-rank", "16", "--qk-rope-head-dim", "4", "--calibration", "self",
                    "--sequences", "2", "--length", "16", "--json"});
        QVERIFY2(result.exitCode == 0, result.text().constData());
        const auto source = Checkpoint::open(base);
        const auto draft = Checkpoint::open(out.toStdString());
        QVERIFY2(draft.ok(), draft.ok() ? "" : draft.error().text().c_str());
        for (const char* name : {"model.layers.2.mlp.up_proj.weight", "model.norm.weight",
                                 "model.layers.0.self_attn.o_proj.weight"}) {
            QCOMPARE(draft.value().info(name)->dtype, DType::F32);
            QVERIFY(numbersOf(draft.value(), name) == numbersOf(source.value(), name));
        }
        QCOMPARE(draft.value().info("model.layers.2.mlp.down_proj.weight")->dtype, DType::F16);
        QCOMPARE(draft.value().config().hiddenSize, 64);
        const QString ids = "1,403,407,261";
        QVERIFY(runCli({"forward", out, "--ids", ids, "--json"}).exitCode == 0);
    }

    /// A GGUF file holds its tokenizer; the draft, which is no GGUF file, has it beside the
    /// weights.
    void draftOfGgufHasItsTokenizer()
    {
        const QString base = m_dir.filePath("gguf-alone"), out = m_dir.filePath("gguf-draft");
        QVERIFY(QDir().mkpath(base));
        QVERIFY(QFile::copy(stored("stories260K.gguf"), base + "/model.gguf"));
        const CliResult result =
            runCli({"convert", base, "-o", out, "--converter", "mha2mla", "--kv-lora-rank", "16",
                    "--qk-rope-head-dim", "4", "--sequences", "2", "--length", "16", "--json"});
        QVERIFY2(result.exitCode == 0, result.text().constData());
        QVERIFY(QFile::exists(out + "/tokenizer.json"));
        const QString text = "Once upon a time, Lily's dog saw 3 caf\u00e9s.\n\tThe end \u2603";
        const auto ids = [&](const QString& model) {
            return runCli({"tokenize", model, "--text", text, "--json"}).json().value("ids");
        };
        QVERIFY(ids(out).toArray().size() > 10);
        QCOMPARE(ids(out), ids(demoCheckpoint()));
    }

    void nonFiniteWeightsAreBadInput()
    {
        const fs::path dir = m_dir.path().toStdString() + "/nan";
        fs::copy(tiny("llama3").toStdString(), dir, fs::copy_options::recursive);
        {
            std::fstream file(dir / "model.safetensors",
                              std::ios::binary | std::ios::in | std::ios::out);
            file.seekp(-2, std::ios::end);
            file.write("\xC0\x7F", 2); // a NaN of BF16, the last number of the last tensor
        }
        const CliResult result =
            runCli({"forward", QString::fromStdString(dir.string()), "--ids", "1,2", "--json"});
        QVERIFY2(result.exitCode == 3, result.text().constData());
        const QString message = result.error().value("message").toString();
        QVERIFY2(message.startsWith("tensor 'model."), qPrintable(message));
        QVERIFY2(message.contains("1 of ") && message.contains("the first at ["),
                 qPrintable(message));
        QVERIFY(result.error().value("context").toString().contains("model.safetensors"));
    }

    void malformedInputsExitWith3_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QByteArray>("content");
        QTest::newRow("GGUF") << "a.gguf" << QByteArray("GGUF\3\0\0\0\xFF\xFF\xFF\xFF", 12);
        QTest::newRow("config") << "config.json" << QByteArray("{\"model_type\": \"gpt9\"}");
    }
    void malformedInputsExitWith3()
    {
        QFETCH(QString, name);
        QFETCH(QByteArray, content);
        const QTemporaryDir dir;
        QFile file(dir.filePath(name));
        QVERIFY(file.open(QIODevice::WriteOnly) && file.write(content) == content.size());
        file.close();
        const CliResult result = runCli({"inspect", dir.path(), "--json"});
        QVERIFY2(result.exitCode == 3, result.text().constData());
        QVERIFY2(result.err.contains(name.toUtf8()), result.err.constData());
    }

private:
    std::vector<float> logits(const QString& model) const
    {
        const QString out = m_dir.filePath("logits.safetensors");
        QFile::remove(out);
        const CliResult result =
            runCli({"forward", model, "--ids", "1,7,3,9,22,40,5,11,2,60,33,8", "--out", out});
        if (result.exitCode != 0)
            qFatal("%s", result.text().constData());
        const auto file = SafetensorsFile::open(out.toStdString());
        std::vector<float> numbers(
            static_cast<std::size_t>(file.value().tensors().at("logits").elements()));
        decodeNumbers(DType::F32, file.value().bytes("logits").value(), numbers);
        return numbers;
    }
    static std::vector<float> numbersOf(const Checkpoint& checkpoint, const std::string& name)
    {
        std::vector<float> numbers(static_cast<std::size_t>(checkpoint.info(name)->elements()));
        if (const Status read = checkpoint.readFloat32(name, numbers); !read)
            qFatal("%s", read.error().text().c_str());
        return numbers;
    }
    QTemporaryDir m_dir;
};

QTEST_APPLESS_MAIN(TestCliStorage)
#include "tst_cli_storage.moc"
