// SPDX-License-Identifier: GPL-3.0-or-later
// `--layout deepseek`: drafts become checkpoints that the stock classes of Transformers and vLLM
// load without code of ours, and compute there what the draft does.
#include "tests/support/toy_checkpoint.h"

#include <QDir>
#include <QTemporaryDir>

#include <cmath>

#include "core/pipeline/pipeline.h"
#include "tests/support/cli_program.h"

using namespace mla;
using namespace mla::test;
using torch::Tensor;

namespace
{

namespace fs = std::filesystem;
constexpr double kLogitTolerance = 2e-3; ///< of the logits' standard deviation

ComputeSettings onCpu()
{
    ComputeSettings compute;
    compute.device = "cpu";
    return compute;
}

Tensor story()
{
    return Goldens("model_stories260K.safetensors")("input_ids", torch::kInt64)
        .narrow(0, 0, 1)
        .contiguous();
}

double spreadDifference(const Tensor& a, const Tensor& b)
{
    return maxDifference(a, b) / b.std().item<double>();
}

} // namespace

class TestDeepseekExport : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase();
    void largeLossIsRefused();
    void refinedThroughTheNormIsExact();
    void onlySomeLayersAreRefined();
    void largeBiases();
    void isRefused();
    void missingNormIsRefused();
    void sameInTransformers_data();
    void sameInTransformers();

private:
    [[nodiscard]] fs::path path(const std::string& name) const
    {
        return fs::path(m_folder.path().toStdString()) / name;
    }
    void convert(const fs::path& source, const std::string& name, int rank, int ropeDim) const;
    [[nodiscard]] RefineRequest refinement(const std::string& draft,
                                           const std::string& output) const;
    [[nodiscard]] Result<ExportOutcome> exported(const std::string& draft,
                                                 const std::string& output) const;
    QTemporaryDir m_folder;
};

void TestDeepseekExport::convert(const fs::path& source, const std::string& name, int rank,
                                 int ropeDim) const
{
    ConvertRequest request;
    request.checkpoint = source;
    request.output = path(name);
    request.settings.kvLoraRank = rank;
    request.settings.qkRopeHeadDim = ropeDim;
    request.calibration = {"self", 16, 64};
    request.compute = onCpu();
    JobContext job;
    must(convertCheckpoint(job, request));
}

RefineRequest TestDeepseekExport::refinement(const std::string& draft,
                                             const std::string& output) const
{
    RefineRequest request;
    request.draft = path(draft);
    request.original = stories();
    request.output = path(output);
    request.settings.steps = 20;
    request.settings.batchTokens = 256;
    request.compute = onCpu();
    request.layout = "deepseek";
    return request;
}

Result<ExportOutcome> TestDeepseekExport::exported(const std::string& draft,
                                                   const std::string& output) const
{
    ExportRequest request;
    request.draft = path(draft);
    request.output = path(output);
    request.layout = "deepseek";
    request.compute = onCpu();
    JobContext job;
    return exportDraft(job, request);
}

void TestDeepseekExport::initTestCase()
{
    useOneThread();
    convert(stories(), "plain", 28, 4);
    writeToy("qwen2", path("toy-qwen2"));
    convert(path("toy-qwen2"), "biased", 40, 8);
}

/// A model of 64 dims has no good constant (it varies by 10 %): the loss is told, nothing written.
void TestDeepseekExport::largeLossIsRefused()
{
    const auto refused = exported("plain", "stock-plain");
    QVERIFY(!refused.ok());
    QCOMPARE(refused.error().code, ErrorCode::BadInput);
    QVERIFY(refused.error().text().find("KL") != std::string::npos);
    QVERIFY(refused.error().text().find("refine") != std::string::npos);
    QVERIFY(!fs::exists(path("stock-plain")));
}

/// Five dense layers and a tied head become one stock checkpoint that computes the same.
void TestDeepseekExport::refinedThroughTheNormIsExact()
{
    JobContext job;
    const RunOutcome refined = must(refineDraft(job, refinement("plain", "through")));
    QVERIFY(refined.run.id.ends_with("/functional-deepseek"));
    QCOMPARE(refined.run.kvLoraRank, 29);
    double before = 0, after = 0;
    for (const LayerRecord& layer : refined.run.layers) {
        before += layer.before->relativeError;
        after += layer.after->relativeError;
    }
    QVERIFY(after < before);
    const Checkpoint draft = must(Checkpoint::open(refined.output));
    QVERIFY(draft.config().mla->latentNorm);
    const ExportOutcome outcome = must(exported("through", "stock-through"));
    QVERIFY(outcome.loss->exact && outcome.record.loses.empty());
    QVERIFY(outcome.loss->kl < 1e-6);
    // Of the two held-out sequences the original's texts accept what they accepted of the draft.
    QVERIFY(outcome.loss->acceptance.has_value());
    QCOMPARE(outcome.loss->acceptance->prompts, 2);
    QVERIFY(outcome.loss->acceptance->draft > 0);
    QCOMPARE(outcome.loss->acceptance->exported, outcome.loss->acceptance->draft);
    const std::string& said = outcome.record.keeps.back();
    QVERIFY2(said.find("acceptance by the original") != std::string::npos, said.c_str());
    const torch::NoGradGuard noGrad;
    const Tensor expected = openModel(refined.output).logits(story());
    QVERIFY(spreadDifference(openModel(outcome.output).logits(story()), expected) < 1e-4);
    const Checkpoint stock = must(Checkpoint::open(outcome.output));
    QCOMPARE(stock.config().cacheElements(0), std::int64_t{30 + 4});
    QVERIFY(!stock.tiedHead());
    QVERIFY(!fs::exists(outcome.output / "modeling_mla_draft.py"));
    QVERIFY(fs::exists(outcome.output / "tokenizer.json"));

    // Once more, in the same layout: the norm is there already.
    RefineRequest again = refinement("through", "again");
    again.settings.steps = 1;
    QCOMPARE(must(refineDraft(job, again)).run.kvLoraRank, 29);
}

/// The others get the norm and nothing else.
void TestDeepseekExport::onlySomeLayersAreRefined()
{
    RefineRequest request = refinement("plain", "some-layers");
    request.settings.layers = LayerRange{1, 2};
    request.settings.steps = 2;
    JobContext job;
    const RunOutcome outcome = must(refineDraft(job, request));
    QCOMPARE(outcome.run.layers.size(), std::size_t{2});
    QVERIFY(must(exported("some-layers", "stock-some")).loss->exact);
}

/// Case A3, k_proj.bias all 50: no bias is dropped silently. As it is the draft is refused for its
/// loss; refined through the norm it is exported as it was refined.
void TestDeepseekExport::largeBiases()
{
    const auto plain = exported("biased", "stock-biased-plain");
    QVERIFY(!plain.ok());
    QVERIFY(plain.error().text().find("KL") != std::string::npos);
    RefineRequest request = refinement("biased", "biased-through");
    request.original = path("toy-qwen2");
    JobContext job;
    const Checkpoint refined = must(Checkpoint::open(must(refineDraft(job, request)).output));
    QVERIFY(!refined.config().mla->queryBias && !refined.config().mla->kvDownBias);
    QVERIFY(must(exported("biased-through", "stock-biased")).loss->kl < 1e-6);
}

void TestDeepseekExport::isRefused()
{
    const QString converted = m_folder.filePath("mha2mla");
    const CliResult made =
        runCli({"convert", demoCheckpoint(), "-o", converted, "--converter", "mha2mla",
                "--kv-lora-rank", "16", "--qk-rope-head-dim", "4", "--calibration", "self",
                "--sequences", "8", "--length", "48", "--json"});
    QVERIFY2(made.exitCode == 0, made.text());
    const QString out = m_folder.filePath("never");
    for (const QStringList& command :
         {QStringList{"export", converted, "-o", out, "--layout", "deepseek"},
          QStringList{"refine", converted, "--original", demoCheckpoint(), "-o", out, "--objective",
                      "functional", "--layout", "deepseek"}}) {
        const CliResult refused = runCli(command + QStringList{"--json"});
        QCOMPARE(refused.exitCode, 3);
        QVERIFY2(refused.err.contains("4 rotary key heads"), refused.text());
        QVERIFY(!QDir(out).exists());
    }
}

/// Case A1: stock code applies kv_a_layernorm, so a checkpoint without it is none.
void TestDeepseekExport::missingNormIsRefused()
{
    fs::copy(path("stock-through"), path("no-norm"));
    const SafetensorsFile file =
        must(SafetensorsFile::open(path("stock-through") / "model.safetensors"));
    std::vector<std::pair<std::string, Tensor>> kept;
    for (const auto& [name, info] : file.tensors())
        if (!name.ends_with("kv_a_layernorm.weight"))
            kept.emplace_back(name, must(loadTensor(file, name, torch::kFloat32)));
    std::vector<TensorView> views;
    for (const auto& [name, tensor] : kept)
        views.push_back(viewOf(name, tensor));
    must(writeSafetensors(path("no-norm") / "model.safetensors", views));
    const auto refused = Checkpoint::open(path("no-norm"));
    QVERIFY(!refused.ok());
    QVERIFY(refused.error().text().find("kv_a_layernorm") != std::string::npos);
}

void TestDeepseekExport::sameInTransformers_data()
{
    QTest::addColumn<QString>("name");
    for (const char* name : {"stock-through", "stock-biased"})
        QTest::newRow(name) << name;
}

/// Without trust_remote_code, against our own engine on the same files.
void TestDeepseekExport::sameInTransformers()
{
    QFETCH(QString, name);
    const QString python = qEnvironmentVariable("MLA_PYTHON");
    if (python.isEmpty())
        QSKIP("MLA_PYTHON does not name a Python with transformers");
    const Tensor ids = story();
    QStringList words;
    for (const std::int64_t id : std::vector<std::int64_t>(
             ids.data_ptr<std::int64_t>(), ids.data_ptr<std::int64_t>() + ids.numel()))
        words << QString::number(id);
    QProcess process;
    process.start(python, {MLA_TEST_DATA "/support/hf_logits.py", m_folder.filePath(name), "--ids",
                           words.join(','), "--out", m_folder.path(), "--stock"});
    const CliResult theirs = finished(process, 280);
    QVERIFY2(theirs.exitCode == 0, theirs.text());
    QCOMPARE(theirs.json()["model_class"].toString(), QString("DeepseekV2ForCausalLM"));
    const int rank = must(Checkpoint::open(path(name.toStdString()))).config().mla->latentRank[0];
    const int ropeDim = name == "stock-biased" ? 8 : 4;
    for (const QJsonValue& elements : theirs.json()["cache_elements"].toArray())
        QCOMPARE(elements.toInt(), rank + ropeDim);
    const SafetensorsFile file =
        must(SafetensorsFile::open(path(name.toStdString() + ".safetensors")));
    const torch::NoGradGuard noGrad;
    const Tensor ours = openModel(path(name.toStdString())).logits(ids)[0];
    const Tensor logits = must(loadTensor(file, "logits", torch::kFloat32));
    const double difference = spreadDifference(ours, logits);
    qInfo("%s: %.2g of the spread", qPrintable(name), difference);
    QVERIFY(difference <= kLogitTolerance);
}

QTEST_GUILESS_MAIN(TestDeepseekExport)
#include "tst_deepseek_export.moc"
