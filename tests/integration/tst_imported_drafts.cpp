// SPDX-License-Identifier: GPL-3.0-or-later
// A draft that another tool wrote opens like any other: drafts of the demo checkpoint are rewritten
// in the layouts of TransMLA and MHA2MLA and go through every command.
#include "core/export/imported_draft.h"
#include "core/model/layer_loading.h"
#include "core/pipeline/draft_diagnostics.h"
#include "core/pipeline/pipeline.h"
#include "tests/support/numeric.h"

#include <QTemporaryDir>
#include <QTest>

using namespace mla;
using namespace mla::test;
using torch::Tensor;

namespace
{

namespace fs = std::filesystem;
using nlohmann::json;
using Named = std::vector<std::pair<std::string, Tensor>>;

const CalibrationSettings kCalibration{"self", 8, 48};

ComputeSettings onCpu()
{
    ComputeSettings compute;
    compute.device = "cpu";
    return compute;
}

json readJson(const fs::path& path)
{
    std::ifstream in(path);
    return json::parse(in);
}

/// Halves of each head's rotary rows to interleaved pairs.
Tensor interleaved(const Tensor& rows, int heads)
{
    return rows.view({heads, 2, -1, rows.size(1)}).transpose(1, 2).reshape(rows.sizes());
}

/// TransMLA: queries scaled for a score scale of (d_n + d_r)^-1/2, rotary rows interleaved.
Named transMlaTensors(const MlaBlock& b)
{
    const int wide = b.nopeDim + b.ropeDim;
    const Tensor q = b.wq.view({b.heads, wide, -1}) * (b.scale * std::sqrt(double(wide)));
    const Tensor rotary =
        interleaved(q.narrow(1, b.nopeDim, b.ropeDim).reshape({b.heads * b.ropeDim, -1}), b.heads);
    const Tensor query =
        torch::cat({q.narrow(1, 0, b.nopeDim), rotary.view({b.heads, b.ropeDim, -1})}, 1);
    Named all = {{"q_proj.weight", query.flatten(0, 1).contiguous()},
                 {"kv_a_proj_with_mqa.weight", torch::cat({b.wdkv, interleaved(b.wkr, 1)}, 0)},
                 {"o_proj.weight", b.wo}};
    for (auto& [name, tensor] : draftTensors(b))
        if (name == "kv_b_proj.weight")
            all.emplace_back(name, tensor);
    return all;
}

/// MHA2MLA: the rotary rows of all query heads first.
Named mha2MlaTensors(const MlaBlock& b)
{
    const Tensor q = b.wq.view({b.heads, b.nopeDim + b.ropeDim, -1});
    return {{"q_proj.weight", torch::cat({q.narrow(1, b.nopeDim, b.ropeDim).flatten(0, 1),
                                          q.narrow(1, 0, b.nopeDim).flatten(0, 1)})},
            {"k_r_proj.weight", b.wkr},
            {"kv_proj.down_kv.weight", b.wdkv},
            {"kv_proj.up_k.weight", b.wuk},
            {"kv_proj.up_v.weight", b.wuv},
            {"o_proj.weight", b.wo}};
}

/// The source's config.json with the keys of the other tool.
json configFor(const std::string& converter)
{
    json config = readJson(stories() / "config.json");
    if (converter == "mha2mla") {
        config["mha2mla"] = {{"partial_rope_version", "high"}, {"rope_dim_for_mla", 4},
                             {"svd_init_method", "joint"},     {"low_rank", 4},
                             {"is_baseline", false},           {"is_gqa2mha2mla", false}};
        return config;
    }
    config.update({{"model_type", "deepseek_v3"},
                   {"architectures", {"LlamaMLAForCausalLM"}},
                   {"num_key_value_heads", 8},
                   {"attention_bias", false},
                   {"qk_rope_head_dim", 4},
                   {"head_dim", 4},
                   {"qk_nope_head_dim", 8},
                   {"v_head_dim", 8},
                   {"q_lora_rank", nullptr},
                   {"kv_lora_rank", 28},
                   {"qk_latent_layernorm", false}});
    return config;
}

/// Writes our draft `own` as the other tool would.
void rewrite(const std::string& converter, const fs::path& own, const fs::path& directory)
{
    const Checkpoint draft = must(Checkpoint::open(own));
    fs::create_directories(directory);
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
        fs::copy_file(own / name, directory / name);
    std::ofstream(directory / "config.json") << configFor(converter).dump(2);
    Named tensors;
    for (int i = 0; i < draft.config().numHiddenLayers; ++i) {
        const MlaBlock block = must(loadMlaBlock(draft, LayerIndex(i)));
        for (auto& [name, tensor] :
             converter == "transmla" ? transMlaTensors(block) : mha2MlaTensors(block))
            tensors.emplace_back(attentionPrefix(LayerIndex(i)) + name, tensor.contiguous());
    }
    for (const std::string& name : draft.names())
        if (name.find("self_attn") == std::string::npos)
            tensors.emplace_back(name, must(loadTensor(draft, name)));
    std::vector<TensorView> views;
    for (const auto& [name, tensor] : tensors)
        views.push_back(viewOf(name, tensor));
    must(writeSafetensors(directory / "model.safetensors", views));
}

} // namespace

class TestImportedDrafts : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase();
    void opens_data() { converters(); }
    void opens();
    void generates_data() { converters(); }
    void generates();
    void isRefined_data() { converters(); }
    void isRefined();
    void oneLayerIsRefined();
    void partialRope();
    void isAccepted_data() { converters(); }
    void isAccepted();
    void refusals();

private:
    static void converters();
    [[nodiscard]] fs::path path(const std::string& name) const
    {
        return fs::path(m_folder.path().toStdString()) / name;
    }
    [[nodiscard]] fs::path imported() const
    {
        return path("imported-" + std::string(QTest::currentDataTag()));
    }
    [[nodiscard]] RefineRequest refinement(const std::string& converter,
                                           const std::string& output) const;
    QTemporaryDir m_folder;
};

void TestImportedDrafts::converters()
{
    QTest::addColumn<QString>("converter");
    for (const char* name : {"transmla", "mha2mla"})
        QTest::newRow(name) << name;
}

void TestImportedDrafts::initTestCase()
{
    for (const std::string converter : {"transmla", "mha2mla"}) {
        ConvertRequest request;
        request.checkpoint = stories();
        request.output = path("own-" + converter);
        request.settings.converter = converter;
        request.settings.qkRopeHeadDim = 4;
        request.settings.kvLoraRank = converter == "transmla" ? 28 : 16;
        request.settings.freqfold = converter == "transmla" ? 2 : 0;
        if (converter == "mha2mla")
            request.settings.ropeSelect = "high";
        request.calibration = kCalibration;
        request.compute = onCpu();
        JobContext job;
        must(convertCheckpoint(job, request));
        rewrite(converter, request.output, path("imported-" + converter));
    }
}

void TestImportedDrafts::opens()
{
    const std::string converter = QTest::currentDataTag();
    const InspectReport report = must(inspectModel(imported()));
    QCOMPARE(report.attention, std::string("mla"));
    QCOMPARE(report.converter, std::optional(converter));
    QCOMPARE(report.cacheElementsPerTokenPerLayer, 32.0);
    const torch::NoGradGuard noGrad;
    const Tensor ids = Goldens("model_stories260K.safetensors")("input_ids", torch::kInt64);
    const Tensor own = openModel(path("own-" + converter)).logits(ids);
    QVERIFY(relativeDifference(openModel(imported()).logits(ids), own) < 1e-5);
}

void TestImportedDrafts::generates()
{
    const std::string converter = QTest::currentDataTag();
    GenerateRequest request;
    request.ids = {1, 403, 407};
    request.newTokens = 24;
    request.compute = onCpu();
    JobContext job;
    request.model = path("own-" + converter);
    const std::vector<int> expected = must(generateTokens(job, request));
    request.model = imported();
    QCOMPARE(must(generateTokens(job, request)), expected);

    const fs::path text = path("text");
    std::ofstream(text) << "Once upon a time there was a little dog. He liked to run in the park.";
    const auto perplexity = [&](const fs::path& model) {
        return must(measurePerplexity(job, model, text, 32, true, onCpu())).perplexity;
    };
    QVERIFY(std::abs(perplexity(imported()) / perplexity(request.model) - 1) < 1e-6);
    const auto fidelity = must(measureFidelity(job, imported(), stories(), kCalibration, onCpu()));
    QCOMPARE(fidelity.layers.size(), std::size_t{5});
    const auto sources =
        must(measureErrorSources(job, {imported(), stories(), kCalibration, onCpu(), {}}));
    QVERIFY(sources.note.noConversion.find("does not tell how") != std::string::npos);
    for (std::size_t i = 0; i < 5; ++i) {
        const ErrorSourcesRecord& parts = sources.layers[i].sources;
        QVERIFY(!parts.ropeOnly && !parts.rankOnly && !parts.refined);
        QCOMPARE(parts.both->relativeError, fidelity.layers[i].after->relativeError);
    }
    QVERIFY(fidelity.meanRelativeError > 0.01 && fidelity.meanRelativeError < 1.5);
}

RefineRequest TestImportedDrafts::refinement(const std::string& converter,
                                             const std::string& output) const
{
    RefineRequest request;
    request.draft = path("imported-" + converter);
    request.original = stories();
    request.output = path(output);
    request.settings.steps = 12;
    request.settings.batchTokens = 96;
    request.calibration = kCalibration;
    request.compute = onCpu();
    return request;
}

/// The result is a draft of ours: in our layout, with its provenance, closer to the original.
void TestImportedDrafts::isRefined()
{
    const std::string converter = QTest::currentDataTag();
    JobContext job;
    const RunOutcome outcome =
        must(refineDraft(job, refinement(converter, "refined-" + converter)));
    QVERIFY(!outcome.run.warnings.empty());
    QVERIFY(outcome.run.warnings.front().find(stories().string()) != std::string::npos);
    double before = 0, after = 0;
    for (const LayerRecord& layer : outcome.run.layers) {
        before += layer.before->relativeError;
        after += layer.after->relativeError;
    }
    QVERIFY(after < before);
    const Checkpoint refined = must(Checkpoint::open(outcome.output));
    QVERIFY(!isImported(refined));
    QCOMPARE(refined.config().numKeyValueHeads, 4);
    const json config = readJson(outcome.output / "config.json");
    for (const char* key : {"kv_lora_rank", "q_lora_rank", "qk_latent_layernorm", "mha2mla"})
        QVERIFY2(!config.contains(key), key);
    const DraftMeta meta = must(readDraftMeta(outcome.output));
    QCOMPARE(meta.sourcePath, fs::absolute(stories()).lexically_normal().string());
    QVERIFY(!meta.sourceFingerprint.empty());

    // Refined once more, it is a draft like any other.
    RefineRequest again = refinement(converter, "again-" + converter);
    again.draft = outcome.output;
    again.calibration.reset();
    again.settings.steps = 1;
    QVERIFY(must(refineDraft(job, again)).run.warnings.empty());
}

/// Layers outside the range come over as they are.
void TestImportedDrafts::oneLayerIsRefined()
{
    RefineRequest request = refinement("transmla", "one-layer");
    request.settings.layers = LayerRange{2, 2};
    request.settings.steps = 1;
    JobContext job;
    const RunOutcome outcome = must(refineDraft(job, request));
    const Checkpoint before = must(Checkpoint::open(request.draft));
    const Checkpoint after = must(Checkpoint::open(outcome.output));
    for (const int layer : {0, 1, 3, 4}) {
        const MlaBlock a = must(loadMlaBlock(before, LayerIndex(layer)));
        const MlaBlock b = must(loadMlaBlock(after, LayerIndex(layer)));
        QVERIFY(identical(a.wq, b.wq) && identical(a.wkr, b.wkr) && identical(a.wuv, b.wuv));
        QCOMPARE(a.scale, b.scale);
    }
}

/// The baseline needs to know which dim is which: MHA2MLA's config tells, TransMLA's does not.
void TestImportedDrafts::partialRope()
{
    JobContext job;
    RefineRequest request = refinement("mha2mla", "partial-mha2mla");
    request.settings.objective = "partial-rope";
    request.settings.steps = 4;
    const RunOutcome outcome = must(refineDraft(job, request));
    QVERIFY(*outcome.run.layers.front().lossAfter <= *outcome.run.layers.front().lossBefore);
    request = refinement("transmla", "partial-transmla");
    request.settings.objective = "partial-rope";
    const auto refused = refineDraft(job, request);
    QVERIFY(!refused.ok());
    QVERIFY(refused.error().text().find("TransMLA") != std::string::npos);
}

void TestImportedDrafts::isAccepted()
{
    AcceptRequest request;
    request.target = stories();
    request.draft = imported();
    request.settings.tasks = {fs::path(MLA_RESOURCES) / "demo" / "tasks" / "animals.jsonl"};
    request.settings.limit = 2;
    request.settings.maxNewTokens = 16;
    request.compute = onCpu();
    JobContext job;
    const AcceptOutcome outcome = must(measureAcceptance(job, request));
    QVERIFY(outcome.pooled.metrics.draftTokens > 0);
    QVERIFY(outcome.warnings.empty());
}

void TestImportedDrafts::refusals()
{
    JobContext job;
    const auto text = [](const Error& error) { return error.text(); };
    const auto fidelity =
        measureFidelity(job, path("imported-transmla"), stories(), std::nullopt, onCpu());
    QVERIFY(!fidelity.ok());
    QCOMPARE(fidelity.error().code, ErrorCode::Usage);
    QVERIFY(text(fidelity.error()).find("--calibration") != std::string::npos);
    ExportRequest request;
    request.draft = path("imported-transmla");
    request.output = path("exported");
    const auto exported = exportDraft(job, request);
    QVERIFY(!exported.ok());
    QVERIFY(text(exported.error()).find("refine") != std::string::npos);
}

QTEST_GUILESS_MAIN(TestImportedDrafts)
#include "tst_imported_drafts.moc"
