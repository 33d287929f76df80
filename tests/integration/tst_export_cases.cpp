// SPDX-License-Identifier: GPL-3.0-or-later
// What exports of other tools got wrong, on the smallest models that show it: defaults of stock
// loaders, rotary scaling far out, caches that grow beyond what was promised, layouts that cannot
// hold a draft.
#include <cmath>

#include "tests/support/toy_checkpoint.h"

#include <QDir>
#include <QFileInfo>
#include <QTemporaryDir>

#include "tests/support/cli_program.h"

using namespace mla;
using namespace mla::test;
using torch::Tensor;

namespace
{

namespace fs = std::filesystem;
constexpr double kLogitTolerance = 2e-3; ///< of the logits' standard deviation
constexpr int kNewTokens = 1000;

QString python()
{
    return qEnvironmentVariable("MLA_PYTHON");
}

QString joined(const Tensor& ids)
{
    QStringList words;
    for (std::int64_t i = 0; i < ids.numel(); ++i)
        words << QString::number(ids[i].item<std::int64_t>());
    return words.join(',');
}

CliResult converted(const QString& source, const QString& output, const QStringList& shape)
{
    return runCli(QStringList{"convert", source, "-o", output, "--calibration", "self",
                              "--sequences", "16", "--length", "48", "--json", "--converter"} +
                  shape);
}

QStringList transmla(int rank, int ropeDim)
{
    return {"transmla", "--kv-lora-rank", QString::number(rank), "--qk-rope-head-dim",
            QString::number(ropeDim)};
}

QStringList mha2mla(int rank, int ropeDim)
{
    return {"mha2mla", "--kv-lora-rank", QString::number(rank), "--qk-rope-head-dim",
            QString::number(ropeDim)};
}

QJsonObject jsonOf(const QString& path)
{
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly))
        return {};
    return QJsonDocument::fromJson(file.readAll()).object();
}

} // namespace

class TestExportCases : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase();
    void everyLayerIsDenseInStockLoaders();
    void scaledRotationFarOut_data();
    void scaledRotationFarOut();
    void cacheHoldsTheLatentOnly_data();
    void cacheHoldsTheLatentOnly();
    void stockWeightsAreSharded();
    void noLayoutHoldsIt();

private:
    [[nodiscard]] QString path(const QString& name) const { return m_dir.filePath(name); }
    QString toy(const QString& kind);
    CliResult refinedThroughTheNorm(const QString& kind, const QString& output);
    CliResult inTransformers(const QString& directory, const QStringList& options);
    QTemporaryDir m_dir;
};

void TestExportCases::initTestCase()
{
    qputenv("HF_HOME", path("hf").toUtf8()); // Transformers copies the directories' code there
}

QString TestExportCases::toy(const QString& kind)
{
    const QString folder = path("toy-" + kind);
    if (!QFileInfo::exists(folder))
        writeToy(kind.toStdString(), folder.toStdString());
    return folder;
}

CliResult TestExportCases::refinedThroughTheNorm(const QString& kind, const QString& output)
{
    const QString plain = output + "-plain";
    const CliResult made = converted(toy(kind), plain, transmla(40, 16));
    if (made.exitCode != 0)
        return made;
    return runCli({"refine", plain, "--original", toy(kind), "-o", output, "--objective",
                   "functional", "--layout", "deepseek", "--steps", "2", "--batch-tokens", "192",
                   "--json"});
}

CliResult TestExportCases::inTransformers(const QString& directory, const QStringList& options)
{
    QProcess process;
    process.start(python(), QStringList{MLA_TEST_DATA "/support/hf_logits.py", directory, "--out",
                                        m_dir.path()} +
                                options);
    return finished(process, 280);
}

/// Case A2: stock loaders make every layer from the fourth on a mixture of experts, and KV heads
/// by division, unless the configuration says otherwise.
void TestExportCases::everyLayerIsDenseInStockLoaders()
{
    const CliResult refined = refinedThroughTheNorm("deep", path("deep"));
    QVERIFY2(refined.exitCode == 0, refined.text());
    const QString stock = path("stock-deep");
    const CliResult result =
        runCli({"export", path("deep"), "-o", stock, "--layout", "deepseek", "--verify", "--json"});
    QVERIFY2(result.exitCode == 0, result.text());
    const QJsonObject config = jsonOf(stock + "/config.json");
    QCOMPARE(config["model_type"].toString(), QString("deepseek_v2"));
    QCOMPARE(config["num_hidden_layers"].toInt(), 4);
    QCOMPARE(config["first_k_dense_replace"].toInt(), 4);
    QCOMPARE(config["num_key_value_heads"].toInt(), config["num_attention_heads"].toInt());
    QVERIFY(config["n_routed_experts"].isDouble()); // an integer, not null
    const QJsonArray checks = result.json()["checks"].toArray();
    QCOMPARE(checks.size(), 3);
    for (const QJsonValue& check : checks) {
        if (!check["tried"].toBool()) {
            QVERIFY(check["remark"].toString().startsWith("not tried: "));
            continue;
        }
        QVERIFY2(check["passed"].toBool(), qPrintable(check["stack"].toString()));
        QVERIFY(check["logit_difference"].toDouble() <= kLogitTolerance);
        if (check["stack"] != "mla-draft")
            QCOMPARE(check["class"].toString(), QString("DeepseekV2ForCausalLM"));
    }
}

void TestExportCases::scaledRotationFarOut_data()
{
    QTest::addColumn<QStringList>("shape");
    QTest::newRow("transmla") << transmla(40, 8);
    QTest::newRow("mha2mla") << mha2mla(20, 8);
}

/// Case A5: llama3's scaling of the frequencies, at position 9000.
void TestExportCases::scaledRotationFarOut()
{
    QFETCH(QStringList, shape);
    const QString name = QString("llama3-") + QTest::currentDataTag();
    const CliResult made = converted(toy("llama3"), path(name), shape);
    QVERIFY2(made.exitCode == 0, made.text());

    // The stock layout would make YaRN of it.
    const CliResult refused =
        runCli({"export", path(name), "-o", path("never"), "--layout", "deepseek", "--json"});
    QCOMPARE(refused.exitCode, 3);
    QVERIFY2(refused.err.contains(shape.front() == "transmla" ? "llama3" : "rotary key heads"),
             refused.text());
    QVERIFY(!QFileInfo::exists(path("never")));

    const QString exported = path(name + "-hf");
    const CliResult written =
        runCli({"export", path(name), "-o", exported, "--layout", "huggingface", "--json"});
    QVERIFY2(written.exitCode == 0, written.text());
    if (python().isEmpty())
        QSKIP("MLA_PYTHON does not name a Python with transformers");
    torch::Generator generator = seededGenerator(5, 0);
    const Tensor ids = torch::randint(3, 500, {9001}, generator, torch::dtype(torch::kInt64));
    const CliResult theirs = inTransformers(exported, {"--ids", joined(ids)});
    QVERIFY2(theirs.exitCode == 0, theirs.err.right(2000));
    const torch::NoGradGuard noGrad;
    const Tensor ours = openModel(exported.toStdString()).logits(ids.unsqueeze(0))[0];
    const SafetensorsFile file =
        must(SafetensorsFile::open(path(name + "-hf.safetensors").toStdString()));
    const Tensor logits = must(loadTensor(file, "logits", torch::kFloat32));
    const Tensor last = (ours - logits)[9000].abs().max() / logits.std();
    qInfo("%s: %.2g of the spread at position 9000", QTest::currentDataTag(), last.item<double>());
    QVERIFY(last.item<double>() <= kLogitTolerance);
    QVERIFY(maxDifference(ours, logits) / logits.std().item<double>() <= kLogitTolerance);
}

void TestExportCases::cacheHoldsTheLatentOnly_data()
{
    QTest::addColumn<QStringList>("shape");
    QTest::addColumn<int>("elements"); ///< r + n_r d_r
    QTest::newRow("transmla") << transmla(28, 4) << 28 + 4;
    QTest::newRow("mha2mla") << mha2mla(16, 4) << 16 + 4 * 4;
}

/// After a thousand decoded tokens Transformers' cache holds what was promised, counted.
void TestExportCases::cacheHoldsTheLatentOnly()
{
    QFETCH(QStringList, shape);
    QFETCH(int, elements);
    if (python().isEmpty())
        QSKIP("MLA_PYTHON does not name a Python with transformers");
    const QString draft = path(QString("stories-") + QTest::currentDataTag());
    const CliResult made = converted(demoCheckpoint(), draft, shape);
    QVERIFY2(made.exitCode == 0, made.text());
    const CliResult theirs =
        inTransformers(draft, {"--ids", "1,403,407,261", "--decode", QString::number(kNewTokens)});
    QVERIFY2(theirs.exitCode == 0, theirs.text());
    const QJsonObject decoded = theirs.json()["decoded"].toObject();
    const int tokens = decoded["tokens"].toInt(); // the last one need not be cached
    QVERIFY(tokens >= kNewTokens + 3);
    const QJsonArray layers = decoded["elements"].toArray();
    QCOMPARE(layers.size(), 5);
    for (const QJsonValue& held : layers)
        QCOMPARE(held.toInt(), tokens * elements);
}

void TestExportCases::stockWeightsAreSharded()
{
    const CliResult refined = refinedThroughTheNorm("llama", path("through"));
    QVERIFY2(refined.exitCode == 0, refined.text());
    const auto exported = [&](const char* name, const char* size) {
        return runCli({"export", path("through"), "-o", path(name), "--layout", "deepseek",
                       "--max-shard-size", size, "--json"});
    };
    const CliResult whole = exported("one-file", "5GB"), parts = exported("shards", "100KB");
    QVERIFY2(whole.exitCode == 0, whole.text());
    QVERIFY2(parts.exitCode == 0, parts.text());
    const QString index = path("shards/model.safetensors.index.json");
    const QJsonObject map = jsonOf(index)["weight_map"].toObject();
    QVERIFY(QDir(path("shards")).entryList({"model-*-of-*.safetensors"}).size() > 1);
    const Checkpoint one = must(Checkpoint::open(path("one-file").toStdString()));
    const Checkpoint many = must(Checkpoint::open(path("shards").toStdString()));
    QCOMPARE(std::size_t(map.size()), one.names().size());
    for (const std::string& name : one.names())
        QVERIFY2(torch::equal(must(loadTensor(one, name, torch::kFloat32)),
                              must(loadTensor(many, name, torch::kFloat32))),
                 name.c_str());
}

/// An export in the stock layout is no draft of this program any more: every layout says so.
void TestExportCases::noLayoutHoldsIt()
{
    const QString stock = path("one-file");
    if (!QFileInfo::exists(stock))
        QSKIP("the export of an earlier test is missing");
    for (const char* layout : {"huggingface", "vllm-plugin", "deepseek"}) {
        const CliResult refused =
            runCli({"export", stock, "-o", path("again"), "--layout", layout, "--json"});
        QVERIFY2(refused.exitCode == 3, refused.text());
        QVERIFY2(refused.error()["message"].toString().contains(layout), refused.text());
        QVERIFY2(refused.err.contains("refine it"), refused.text());
        QVERIFY(!QFileInfo::exists(path("again")));
    }
}

QTEST_GUILESS_MAIN(TestExportCases)
#include "tst_export_cases.moc"
