// SPDX-License-Identifier: GPL-3.0-or-later
// Exported drafts in the stacks that people serve with: `export --verify` for both converters and
// every family of source, what travels with the weights, and what is refused.
#include <cmath>

#include "tests/support/toy_checkpoint.h"

#include <QDir>
#include <QFileInfo>
#include <QTemporaryDir>

#include "core/export/draft_directory.h"
#include "core/pipeline/export_verify.h"
#include "core/pipeline/run_support.h"
#include "core/store/study.h"
#include "tests/support/cli_program.h"
#include "tests/support/python_stack.h"

using namespace mla;
using namespace mla::test;

namespace
{

constexpr double kBound = 2e-3; ///< of the logits' spread

QByteArray contentOf(const QString& path)
{
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

QJsonObject checkOf(const QJsonObject& result, const QString& stack)
{
    for (const QJsonValue& check : result.value("checks").toArray())
        if (check["stack"] == stack)
            return check.toObject();
    return {};
}

} // namespace

class TestExport : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase();
    void isTheSameModel_data();
    void isTheSameModel();
    void castsAreVerified_data();
    void castsAreVerified();
    void directoryIsWhole();
    void studyKnowsTheExport();
    void weightsAreSharded();
    void withoutPythonOnlyOurEngine();
    void anotherModelFails();
    void numbersBeyondFp16();
    void dryRunWritesNothing();

private:
    QString path(const QString& name) const { return m_dir.filePath(name); }
    /// A draft of the TOY checkpoint of that kind, converted when it is first asked for.
    QString draft(const QString& toy, const QString& converter);
    CliResult exported(const QString& from, const QString& to, const QStringList& options);
    void checkStack(const QJsonObject& check, const QString& package, const QString& modelClass);
    QTemporaryDir m_dir;
};

void TestExport::initTestCase()
{
    qputenv("HF_HOME", path("hf").toUtf8());
}

QString TestExport::draft(const QString& toy, const QString& converter)
{
    const QString source = path("toy-" + toy), output = path(toy + "-" + converter);
    if (QFileInfo::exists(output))
        return output;
    if (!QFileInfo::exists(source))
        writeToy(toy.toStdString(), source.toStdString());
    const bool transmla = converter == "transmla"; // heads of 16 + 16 dims: vLLM takes 32
    const CliResult converted = runCli(
        {"convert", source, "-o", output, "--converter", converter, "--kv-lora-rank",
         transmla ? "40" : "20", "--qk-rope-head-dim", transmla ? "16" : "8", "--calibration",
         "self", "--sequences", "16", "--length", "48", "--study", path("study.h5"), "--json"});
    if (converted.exitCode != 0)
        qCritical("%s", converted.text().constData());
    return output;
}

CliResult TestExport::exported(const QString& from, const QString& to, const QStringList& options)
{
    return runCli(QStringList{"export", from, "-o", to, "--json"} + options);
}

void TestExport::checkStack(const QJsonObject& check, const QString& package,
                            const QString& modelClass)
{
    if (!canImport(package.toUtf8().constData())) {
        QVERIFY(!check["tried"].toBool());
        QVERIFY(!check["remark"].toString().isEmpty());
        return;
    }
    QVERIFY2(check["tried"].toBool(), qPrintable(check["remark"].toString()));
    QVERIFY(check["passed"].toBool());
    QVERIFY(check["logit_difference"].toDouble() <= kBound);
    QVERIFY(check["greedy_tokens"].toInt() > 0);
    QCOMPARE(check["class"].toString(), modelClass);
    qInfo("%s: %.2e, %d of %d", qPrintable(package), check["logit_difference"].toDouble(),
          check["equal_tokens"].toInt(), check["greedy_tokens"].toInt());
    if (check["remark"].toString().isEmpty())
        QCOMPARE(check["equal_tokens"].toInt(), check["greedy_tokens"].toInt());
}

/// vLLM runs two of them in each layout: it takes half a minute to start.
void TestExport::isTheSameModel_data()
{
    QTest::addColumn<QString>("toy");
    QTest::addColumn<QString>("converter");
    QTest::addColumn<QString>("layout");
    QTest::addColumn<bool>("vllm"); ///< can run it
    const auto row = [](const char* toy, const char* converter, const char* layout, bool vllm) {
        QTest::addRow("%s %s %s", toy, converter, layout) << toy << converter << layout << vllm;
    };
    row("qwen2", "transmla", "huggingface", true);
    row("qwen2", "mha2mla", "huggingface", false); // heads of 16 dims
    row("qwen2", "transmla", "vllm-plugin", true);
    row("qwen2", "mha2mla", "vllm-plugin", true);
    row("qwen3", "mha2mla", "vllm-plugin", true);
    row("qwen2-window", "mha2mla", "vllm-plugin", true);
}

void TestExport::isTheSameModel()
{
    QFETCH(QString, toy);
    QFETCH(QString, converter);
    QFETCH(QString, layout);
    QFETCH(bool, vllm);
    const CliResult result = exported(draft(toy, converter), path(toy + converter + layout),
                                      {"--layout", layout, "--verify"});
    QVERIFY2(result.exitCode == 0, result.text().constData());
    const QJsonObject own = checkOf(result.json(), "mla-draft");
    QVERIFY(own["passed"].toBool());
    QCOMPARE(own["logit_difference"].toDouble(), 0.0);
    checkStack(checkOf(result.json(), "transformers"), "transformers", "MlaDraftForCausalLM");
    const QJsonObject served = checkOf(result.json(), "vllm");
    if (vllm)
        checkStack(served, "vllm",
                   layout == "huggingface" ? "TransformersForCausalLM" : "MlaDraftForCausalLM");
    else
        QVERIFY(!served["tried"].toBool());
}

void TestExport::castsAreVerified_data()
{
    QTest::addColumn<QString>("dtype");
    QTest::addColumn<double>("bound");
    QTest::newRow("fp32") << "fp32" << kBound;
    QTest::newRow("fp16") << "fp16" << 0.05;
    QTest::newRow("bf16") << "bf16" << 0.4;
}

void TestExport::castsAreVerified()
{
    QFETCH(QString, dtype);
    QFETCH(double, bound);
    const QString to = path("cast-" + dtype);
    const CliResult result = exported(
        draft("llama", "transmla"), to,
        {"--layout", "huggingface", "--dtype", dtype, "--verify", "--python", path("none")});
    QVERIFY2(result.exitCode == 0, result.text().constData());
    const double difference = result.json().value("max_logit_difference").toDouble();
    qInfo("%s: %.4f", qPrintable(dtype), difference);
    QVERIFY(difference <= bound);
    QVERIFY((difference == 0) == (dtype == "fp32"));
    const auto written = must(Checkpoint::open(to.toStdString()));
    for (const std::string& name : written.names())
        QCOMPARE(dtypeName(must(written.info(name)).dtype),
                 std::string_view(dtype == "fp32"   ? "F32"
                                  : dtype == "fp16" ? "F16"
                                                    : "BF16"));
}

void TestExport::directoryIsWhole()
{
    const QString from = draft("llama", "transmla"), to = path("whole");
    const QStringList travelling = {"special_tokens_map.json",
                                    "added_tokens.json",
                                    "vocab.json",
                                    "merges.txt",
                                    "chat_template.jinja",
                                    "chat_template.json",
                                    "tokenizer.model",
                                    "generation_config.json"};
    const QString copy = path("with-companions");
    QVERIFY(QDir().mkpath(copy + "/mla_draft"));
    for (const QString& folder : {QString(), QString("mla_draft/")})
        for (const QString& name : QDir(from + "/" + folder).entryList(QDir::Files))
            QVERIFY(QFile::copy(from + "/" + folder + name, copy + "/" + folder + name));
    for (const QString& name : travelling)
        if (!QFileInfo::exists(copy + "/" + name))
            QVERIFY(writeText(copy + "/" + name, name == "generation_config.json"
                                                     ? "{\"eos_token_id\": 2}"
                                                     : "{\"x\": 1}"));
    const CliResult result = exported(copy, to, {"--layout", "vllm-plugin"});
    QVERIFY2(result.exitCode == 0, result.text().constData());
    for (const QString& name : travelling + QStringList{"tokenizer.json", "tokenizer_config.json"})
        QCOMPARE(contentOf(to + "/" + name), contentOf(copy + "/" + name));
    for (const char* name :
         {"vllm_mla_draft/pyproject.toml", "vllm_mla_draft/vllm_mla_draft/model.py",
          "vllm_mla_draft/vllm_mla_draft/configuration_mla_draft.py",
          "vllm_mla_draft/vllm_mla_draft/modeling_mla_draft.py", "README.md"}) {
        QVERIFY2(QFileInfo(to + "/" + name).size() > 0, name);
        QVERIFY2(!QFileInfo(to + "/" + name).isSymLink(), name);
    }
    const QByteArray card = contentOf(to + "/README.md");
    QVERIFY(card.startsWith("---\nlibrary_name: transformers\n"));
    for (const char* said : {"transmla", "toy-llama", "56 of the original's 64", "vllm_mla_draft",
                             "from_pretrained", "mla-draft-workbench", "licence"})
        QVERIFY2(card.contains(said), said);
    QVERIFY(!card.contains(m_dir.path().toUtf8())); // nobody's folders
}

void TestExport::studyKnowsTheExport()
{
    const QString study = path("study.h5"), to = path("recorded");
    const QString from = draft("llama", "transmla");
    const CliResult result = exported(
        from, to,
        {"--layout", "huggingface", "--verify", "--study", study, "--python", path("none")});
    QVERIFY2(result.exitCode == 0, result.text().constData());
    const StudyData stored = must(loadStudy(study.toStdString()));
    QCOMPARE(stored.exports.size(), std::size_t(1));
    const ExportRecord& record = stored.exports.front();
    QVERIFY(stored.findRun(record.run) != nullptr);
    QCOMPARE(record.layout, std::string("huggingface"));
    QCOMPARE(record.path, to.toStdString());
    QCOMPARE(record.checks.size(), std::size_t(3));
    QCOMPARE(record.checks[0].stack, std::string("mla-draft"));
    QVERIFY(record.checks[0].passed);
    QVERIFY(!record.checks[1].tried());
    QVERIFY(!record.keeps.empty());
    QVERIFY(contentOf(to + "/README.md").contains("## Fidelity"));
    const QJsonObject report =
        QJsonDocument::fromJson(contentOf(to + "/verification.json")).object();
    QCOMPARE(report["checks"].toArray().size(), 3);
}

void TestExport::weightsAreSharded()
{
    const QString from = draft("llama", "mha2mla"), to = path("sharded");
    const CliResult result = exported(from, to,
                                      {"--layout", "huggingface", "--max-shard-size", "100KB",
                                       "--verify", "--python", path("none")});
    QVERIFY2(result.exitCode == 0, result.text().constData());
    QCOMPARE(result.json().value("max_logit_difference").toDouble(), 0.0);
    QVERIFY(!QFileInfo::exists(to + "/model.safetensors"));
    const QJsonObject index =
        QJsonDocument::fromJson(contentOf(to + "/model.safetensors.index.json")).object();
    const QStringList files = QDir(to).entryList({"model-*-of-*.safetensors"});
    QVERIFY(files.size() > 1);
    QSet<QString> named;
    for (const QJsonValue& file : index["weight_map"].toObject())
        named << file.toString();
    QCOMPARE(named, QSet<QString>(files.begin(), files.end()));
    std::int64_t total = 0; // of fp32 tensors; the embedding alone is larger than a shard
    const auto written = must(Checkpoint::open(to.toStdString()));
    for (const std::string& name : written.names())
        total += written.storedBytes(name);
    QCOMPARE(std::int64_t(index["metadata"]["total_size"].toInteger()), total);
    QCOMPARE(exported(from, path("never"), {"--layout", "huggingface", "--max-shard-size", "big"})
                 .exitCode,
             2);
}

void TestExport::withoutPythonOnlyOurEngine()
{
    const CliResult result =
        exported(draft("llama", "mha2mla"), path("alone"),
                 {"--layout", "huggingface", "--verify", "--python", path("none")});
    QVERIFY2(result.exitCode == 0, result.text().constData());
    QCOMPARE(result.json().value("warnings").toArray().size(), 2);
    for (const char* stack : {"transformers", "vllm"})
        QVERIFY(checkOf(result.json(), stack)["remark"].toString().startsWith("not tried: "));
}

/// What is not the same model is found, whichever stack computes it.
void TestExport::anotherModelFails()
{
    const auto first = must(Checkpoint::open(draft("llama", "mha2mla").toStdString()));
    const std::filesystem::path second = draft("llama", "transmla").toStdString();
    const TokenWindows windows = {{1, 5, 300, 7, 91}, {1, 44, 45, 46}};
    ComputeSettings compute;
    compute.device = "cpu";
    JobContext job;
    const auto checks =
        verifyExport(job, {first, second, "huggingface", kExactBound, windows, compute});
    QVERIFY(!checks.ok());
    QCOMPARE(checks.error().code, ErrorCode::ComputeFailed);
    QVERIFY(checks.error().message.find("mla-draft") != std::string::npos);
}

void TestExport::numbersBeyondFp16()
{
    const QString from = draft("llama", "transmla"), changed = path("huge");
    QVERIFY(QDir().mkpath(changed + "/mla_draft"));
    for (const QString& folder : {QString(), QString("mla_draft/")})
        for (const QString& name : QDir(from + "/" + folder).entryList(QDir::Files))
            QVERIFY(QFile::copy(from + "/" + folder + name, changed + "/" + folder + name));
    const auto weights = must(Checkpoint::open(from.toStdString()));
    std::vector<std::pair<std::string, torch::Tensor>> tensors;
    for (const std::string& name : weights.names())
        tensors.emplace_back(name, must(loadTensor(weights, name, torch::kFloat32)));
    tensors.front().second.flatten()[0] = 1e6;
    std::vector<TensorView> views;
    for (const auto& [name, tensor] : tensors)
        views.push_back(viewOf(name, tensor));
    must(writeSafetensors((changed + "/model.safetensors").toStdString(), views));
    const QString to = path("halved");
    const CliResult result = exported(changed, to, {"--layout", "huggingface", "--dtype", "fp16"});
    QVERIFY2(result.exitCode == 3, result.text().constData());
    QVERIFY(result.err.contains(tensors.front().first.c_str()));
    QVERIFY(!QFileInfo::exists(to));
}

void TestExport::dryRunWritesNothing()
{
    const CliResult result = runCli(
        {"export", draft("llama", "mha2mla"), "--layout", "huggingface", "--dry-run", "--json"});
    QVERIFY2(result.exitCode == 0, result.text().constData());
    QVERIFY(result.json().value("keeps").toArray().size() > 1);
    // Heads of 8 + 8 dims.
    QVERIFY(result.json().value("loses").toArray().last().toString().contains("width 16"));
    QCOMPARE(runCli({"export", demoCheckpoint(), "--layout", "huggingface", "--dry-run"}).exitCode,
             3);
    QCOMPARE(runCli({"export", draft("llama", "mha2mla"), "--layout", "huggingface"}).exitCode, 2);
}

QTEST_GUILESS_MAIN(TestExport)
#include "tst_export.moc"
