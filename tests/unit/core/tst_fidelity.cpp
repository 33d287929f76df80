// SPDX-License-Identifier: GPL-3.0-or-later
// Error sources and attention maps of one layer, against truncated SVDs and limit cases.
#include "core/convert/low_rank_keys.h"
#include "core/evaluate/attention_map.h"
#include "core/evaluate/fidelity.h"
#include "tests/support/exact_conversion.h"
#include "tests/support/method_layer.h"

#include <QTest>

using namespace mla;
using namespace mla::test;
using torch::Tensor;

namespace
{

constexpr double kRounding = 1e-4; // of relative errors, fp32

struct Sources {
    double rope, rank, both;
};

Tensor f64(const Tensor& t)
{
    return t.to(torch::kFloat64);
}
Tensor f32(const Tensor& t)
{
    return t.to(torch::kFloat32).contiguous();
}

/// sqrt(sum |dA|^2 / sum |A|^2), all tokens.
double relativeError(const Tensor& a, const Tensor& target)
{
    return ((f64(a) - f64(target)).norm() / f64(target).norm()).item<double>();
}

/// The leading `rank` singular directions of `a` only.
Tensor truncated(const Tensor& a, int rank)
{
    const auto [u, s, vh] = torch::linalg_svd(a, false);
    return (u.narrow(1, 0, rank) * s.narrow(0, 0, rank)).matmul(vh.narrow(0, 0, rank));
}

} // namespace

class TestFidelity : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase();
    void lowRankIsTheTruncatedSvd();
    void lowRankOfValuesAlone();
    void nothingIsLost_data();
    void nothingIsLost();
    void onlyRotationIsLost_data();
    void onlyRotationIsLost();
    void onlyRankIsLost_data();
    void onlyRankIsLost();
    void normAwareKeepsItsNorm();
    void mapsOfEqualBlocksAreEqual();
    void mapsAreProbabilities();
    void noQueryAttendsToAllAlike();

private:
    [[nodiscard]] FidelityRecord fidelity(const auto& block) const
    {
        return blockFidelity(m_layer.block, block, m_layer.x, m_layer.attention,
                             torch::ones_like(m_layer.mask));
    }
    [[nodiscard]] Sources sources(const ConvertSettings& settings) const;
    [[nodiscard]] ConvertSettings exact(const std::string& converter) const
    {
        return exactSettings(converter, m_layer.config);
    }
    MethodLayer m_layer;
};

void TestFidelity::initTestCase()
{
    useOneThread();
    m_layer = methodLayer();
}

Sources TestFidelity::sources(const ConvertSettings& settings) const
{
    const auto converter = must(makeConverter(settings));
    const ConvertedLayer converted =
        must(converter->convert(m_layer.sample(), settings.kvLoraRank));
    const ConvertedLayer full =
        must(converter->convert(m_layer.sample(), converter->fullRank(m_layer.config)));
    return {fidelity(full.block).relativeError,
            fidelity(withLowRankKeysValues(m_layer.block, converted.block, converted.basis))
                .relativeError,
            fidelity(converted.block).relativeError};
}

/// MHA2MLA, joint: SVD of the rows of [W_k; W_v] that lose rotation (all values, and the key dims
/// whose pair is not among the first d_r / 2), truncated; everything else of the original stays.
void TestFidelity::lowRankIsTheTruncatedSvd()
{
    const GqaBlock& gqa = m_layer.block;
    const int half = gqa.headDim / 2, kept = half / 2, rank = 5;
    std::vector<std::int64_t> rows;
    for (int head = 0; head < gqa.kvHeads; ++head)
        for (int dim = 0; dim < gqa.headDim; ++dim)
            if (dim % half >= kept)
                rows.push_back(std::int64_t{head} * gqa.headDim + dim);
    const Tensor index = torch::tensor(rows, torch::kInt64);
    const Tensor wk = f64(gqa.wk), wv = f64(gqa.wv);
    const Tensor low = truncated(torch::cat({wk.index_select(0, index), wv}), rank);
    const std::int64_t keyRows = index.numel();
    GqaBlock expected = gqa;
    expected.wk = f32(wk.index_copy(0, index, low.narrow(0, 0, keyRows)));
    expected.wv = f32(low.narrow(0, keyRows, wv.size(0)));

    ConvertSettings settings;
    settings.converter = "mha2mla";
    settings.ropeSelect = "high";
    settings.qkRopeHeadDim = 2 * kept;
    settings.kvLoraRank = rank;
    const double error = relativeError(attend(expected, m_layer.x), m_layer.attention);
    const double got = sources(settings).rank;
    qInfo("low rank alone %.6f, from the SVD %.6f", got, error);
    QVERIFY(error > 0.05);
    QVERIFY(std::abs(got - error) < kRounding);
}

/// TransMLA with every head rotary: the latent holds values only, as the leading principal axes of
/// what they are on the calibration data, biases included.
void TestFidelity::lowRankOfValuesAlone()
{
    const GqaBlock& gqa = m_layer.block;
    const int rank = 3;
    ConvertSettings settings = exact("transmla");
    settings.kvLoraRank = rank;
    const Tensor x = f64(m_layer.x.flatten(0, 1));
    const Tensor values = torch::linear(x, f64(gqa.wv), f64(gqa.bv)); // [n, G h]
    const auto [scores, axes] = torch::linalg_eigh(values.t().matmul(values));
    const Tensor u = axes.narrow(1, axes.size(1) - rank, rank); // ascending: the last ones
    GqaBlock expected = gqa;
    expected.wv = f32(u.matmul(u.t()).matmul(f64(gqa.wv)));
    expected.bv = f32(u.matmul(u.t()).matmul(f64(gqa.bv)));
    const double error = relativeError(attend(expected, m_layer.x), m_layer.attention);
    const Sources got = sources(settings);
    qInfo("low rank alone %.6f, from the principal axes %.6f", got.rank, error);
    QVERIFY(error > 0.05);
    QVERIFY(std::abs(got.rank - error) < kRounding);
}

void TestFidelity::nothingIsLost_data()
{
    QTest::addColumn<QString>("converter");
    QTest::newRow("transmla") << "transmla";
    QTest::newRow("mha2mla") << "mha2mla";
}

void TestFidelity::nothingIsLost()
{
    QFETCH(QString, converter);
    const Sources got = sources(exact(converter.toStdString()));
    QVERIFY(got.rope < kRounding && got.rank < kRounding && got.both < kRounding);
}

void TestFidelity::onlyRotationIsLost_data()
{
    nothingIsLost_data();
}

void TestFidelity::onlyRotationIsLost()
{
    QFETCH(QString, converter);
    ConvertSettings settings;
    settings.converter = converter.toStdString();
    settings.qkRopeHeadDim = m_layer.config.headDim / 2;
    settings.kvLoraRank = must(makeConverter(settings))->fullRank(m_layer.config);
    const Sources got = sources(settings);
    qInfo("rotary alone %.6f", got.rope);
    QVERIFY(got.rope > 10 * kRounding);
    QVERIFY(got.rank < kRounding);
    QVERIFY(std::abs(got.both - got.rope) < kRounding);
}

void TestFidelity::onlyRankIsLost_data()
{
    nothingIsLost_data();
}

void TestFidelity::onlyRankIsLost()
{
    QFETCH(QString, converter);
    ConvertSettings settings = exact(converter.toStdString());
    settings.kvLoraRank = 3;
    const Sources got = sources(settings);
    QVERIFY(got.rope < kRounding);
    QVERIFY(got.rank > 100 * kRounding);
    QVERIFY(std::abs(got.both - got.rank) < kRounding);
}

/// QK-norm stands behind the keys that the latent gives, as in the draft.
void TestFidelity::normAwareKeepsItsNorm()
{
    MethodLayer layer = m_layer;
    GqaBlock& gqa = layer.block;
    gqa.bq = gqa.bk = gqa.bv = Tensor();
    gqa.qNorm = torch::linspace(0.5, 2, gqa.headDim);
    gqa.kNorm = torch::linspace(2, 0.5, gqa.headDim);
    gqa.normEps = 1e-6;
    layer.config.qkNorm = true;
    layer.config.qkvBias = false;
    ConvertSettings settings;
    settings.converter = "mha2mla";
    settings.qkRopeHeadDim = layer.config.headDim;
    settings.kvLoraRank = 3;
    const ConvertedLayer converted =
        must(must(makeConverter(settings))->convert(layer.sample(), settings.kvLoraRank));
    const GqaBlock low = withLowRankKeysValues(gqa, converted.block, converted.basis);
    QVERIFY(relativeError(attend(low, layer.x), attend(converted.block, layer.x)) < kRounding);
    QVERIFY(relativeError(attend(low, layer.x), attend(gqa, layer.x)) > 100 * kRounding);
}

void TestFidelity::mapsOfEqualBlocksAreEqual()
{
    const Tensor x = m_layer.x.narrow(0, 0, 1);
    for (const char* converter : {"transmla", "mha2mla"}) {
        const ConvertSettings settings = exact(converter);
        const ConvertedLayer converted =
            must(must(makeConverter(settings))->convert(m_layer.sample(), settings.kvLoraRank));
        for (int head = 0; head < m_layer.block.heads; ++head)
            QVERIFY(maxDifference(headProbabilities(converted.block, x, HeadIndex(head)),
                                  headProbabilities(m_layer.block, x, HeadIndex(head))) <
                    kRounding);
    }
}

void TestFidelity::mapsAreProbabilities()
{
    GqaBlock windowed = m_layer.block;
    windowed.window = 4;
    const Tensor x = m_layer.x.narrow(0, 1, 1);
    for (const GqaBlock& block : {m_layer.block, windowed}) {
        const Tensor map = headProbabilities(block, x, HeadIndex(block.heads - 1));
        QCOMPARE(map.sizes(), (torch::IntArrayRef{x.size(1), x.size(1)}));
        QVERIFY(maxDifference(map.sum(1), torch::ones({x.size(1)})) < 1e-12);
        QCOMPARE(map.triu(1).abs().max().item<double>(), 0.0);
        QVERIFY(map.min().item<double>() >= 0);
        if (block.window > 0)
            QCOMPARE(map.tril(-block.window).abs().max().item<double>(), 0.0);
    }
}

/// Queries of zero score all keys alike: 1 / (number of keys seen).
void TestFidelity::noQueryAttendsToAllAlike()
{
    GqaBlock block = m_layer.block;
    block.wq = torch::zeros_like(block.wq);
    block.bq = torch::zeros_like(block.bq);
    const Tensor map = headProbabilities(block, m_layer.x.narrow(0, 0, 1), HeadIndex(0));
    for (std::int64_t row = 0; row < map.size(0); ++row)
        for (std::int64_t key = 0; key <= row; ++key)
            QVERIFY(std::abs(map[row][key].item<double>() - 1.0 / static_cast<double>(row + 1)) <
                    1e-12);
}

QTEST_GUILESS_MAIN(TestFidelity)
#include "tst_fidelity.moc"
