// SPDX-License-Identifier: GPL-3.0-or-later
// Drafts that TransMLA and MHA2MLA wrote: logits of their own models (make_draft_goldens.py), whole
// sequences and token by token through the cache; our layout of them; what is refused by name.
#include "core/checkpoint/torch_file.h"
#include "core/model/layer_loading.h"
#include "tests/support/numeric.h"

#include <QTemporaryDir>
#include <QTest>

using namespace mla;
using namespace mla::test;

namespace
{

constexpr double kTolerance = 1e-4; // of the logits' standard deviation

nlohmann::json configOf(const std::string& name)
{
    return goldenJson("drafts/" + name + "/config.json");
}

/// parseModelConfig of the draft's config.json after `change`.
Result<ModelConfig> parsed(const std::string& name, const nlohmann::json& change)
{
    nlohmann::json config = configOf(name);
    config.merge_patch(change);
    return parseModelConfig(config, goldenPath("drafts/" + name + "/config.json").string());
}

} // namespace

class TestDraftGoldens : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() { useOneThread(); }
    void logits_data();
    void logits();
    void ownLayoutComputesTheSame_data() { logits_data(); }
    void ownLayoutComputesTheSame();
    void refusals_data();
    void refusals();
    void ranksMustBeThere();
    void rankFiles_data();
    void rankFiles();
    void baselineIsNoDraft();
    void configRoundTrips_data();
    void configRoundTrips();
};

void TestDraftGoldens::logits_data()
{
    QTest::addColumn<QString>("name");
    const nlohmann::json drafts = goldenJson("drafts.json").at("drafts");
    QCOMPARE(drafts.size(), std::size_t{7});
    for (const auto& [name, facts] : drafts.items())
        QTest::newRow(name.c_str()) << QString::fromStdString(name);
}

void TestDraftGoldens::logits()
{
    QFETCH(QString, name);
    const nlohmann::json facts = goldenJson("drafts.json").at("drafts").at(name.toStdString());
    const Goldens golden(facts.at("logits"));
    const torch::Tensor ids = golden("input_ids", torch::kInt64), expected = golden("logits");
    const double spread = facts.at("spread");
    const torch::NoGradGuard noGrad;
    const Checkpoint checkpoint =
        must(Checkpoint::open(goldenPath("drafts/" + name.toStdString())));
    QVERIFY(checkpoint.config().isMla());
    QCOMPARE(checkpoint.config().cacheElements(0), facts.at("cache_elements").get<std::int64_t>());
    const Decoder model = must(Decoder::load(checkpoint));
    const double whole = maxDifference(model.logits(ids), expected) / spread;
    KvCache cache = model.makeCache(ids.size(0), ids.size(1));
    std::vector<torch::Tensor> steps;
    for (std::int64_t t = 0; t < ids.size(1); ++t)
        steps.push_back(model.step(ids.narrow(1, t, 1), cache));
    const double cached = maxDifference(torch::cat(steps, 1), expected) / spread;
    qInfo("%s: whole %.2g, cached %.2g of the spread", qPrintable(name), whole, cached);
    QVERIFY(whole < kTolerance);
    QVERIFY(cached < kTolerance);
}

/// The tensors that refinement would write, with the config it would write, are the same model.
void TestDraftGoldens::ownLayoutComputesTheSame()
{
    QFETCH(QString, name);
    const torch::NoGradGuard noGrad;
    const Checkpoint imported = must(Checkpoint::open(goldenPath("drafts/" + name.toStdString())));
    ModelConfig config = imported.config();
    config.mla->layout = DraftLayout::Own;
    config.mla->queryRank = 0;
    config.mla->splitLatent = false;
    const QTemporaryDir folder;
    const std::filesystem::path directory = folder.path().toStdString();
    std::ofstream(directory / "config.json")
        << mlaConfigToJson(config, configOf(name.toStdString()));
    std::vector<std::pair<std::string, torch::Tensor>> tensors;
    for (int layer = 0; layer < config.numHiddenLayers; ++layer)
        for (auto& [tensor, value] : draftTensors(must(loadMlaBlock(imported, LayerIndex(layer)))))
            tensors.emplace_back(attentionPrefix(LayerIndex(layer)) + tensor, value);
    for (const ExpectedTensor& expected : expectedTensors(config))
        if (std::none_of(tensors.begin(), tensors.end(),
                         [&](const auto& known) { return known.first == expected.name; }))
            tensors.emplace_back(expected.name, must(loadTensor(imported, expected.name)));
    std::vector<TensorView> views;
    for (const auto& [tensor, value] : tensors)
        views.push_back(viewOf(tensor, value));
    must(writeSafetensors(directory / "model.safetensors", views));

    const Checkpoint own = must(Checkpoint::open(directory));
    QVERIFY(own.warnings().empty());
    const torch::Tensor ids = torch::arange(3, 43, torch::kInt64).unsqueeze(0);
    const torch::Tensor expected = must(Decoder::load(imported)).logits(ids);
    QVERIFY(relativeDifference(must(Decoder::load(own)).logits(ids), expected) < 1e-6);
}

void TestDraftGoldens::refusals_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("change");
    QTest::addColumn<QString>("names");
    const auto row = [](const char* title, const char* draft, const char* change,
                        const char* names) { QTest::newRow(title) << draft << change << names; };
    row("mixture of experts", "transmla-norm",
        R"({"n_routed_experts": 256, "num_hidden_layers": 4})", "n_routed_experts");
    row("experts from layer 1", "transmla-norm",
        R"({"n_routed_experts": 8, "first_k_dense_replace": 1})", "n_routed_experts");
    row("Mixtral", "transmla-biased", R"({"architectures": ["MixtralMLAForCausalLM"]})",
        "MixtralMLAForCausalLM");
    row("Gemma2", "transmla-biased", R"({"architectures": ["Gemma2MLAForCausalLM"]})",
        "Gemma2MLAForCausalLM");
    row("norm between query projections", "transmla-norm", R"({"q_lora_rank": 16})", "q_lora_rank");
    row("no rank", "transmla-norm", R"({"kv_lora_rank": null})", "kv_lora_rank");
    row("rotary width", "transmla-norm", R"({"qk_rope_head_dim": 6})", "qk_rope_head_dim");
    row("half-split rows", "transmla-norm", R"({"rope_interleave": false})", "rope_interleave");
    row("dynamic rope", "transmla-norm", R"({"rope_scaling": {"type": "dynamic", "factor": 2.0}})",
        "dynamic");
    row("yarn", "transmla-norm", R"({"rope_scaling": {"rope_type": "yarn", "factor": 2.0}})",
        "yarn");
    row("repeated heads", "mha2mla-high", R"({"mha2mla": {"is_gqa2mha2mla": true}})",
        "is_gqa2mha2mla");
    row("no latent", "mha2mla-high", R"({"mha2mla": {"svd_init_method": "none"}})",
        "svd_init_method");
    row("keys alone", "mha2mla-high", R"({"mha2mla": {"svd_init_method": "only_key"}})",
        "svd_init_method");
    row("selection", "mha2mla-high", R"({"mha2mla": {"partial_rope_version": "middle"}})",
        "partial_rope_version");
    row("rotary dims", "mha2mla-high", R"({"mha2mla": {"rope_dim_for_mla": 10}})",
        "rope_dim_for_mla");
    row("uniform start", "mha2mla-uniform-biased", R"({"mha2mla": {"uniform_start_point": 2}})",
        "uniform_start_point");
    row("QK-norm", "mha2mla-high",
        R"({"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "head_dim": 8})",
        "QK-norm");
    row("file of ranks", "mha2mla-2-norm", R"({"mha2mla": {"qk_tensor_path": "x/none.pth"}})",
        "none.pth");
    row("file of other ranks", "mha2mla-2-norm", R"({"num_hidden_layers": 3})",
        "num_hidden_layers");
}

void TestDraftGoldens::refusals()
{
    QFETCH(QString, name);
    QFETCH(QString, change);
    QFETCH(QString, names);
    const auto result = parsed(name.toStdString(), nlohmann::json::parse(change.toStdString()));
    QVERIFY(!result.ok());
    QCOMPARE(result.error().code, ErrorCode::BadInput);
    const QString text = QString::fromStdString(result.error().text());
    QVERIFY2(text.contains(names), qPrintable(text));
}

void TestDraftGoldens::ranksMustBeThere()
{
    // The pairs of the file: those whose rank is below half the rotary dims, in any order.
    const ModelConfig config = must(parsed("mha2mla-2-norm", nlohmann::json::object()));
    const IntegerTensor ranks =
        must(readTorchIntegers(goldenPath("drafts/mha2mla-2-norm/tiny-2_norm_rank.pth")));
    QCOMPARE(ranks.shape, (std::vector<std::int64_t>{2, 2, 8}));
    for (std::size_t head = 0; head < 4; ++head) {
        std::vector<int> kept;
        for (int pair = 0; pair < 4; ++pair)
            if (ranks.values[head * 8 + static_cast<std::size_t>(pair)] < 2)
                kept.push_back(pair);
        QCOMPARE(config.mla->ropePairs[head / 2][head % 2], kept);
    }
}

void TestDraftGoldens::rankFiles_data()
{
    QTest::addColumn<int>("size");
    for (const int size : {0, 4, 100, 500, 900, 1000})
        QTest::newRow(qPrintable(QString::number(size))) << size;
}

/// A file that was cut anywhere is refused by its name.
void TestDraftGoldens::rankFiles()
{
    QFETCH(int, size);
    std::ifstream in(goldenPath("drafts/mha2mla-2-norm/tiny-2_norm_rank.pth"), std::ios::binary);
    std::string content{std::istreambuf_iterator<char>(in), {}};
    const QTemporaryDir folder;
    const auto path = std::filesystem::path(folder.path().toStdString()) / "cut.pth";
    std::ofstream(path, std::ios::binary) << content.substr(0, static_cast<std::size_t>(size));
    const auto result = readTorchIntegers(path);
    QVERIFY(!result.ok());
    QVERIFY(result.error().text().find("cut.pth") != std::string::npos);
}

/// MHA2MLA also saves the unchanged model it compares with.
void TestDraftGoldens::baselineIsNoDraft()
{
    const nlohmann::json change = {{"mha2mla", {{"is_baseline", true}}}};
    QVERIFY(!must(parsed("mha2mla-high", change)).isMla());
}

void TestDraftGoldens::configRoundTrips_data()
{
    QTest::addColumn<QString>("source");
    const auto row = [](const char* title, const char* source) { QTest::newRow(title) << source; };
    row("windows in some layers", R"({"model_type": "qwen2", "use_sliding_window": true,
        "sliding_window": 12, "max_window_layers": 1})");
    row("windows everywhere", R"({"model_type": "mistral", "sliding_window": 7})");
    row("no window", R"({"model_type": "mistral", "sliding_window": null})");
    row("QK-norm", R"({"model_type": "qwen3"})");
    row("yarn", R"({"model_type": "llama", "rope_scaling": {"rope_type": "yarn", "factor": 4.0,
        "original_max_position_embeddings": 64, "beta_fast": 16.0, "truncate": false}})");
}

/// What a draft of such a source writes is read back the same; keys of the source that would say
/// otherwise are gone.
void TestDraftGoldens::configRoundTrips()
{
    QFETCH(QString, source);
    nlohmann::json base = {{"vocab_size", 64},        {"hidden_size", 32},
                           {"intermediate_size", 24}, {"num_hidden_layers", 2},
                           {"head_dim", 8},           {"num_attention_heads", 4},
                           {"num_key_value_heads", 2}};
    base.update(nlohmann::json::parse(source.toStdString()));
    ModelConfig config = must(parseModelConfig(base, "config.json"));
    config.modelType = "mla_draft";
    config.qkvBias = false;
    config.mla = MlaConfig{.converter = "mha2mla",
                           .latentRank = {9, 9},
                           .qkRopeHeadDim = 4,
                           .qkNopeHeadDim = 4,
                           .vHeadDim = 8,
                           .ropeKeyHeads = 2,
                           .kvUpHeads = 2,
                           .attentionScale = 0.5,
                           .ropePairs = {{{0, 1}, {0, 2}}, {{1, 3}, {2, 3}}},
                           .queryBias = true,
                           .latentNorm = true,
                           .latentNormEps = 1e-4};
    const nlohmann::json written = nlohmann::json::parse(mlaConfigToJson(config, base).dump());
    const ModelConfig read = must(parseModelConfig(written, "config.json"));
    QVERIFY(read == config);
    QCOMPARE(config.cacheElements(0), std::int64_t{9 + 2 * 4 + (config.qkNorm ? 2 : 0)});
}

QTEST_APPLESS_MAIN(TestDraftGoldens)
#include "tst_draft_goldens.moc"
