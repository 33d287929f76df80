// SPDX-License-Identifier: GPL-3.0-or-later
// Both converters against an independent float64 implementation (make_method_goldens.py), all in
// the original key basis, so that signs of eigenvectors do not matter.
#include "core/convert/conversion_limits.h"
#include "core/convert/kv_factorization.h"
#include "core/convert/rope_selection.h"
#include "tests/support/method_layer.h"

#include <QTest>

using namespace mla;
using namespace mla::test;
using torch::Tensor;

namespace
{

constexpr double kFloat32 = 5e-5, kFloat64 = 1e-6; // max |difference| / max |golden|

ConvertedLayer converted(const MethodLayer& layer, const ConvertSettings& settings, int rank = 0)
{
    const std::unique_ptr<Converter> converter = must(makeConverter(settings));
    must(converter->check(layer.config));
    const int full = converter->fullRank(layer.config);
    return must(converter->convert(layer.sample(), rank < 0 ? full : settings.kvLoraRank));
}

/// One query head of each group: [B, H, ..] -> [B, G, ..].
Tensor onePerGroup(const Tensor& t, int group)
{
    return t.slice(1, 0, t.size(1), group);
}

/// Pre-RoPE keys in the original basis, [B, T, G, h].
Tensor originalKeys(const MlaBlock& block, const KeyBasis& basis, const Tensor& x, int group)
{
    const MlaKeysValues kv = keysValues(block, x);
    if (basis.ropeMap.defined())
        return onePerGroup(kv.nope + kv.rotary.matmul(basis.ropeMap.transpose(1, 2)), group)
            .transpose(1, 2);
    const Tensor stacked = torch::cat({kv.rotary, kv.nope}, -1); // [B, G, T, h]
    const Tensor inverse = basis.permutation.argsort(std::int64_t{1});
    return stacked.gather(-1, inverse.view({1, inverse.size(0), 1, -1}).expand_as(stacked))
        .transpose(1, 2);
}

} // namespace

class TestConverters : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase();
    void transMla_data();
    void transMla();
    void selection_data();
    void selection();
    void svd_data();
    void svd();
    void balancedFactors();
    void keepsEverything_data();
    void keepsEverything();
    void refusals_data();
    void refusals();
    void bounds_data();
    void bounds();
    void unknownNames();
    void nothingSaved();
    void normAware_data();
    void normAware();
    void refusedSources();

private:
    /// Compares and reports; `what` names the quantity.
    static void close(const char* what, const Tensor& got, const Tensor& golden, double tolerance);
    MethodLayer m_layer;
};

void TestConverters::initTestCase()
{
    useOneThread();
    m_layer = methodLayer();
    close("keys of the original", project(m_layer.block, m_layer.x).k.transpose(1, 2), m_layer.keys,
          kFloat32);
    close("attention of the original", attend(m_layer.block, m_layer.x), m_layer.attention,
          kFloat32);
}

void TestConverters::close(const char* what, const Tensor& got, const Tensor& golden,
                           double tolerance)
{
    const double worst = relativeDifference(got, golden);
    qInfo("%s: %.2g", what, worst);
    QVERIFY2(worst < tolerance, what);
}

void TestConverters::transMla_data()
{
    QTest::addColumn<QString>("name");
    const nlohmann::json all = goldenJson("method.json").at("transmla");
    for (const auto& [name, facts] : all.items())
        QTest::newRow(name.c_str()) << QString::fromStdString(name);
}

void TestConverters::transMla()
{
    QFETCH(QString, name);
    const nlohmann::json facts = goldenJson("method.json").at("transmla").at(name.toStdString());
    const Goldens file("method_transmla.safetensors");
    const auto golden = [&](const char* what, torch::Dtype dtype = torch::kFloat32) {
        return file(name.toStdString() + "/" + what, dtype);
    };
    ConvertSettings settings;
    settings.qkRopeHeadDim = facts.at("qk_rope_head_dim");
    settings.freqfold = facts.at("freqfold");
    settings.kvLoraRank = facts.at("kv_lora_rank");
    const ConvertedLayer out = converted(m_layer, settings);
    const int group = m_layer.block.group();

    const std::vector<int> pairs = facts.at("rope_pairs");
    QCOMPARE(out.ropePairs, std::vector<std::vector<int>>{pairs});
    QCOMPARE(out.block.cacheElements(), std::int64_t{settings.kvLoraRank + settings.qkRopeHeadDim});
    QCOMPARE(out.block.scale, 0.25); // 16^-1/2
    // The rope map of one head per group, stacked, is the transposed rotary rows.
    const Tensor rows = out.basis.ropeMap.slice(0, 0, out.block.heads, group).flatten(0, 1).t();
    close("rotary projector", rows.t().matmul(rows), golden("rope_projector", torch::kFloat64),
          kFloat64);
    const Tensor largest = rows.gather(1, rows.abs().argmax(1, true));
    close("rotary rows", rows * largest.sign(), golden("rope_rows", torch::kFloat64), kFloat64);

    const Tensor x = m_layer.evalInput();
    close("keys", originalKeys(out.block, out.basis, x, group), golden("keys"), kFloat32);
    const Tensor values = keysValues(out.block, x).value;
    close("values", onePerGroup(values, group).transpose(1, 2), golden("values"), kFloat32);
    close("attention", attend(out.block, x), golden("attention"), kFloat32);
    close("attention at full rank", attend(converted(m_layer, settings, -1).block, x),
          golden("attention_rope_only"), kFloat32);
    close("spectrum of activations", torch::tensor(out.spectrum.activations, torch::kFloat64),
          golden("spectrum", torch::kFloat64), kFloat64);
    close("spectrum of weights", torch::tensor(out.spectrum.weights, torch::kFloat64),
          file("weight_spectrum", torch::kFloat64), 1e-9);
}

void TestConverters::selection_data()
{
    QTest::addColumn<QString>("mode");
    for (const char* mode : {"2-norm", "high", "low", "uniform", "distance-weighted"})
        QTest::newRow(mode) << mode;
}

void TestConverters::selection()
{
    QFETCH(QString, mode);
    const nlohmann::json facts = goldenJson("method.json").at("mha2mla");
    const nlohmann::json golden = facts.at("selections").at(mode.toStdString());
    const Goldens file("method_mha2mla.safetensors");
    ConvertSettings settings;
    settings.converter = "mha2mla";
    settings.qkRopeHeadDim = facts.at("qk_rope_head_dim");
    settings.kvLoraRank = 20;
    settings.ropeSelect = mode.toStdString();
    const ConvertedLayer full = converted(m_layer, settings, -1);
    const std::vector<std::vector<int>> pairs = golden.at("pairs");
    QCOMPARE(full.ropePairs, pairs);
    if (!golden.at("scores").is_null()) {
        Tensor scores = pairScores(m_layer.block, m_layer.sample().rows());
        if (mode == "distance-weighted")
            scores = scores * rotationImportance(m_layer.block.frequencies);
        std::vector<Tensor> rows;
        for (const std::vector<double> row : golden.at("scores"))
            rows.push_back(torch::tensor(row, torch::kFloat64));
        close("scores", scores, torch::stack(rows), 1e-9);
    }
    close("attention at full rank", attend(full.block, m_layer.evalInput()),
          file("SELECT/" + mode.toStdString() + "/attention_rope_only"), kFloat32);
}

void TestConverters::svd_data()
{
    QTest::addColumn<QString>("name");
    const nlohmann::json all = goldenJson("method.json").at("mha2mla").at("svd");
    for (const auto& [name, facts] : all.items())
        QTest::newRow(name.c_str()) << QString::fromStdString(name);
}

void TestConverters::svd()
{
    QFETCH(QString, name);
    const nlohmann::json all = goldenJson("method.json").at("mha2mla");
    const nlohmann::json facts = all.at("svd").at(name.toStdString());
    const Goldens file("method_mha2mla.safetensors");
    const auto golden = [&](const char* what, torch::Dtype dtype = torch::kFloat32) {
        return file(name.toStdString() + "/" + what, dtype);
    };
    ConvertSettings settings;
    settings.converter = "mha2mla";
    settings.qkRopeHeadDim = all.at("qk_rope_head_dim");
    settings.kvLoraRank = facts.at("kv_lora_rank");
    settings.ropeSelect = facts.at("selection");
    settings.svd = facts.at("mode");
    const ConvertedLayer out = converted(m_layer, settings);
    const MlaBlock& block = out.block;
    QCOMPARE(block.rank, settings.kvLoraRank);
    QCOMPARE(out.basis.keyRank, facts.value("r_k", 0));
    QCOMPARE(block.cacheElements(), std::int64_t{settings.kvLoraRank + 2 * 8});
    if (const int keyRank = out.basis.keyRank; keyRank > 0) {
        QCOMPARE(block.rank - keyRank, facts.at("r_v").get<int>());
        QVERIFY(!block.wuk.slice(1, keyRank).any().item<bool>());
        QVERIFY(!block.wuv.slice(1, 0, keyRank).any().item<bool>());
    }
    close("stacked weights", torch::cat({block.wuk, block.wuv}).matmul(block.wdkv),
          golden("kv_weights", torch::kFloat64), kFloat32);
    const Tensor spectrum =
        std::get<0>(golden("spectrum", torch::kFloat64).sort(0, /*descending=*/true));
    close("spectrum", torch::tensor(out.spectrum.activations, torch::kFloat64), spectrum, 1e-9);
    const Tensor x = m_layer.evalInput();
    close("keys", originalKeys(block, out.basis, x, 1), golden("keys"), kFloat32);
    close("values", keysValues(block, x).value.transpose(1, 2), golden("values"), kFloat32);
    close("attention", attend(block, x), golden("attention"), kFloat32);
}

/// activation-aware: the square root of S goes to both sides, so that norms are equal.
void TestConverters::balancedFactors()
{
    const Tensor k = m_layer.block.wk.to(torch::kFloat64), v = m_layer.block.wv.to(torch::kFloat64);
    const KvFactors f = must(factorizeKv("activation-aware", k, v, 12, m_layer.sample().rows()));
    close("column norms of up", f.up.norm(2, {0}), f.down.norm(2, {1}), 1e-9);
}

void TestConverters::keepsEverything_data()
{
    QTest::addColumn<QString>("converter");
    QTest::addColumn<int>("ropeDim");
    QTest::newRow("mha2mla, d_r = h") << "mha2mla" << 16;
    QTest::newRow("transmla, d_r = G h") << "transmla" << 32;
}

void TestConverters::keepsEverything()
{
    QFETCH(QString, converter);
    QFETCH(int, ropeDim);
    ConvertSettings settings;
    settings.converter = converter.toStdString();
    settings.qkRopeHeadDim = ropeDim;
    settings.freqfold = converter == "transmla" ? 1 : 0;
    settings.kvLoraRank = 32;
    const ConvertedLayer out = converted(m_layer, settings, -1);
    QCOMPARE(out.block.nopeDim, 0);
    close("attention", attend(out.block, m_layer.x), m_layer.attention, kFloat32);
}

void TestConverters::refusals_data()
{
    QTest::addColumn<QString>("converter");
    QTest::addColumn<int>("rank");
    QTest::addColumn<int>("ropeDim");
    QTest::addColumn<int>("freqfold");
    QTest::addColumn<QString>("select");
    QTest::addColumn<QString>("svd");
    QTest::addColumn<int>("code");
    QTest::addColumn<QString>("names");
    constexpr int usage = static_cast<int>(ErrorCode::Usage),
                  bad = static_cast<int>(ErrorCode::BadInput);
    const auto transmla = [&](const char* row, int r, int dr, int f, const char* names) {
        QTest::newRow(row) << "transmla" << r << dr << f << "2-norm"
                           << "joint" << usage << names;
    };
    transmla("transmla: no rank", 0, 8, 2, "1 to 56");
    transmla("transmla: rank 2Gh - d_r + 1", 57, 8, 2, "1 to 56");
    transmla("transmla: odd d_r", 20, 1, 16, "--qk-rope-head-dim");
    transmla("transmla: d_r does not divide h", 20, 6, 0, "head_dim 16");
    transmla("transmla: d_r beyond all heads", 20, 48, 1, "up to 32");
    transmla("transmla: no d_r", 20, 0, 0, "--qk-rope-head-dim");
    transmla("transmla: f does not divide h/2", 20, 8, 6, "divides 8");
    transmla("transmla: f not divisible by c", 20, 8, 1, "multiple of 2");
    QTest::newRow("transmla: svd mode of the other") << "transmla" << 20 << 8 << 2 << "2-norm"
                                                     << "split" << usage << "--svd split";
    const auto mha2mla = [&](const char* row, int r, int dr, int f, const char* select, int code,
                             const char* names) {
        QTest::newRow(row) << "mha2mla" << r << dr << f << select << "joint" << code << names;
    };
    mha2mla("mha2mla: rank above min(d, ..)", 41, 8, 0, "2-norm", bad, "40 at most");
    mha2mla("mha2mla: rank above G(2h - d_r)", 33, 16, 0, "2-norm", bad, "32 at most");
    mha2mla("mha2mla: no rank", 0, 8, 0, "2-norm", usage, "at least 1");
    mha2mla("mha2mla: odd d_r", 20, 7, 0, "2-norm", usage, "even");
    mha2mla("mha2mla: d_r above h", 20, 18, 0, "2-norm", usage, "head_dim 16");
    mha2mla("mha2mla: freqfold of the other", 20, 8, 2, "2-norm", usage, "--freqfold");
    mha2mla("mha2mla: uniform needs a divisor", 20, 6, 0, "uniform", usage, "must divide");
}

void TestConverters::refusals()
{
    QFETCH(QString, converter);
    QFETCH(int, rank);
    QFETCH(int, ropeDim);
    QFETCH(int, freqfold);
    QFETCH(QString, select);
    QFETCH(QString, svd);
    QFETCH(int, code);
    QFETCH(QString, names);
    const ConvertSettings settings{
        converter.toStdString(), rank, ropeDim, freqfold, select.toStdString(), svd.toStdString()};
    const Status status = must(makeConverter(settings))->check(m_layer.config);
    QVERIFY(!status.ok());
    QCOMPARE(static_cast<int>(status.error().code), code);
    const QString message = QString::fromStdString(status.error().message);
    QVERIFY2(message.contains(names), qPrintable(message));
}

void TestConverters::bounds_data()
{
    QTest::addColumn<QString>("converter");
    QTest::addColumn<int>("rank");
    QTest::addColumn<int>("ropeDim");
    QTest::addColumn<int>("freqfold");
    QTest::newRow("transmla: rank 2Gh - d_r") << "transmla" << 56 << 8 << 2;
    QTest::newRow("transmla: freqfold h/2") << "transmla" << 1 << 8 << 8;
    QTest::newRow("transmla: smallest freqfold by default") << "transmla" << 1 << 4 << 0;
    QTest::newRow("transmla: d_r = 2") << "transmla" << 20 << 2 << 8;
    QTest::newRow("transmla: one head's worth") << "transmla" << 20 << 16 << 1;
    QTest::newRow("mha2mla: rank d") << "mha2mla" << 40 << 8 << 0;
    QTest::newRow("mha2mla: rank G(2h - d_r)") << "mha2mla" << 32 << 16 << 0;
    QTest::newRow("mha2mla: d_r = 2") << "mha2mla" << 1 << 2 << 0;
    QTest::newRow("mha2mla: d_r that does not divide h") << "mha2mla" << 8 << 6 << 0;
}

/// The largest and smallest settings that are allowed also convert, to finite blocks of that size.
void TestConverters::bounds()
{
    QFETCH(QString, converter);
    QFETCH(int, rank);
    QFETCH(int, ropeDim);
    QFETCH(int, freqfold);
    ConvertSettings settings;
    settings.converter = converter.toStdString();
    settings.kvLoraRank = rank;
    settings.qkRopeHeadDim = ropeDim;
    settings.freqfold = freqfold;
    const ConvertedLayer out = converted(m_layer, settings);
    QCOMPARE(out.block.rank, rank);
    QCOMPARE(out.block.ropeDim, ropeDim);
    QVERIFY(attend(out.block, m_layer.evalInput()).isfinite().all().item<bool>());
}

void TestConverters::unknownNames()
{
    ConvertSettings settings;
    settings.converter = "palu";
    const auto converter = makeConverter(settings);
    QVERIFY(!converter.ok());
    QCOMPARE(converter.error().code, ErrorCode::Usage);
    QVERIFY(converter.error().message.find("transmla, mha2mla") != std::string::npos);
    const Tensor scores = torch::ones({2, 8}, torch::kFloat64);
    const auto pairs = selectPairs("middle", 4, scores, m_layer.block.frequencies);
    QVERIFY(!pairs.ok());
    QCOMPARE(pairs.error().code, ErrorCode::Usage);
    const auto factors = factorizeKv("qr", scores, scores, 1, scores);
    QVERIFY(!factors.ok());
    QCOMPARE(factors.error().code, ErrorCode::Usage);
}

void TestConverters::nothingSaved()
{
    QVERIFY(conversionWarnings(m_layer.config, 63).empty()); // of 2 G h = 64
    QCOMPARE(conversionWarnings(m_layer.config, 64).size(), std::size_t{1});
}

void TestConverters::normAware_data()
{
    QTest::addColumn<QString>("svd");
    QTest::addColumn<int>("ropeDim");
    for (const char* svd : {"joint", "split", "activation-aware"})
        for (const int ropeDim : {8, 16})
            QTest::newRow(qPrintable(QString("%1, d_r = %2").arg(svd).arg(ropeDim)))
                << svd << ropeDim;
}

/// QK-norm with weights from 0.1 to 10: at full rank MHA2MLA keeps the normalised keys, and with
/// d_r = h the whole attention.
void TestConverters::normAware()
{
    QFETCH(QString, svd);
    QFETCH(int, ropeDim);
    MethodLayer layer = m_layer;
    layer.config.qkNorm = true;
    layer.block.qNorm = torch::linspace(2, 0.5, 16);
    layer.block.kNorm = torch::linspace(0.1, 10, 16);
    layer.block.normEps = 1e-6;
    ConvertSettings settings;
    settings.converter = "mha2mla";
    settings.qkRopeHeadDim = ropeDim;
    settings.svd = svd.toStdString();
    settings.kvLoraRank = 20;
    const ConvertedLayer out = converted(layer, settings, -1);
    QVERIFY(out.block.hasQkNorm());
    QCOMPARE(out.block.cacheElements(), std::int64_t{out.block.rank + 2 * ropeDim + 2});
    const Tensor x = layer.evalInput();
    const Tensor keys = project(layer.block, x).k;
    if (svd != "split" || ropeDim == 16) // split: half of the rank for 16 of 48 rows
        close("keys", originalKeys(out.block, out.basis, x, 1), keys.transpose(1, 2), kFloat32);
    if (ropeDim == 16)
        close("attention", attend(out.block, x), attend(layer.block, x), kFloat32);
    const Tensor pairs = project(layer.block, layer.x).k.view({8, 2, -1, 2, 8}).norm(2, {3});
    const Tensor scores = pairScores(layer.block, layer.sample().rows());
    const Tensor queries = project(layer.block, layer.x).q.view({8, 2, -1, 12, 2, 8}).norm(2, {4});
    close("scores", scores, pairs.mean({0, 2}) * queries.mean({0, 3}).sum(1), 1e-5);
}

void TestConverters::refusedSources()
{
    const auto refusal = [&](const char* name, const ModelConfig& config) {
        ConvertSettings settings;
        settings.converter = name;
        settings.qkRopeHeadDim = 8;
        settings.kvLoraRank = 20;
        const Status status = must(makeConverter(settings))->check(config);
        return status.ok() ? std::string() : status.error().text();
    };
    ModelConfig config = m_layer.config;
    config.qkNorm = true;
    QVERIFY(refusal("transmla", config).find("QK-norm") != std::string::npos);
    QCOMPARE(refusal("mha2mla", config), std::string());
    config = m_layer.config;
    config.rope.type = RopeType::Dynamic;
    for (const char* name : {"transmla", "mha2mla"})
        QVERIFY(refusal(name, config).find("dynamic") != std::string::npos);
    config.rope.type = RopeType::Yarn;
    for (const char* name : {"transmla", "mha2mla"})
        QCOMPARE(refusal(name, config), std::string());
}

QTEST_APPLESS_MAIN(TestConverters)
#include "tst_converters.moc"
