// SPDX-License-Identifier: GPL-3.0-or-later
// The blocked causal pass against the dense formula, forward and backward, with and without a
// window; decoding from a cache against whole sequences, for GQA blocks and both kinds of MLA
// block.
#include "core/model/causal_attention.h"
#include "core/model/gqa_attention.h"
#include "core/model/mla_attention.h"
#include "tests/support/numeric.h"

#include <QTest>

using namespace mla;
using namespace mla::test;
using torch::Tensor;

namespace
{

constexpr int kHidden = 24, kHeads = 6, kHeadDim = 8;

Tensor randomTensor(torch::IntArrayRef shape, torch::Generator& generator, double scale = 1)
{
    return torch::randn(shape, generator, torch::dtype(torch::kFloat32)) * scale;
}

/// Key j is seen by query i when 0 <= i - j, and i - j < window where there is one.
Tensor denseAttention(const Tensor& q, const Tensor& k, const Tensor& v, double scale,
                      std::int64_t window = 0)
{
    const Tensor at = torch::arange(q.size(2));
    const Tensor distance = at.unsqueeze(1) - at.unsqueeze(0);
    Tensor hidden = distance < 0;
    if (window > 0)
        hidden = hidden | (distance >= window);
    const Tensor scores = torch::matmul(q, k.transpose(-1, -2)) * scale;
    return scores.masked_fill(hidden, -std::numeric_limits<double>::infinity())
        .softmax(-1)
        .matmul(v);
}

struct Shape {
    bool transmla; ///< one rotary key head and one up head per query head; else KV heads of both
    int nopeDim, ropeDim;
    bool biases;
};

MlaBlock randomBlock(const Shape& shape, torch::Generator& g)
{
    constexpr int kvHeads = 2;
    MlaBlock b;
    b.heads = kHeads;
    b.upHeads = shape.transmla ? kHeads : kvHeads;
    b.ropeKeyHeads = shape.transmla ? 1 : kvHeads;
    b.nopeDim = shape.nopeDim;
    b.ropeDim = shape.ropeDim;
    b.vDim = kHeadDim;
    b.rank = 10;
    b.scale = 0.35;
    const auto weight = [&](int rows, int columns) {
        return randomTensor({rows, columns}, g, 1 / std::sqrt(static_cast<double>(columns)));
    };
    b.wq = weight(kHeads * (b.nopeDim + b.ropeDim), kHidden);
    b.wdkv = weight(b.rank, kHidden);
    b.wkr = weight(b.ropeKeyHeads * b.ropeDim, kHidden);
    b.wuk = weight(b.upHeads * b.nopeDim, b.rank);
    b.wuv = weight(b.upHeads * b.vDim, b.rank);
    b.wo = weight(kHidden, kHeads * b.vDim);
    if (shape.biases) {
        b.bq = randomTensor({b.wq.size(0)}, g);
        b.bdkv = randomTensor({b.rank}, g);
        b.bkr = randomTensor({b.wkr.size(0)}, g);
        b.buk = randomTensor({b.wuk.size(0)}, g);
        b.buv = randomTensor({b.wuv.size(0)}, g);
        b.bo = randomTensor({kHidden}, g);
    }
    b.frequencies = torch::rand({b.ropeKeyHeads, b.ropeDim / 2}, g, torch::dtype(torch::kFloat64));
    return b;
}

enum class Kind { Plain, Biases, Window, QkNorm, Dynamic };

GqaBlock randomGqa(Kind kind, torch::Generator& g)
{
    GqaBlock b;
    b.heads = kHeads;
    b.kvHeads = 2;
    b.headDim = kHeadDim;
    b.scale = 1 / std::sqrt(8.0);
    const auto weight = [&](int rows) { return randomTensor({rows, kHidden}, g, 0.2); };
    b.wq = weight(kHeads * kHeadDim);
    b.wk = weight(2 * kHeadDim);
    b.wv = weight(2 * kHeadDim);
    b.wo = randomTensor({kHidden, kHeads * kHeadDim}, g, 0.15);
    if (kind == Kind::Biases) {
        b.bq = randomTensor({b.wq.size(0)}, g);
        b.bk = randomTensor({b.wk.size(0)}, g);
        b.bv = randomTensor({b.wv.size(0)}, g);
        b.bo = randomTensor({kHidden}, g);
    }
    b.frequencies = torch::rand({1, kHeadDim / 2}, g, torch::dtype(torch::kFloat64));
    if (kind == Kind::Window)
        b.window = 6;
    if (kind == Kind::QkNorm) {
        b.qNorm = 1 + randomTensor({kHeadDim}, g, 0.3);
        b.kNorm = torch::logspace(-1, 1, kHeadDim);
        b.normEps = 1e-6;
    }
    if (kind == Kind::Dynamic) { // longer than any text here: the frequencies stay
        RopeConfig rope;
        rope.type = RopeType::Dynamic;
        rope.factor = 2;
        rope.originalMaxPositionEmbeddings = 100;
        b.dynamicRope = rope;
    }
    return b;
}

/// Outputs of chunks of 1, 3 and the remaining tokens; before the last chunk two wrong tokens are
/// written and forgotten.
template <typename Block>
Tensor chunked(const Block& block, const Tensor& x, const Tensor& wrong)
{
    LayerCache cache = makeCache(block, x.size(0), x.size(1) + 2);
    const Tensor first = attendCached(block, x.narrow(1, 0, 1), cache, 0);
    const Tensor second = attendCached(block, x.narrow(1, 1, 3), cache, 1);
    (void)attendCached(block, wrong, cache, 4);
    const Tensor rest = attendCached(block, x.narrow(1, 4, x.size(1) - 4), cache, 4);
    return torch::cat({first, second, rest}, 1);
}

} // namespace

class TestAttention : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() { useOneThread(); }
    void blockedEqualsDense_data();
    void blockedEqualsDense();
    void probabilities();
    void cachedMla_data();
    void cachedMla();
    void cachedGqa_data();
    void cachedGqa();
    void qkNorm();
    void dynamicRopeFollowsTheLength();
    void modelRollsBack();
};

void TestAttention::blockedEqualsDense_data()
{
    QTest::addColumn<int>("length");
    QTest::addColumn<int>("window");
    for (const int length : {1, 63, 64, 65, 200})
        for (const int window : {0, 1, 5, 64, 65, 100, 200, 1000})
            QTest::addRow("%d, window %d", length, window) << length << window;
}

void TestAttention::blockedEqualsDense()
{
    QFETCH(int, length);
    QFETCH(int, window);
    torch::Generator g = seededGenerator(1, 2, static_cast<std::uint64_t>(length));
    const auto f64 = torch::dtype(torch::kFloat64);
    const Tensor weight = torch::randn({2, 3, length, 5}, g, f64);
    std::vector<Tensor> mine = {torch::randn({2, 3, length, 8}, g, f64),
                                torch::randn({2, 3, length, 8}, g, f64),
                                torch::randn({2, 3, length, 5}, g, f64)};
    std::vector<Tensor> theirs;
    for (Tensor& t : mine) {
        theirs.push_back(t.clone().requires_grad_(true));
        t.requires_grad_(true);
    }
    const Tensor blocked = causalAttention(mine[0], mine[1], mine[2], 0.6, window);
    const Tensor dense = denseAttention(theirs[0], theirs[1], theirs[2], 0.6, window);
    double worst = maxDifference(blocked.detach(), dense.detach());
    (blocked * weight).sum().backward();
    (dense * weight).sum().backward();
    for (std::size_t i = 0; i < mine.size(); ++i)
        worst = std::max(worst, maxDifference(mine[i].grad(), theirs[i].grad()));
    qInfo("T = %d, window %d: %.2g", length, window, worst);
    QVERIFY(worst < 1e-12);
}

void TestAttention::probabilities()
{
    torch::Generator g = seededGenerator(3, 0);
    const Tensor q = randomTensor({1, 2, 7, 4}, g), k = randomTensor({1, 2, 7, 4}, g);
    const Tensor p = causalProbabilities(q, k, 0.5);
    QVERIFY(maxDifference(p.sum(-1), torch::ones({1, 2, 7})) < 1e-6);
    QVERIFY(!p.triu(1).any().item<bool>());
    const Tensor identity = torch::eye(7).expand({1, 2, 7, 7}).contiguous();
    QVERIFY(maxDifference(p, denseAttention(q, k, identity, 0.5)) < 1e-6);
    const Tensor windowed = causalProbabilities(q, k, 0.5, 3);
    QVERIFY(maxDifference(windowed, denseAttention(q, k, identity, 0.5, 3)) < 1e-6);
    QVERIFY(!windowed.tril(-3).any().item<bool>() &&
            windowed.triu(-2).tril().gt(0).sum().item<int>() == 2 * (1 + 2 + 5 * 3));
}

void TestAttention::cachedMla_data()
{
    QTest::addColumn<bool>("transmla");
    QTest::addColumn<int>("nopeDim");
    QTest::addColumn<bool>("biases");
    for (const bool transmla : {true, false})
        for (const int nopeDim : {kHeadDim, 0})
            for (const bool biases : {true, false})
                QTest::newRow(qPrintable(QString("%1, d_n = %2%3")
                                             .arg(transmla ? "transmla" : "mha2mla")
                                             .arg(nopeDim)
                                             .arg(biases ? ", biases" : "")))
                    << transmla << nopeDim << biases;
}

void TestAttention::cachedMla()
{
    QFETCH(bool, transmla);
    QFETCH(int, nopeDim);
    QFETCH(bool, biases);
    torch::Generator g = seededGenerator(4, transmla ? 1 : 0, nopeDim + (biases ? 1 : 0));
    const MlaBlock block = randomBlock({transmla, nopeDim, 4, biases}, g);
    const Tensor x = randomTensor({2, 70, kHidden}, g), wrong = randomTensor({2, 2, kHidden}, g);
    const double worst = relativeDifference(chunked(block, x, wrong), attend(block, x));
    qInfo("absorbed against materialised: %.2g", worst);
    QVERIFY(worst < 1e-5);
}

void TestAttention::cachedGqa_data()
{
    QTest::addColumn<Kind>("kind");
    QTest::newRow("plain") << Kind::Plain;
    QTest::newRow("biases") << Kind::Biases;
    QTest::newRow("window") << Kind::Window;
    QTest::newRow("qk-norm") << Kind::QkNorm;
    QTest::newRow("dynamic rope, short text") << Kind::Dynamic;
}

void TestAttention::cachedGqa()
{
    QFETCH(Kind, kind);
    torch::Generator g = seededGenerator(5, static_cast<std::uint64_t>(kind));
    const GqaBlock block = randomGqa(kind, g);
    const Tensor x = randomTensor({2, 70, kHidden}, g), wrong = randomTensor({2, 2, kHidden}, g);
    const double worst = relativeDifference(chunked(block, x, wrong), attend(block, x));
    qInfo("cached against whole: %.2g", worst);
    QVERIFY(worst < 1e-5);
}

void TestAttention::qkNorm()
{
    torch::Generator g = seededGenerator(7, 0);
    const GqaBlock block = randomGqa(Kind::QkNorm, g);
    const Tensor x = randomTensor({1, 5, kHidden}, g);
    const GqaProjections p = project(block, x);
    // Head 1 of the keys: w * k / sqrt(mean k^2 + eps), then nothing else.
    const Tensor k = torch::linear(x, block.wk).slice(-1, kHeadDim, 2 * kHeadDim);
    const Tensor expected = block.kNorm * k / (k.square().mean(-1, true) + block.normEps).sqrt();
    QVERIFY(relativeDifference(p.k.select(1, 1), expected) < 1e-6);
    const Tensor values = torch::linear(x, block.wv).view({1, 5, 2, kHeadDim}).transpose(1, 2);
    QVERIFY(relativeDifference(p.v, values) < 1e-6);
    const double large = relativeDifference(project(block, 50 * x).k, p.k);
    QVERIFY2(large < 1e-4, qPrintable(QString::number(large))); // the norm takes the size away
}

void TestAttention::dynamicRopeFollowsTheLength()
{
    torch::Generator g = seededGenerator(8, 0);
    GqaBlock block = randomGqa(Kind::Dynamic, g);
    block.dynamicRope->originalMaxPositionEmbeddings = 4;
    const Tensor x = randomTensor({1, 10, kHidden}, g);
    const auto fixed = [&](std::int64_t length) {
        GqaBlock plain = block;
        // NTK: theta (factor length / original - (factor - 1))^(h / (h - 2))
        const double growth = 2.0 * static_cast<double>(std::max<std::int64_t>(length, 4)) / 4 - 1;
        const double theta = 1e4 * std::pow(growth, 8.0 / 6);
        plain.dynamicRope.reset();
        plain.frequencies =
            torch::pow(theta, torch::arange(4, torch::kFloat64) * (-2.0 / kHeadDim)).unsqueeze(0);
        return plain;
    };
    QVERIFY(relativeDifference(attend(block, x), attend(fixed(10), x)) < 1e-6);
    const Tensor start = x.narrow(1, 0, 3);
    QVERIFY(relativeDifference(attend(block, start), attend(fixed(3), start)) < 1e-6);
    QVERIFY(relativeDifference(attend(block, x), attend(fixed(4), x)) > 1e-3);
    // Cached: 6 tokens at the frequencies of 6, then 4 at those of 10; the old keys stay.
    LayerCache mine = makeCache(block, 1, 10), theirs = makeCache(block, 1, 10);
    (void)attendCached(block, x.narrow(1, 0, 6), mine, 0);
    (void)attendCached(fixed(6), x.narrow(1, 0, 6), theirs, 0);
    const Tensor got = attendCached(block, x.narrow(1, 6, 4), mine, 6);
    QVERIFY(relativeDifference(got, attendCached(fixed(10), x.narrow(1, 6, 4), theirs, 6)) < 1e-6);
}

void TestAttention::modelRollsBack()
{
    const Decoder model = openModel(stories());
    const torch::NoGradGuard noGrad;
    torch::Generator g = seededGenerator(6, 0);
    const Tensor ids = torch::randint(3, 512, {1, 20}, g, torch::kInt64);
    const Tensor whole = model.logits(ids);
    KvCache cache = model.makeCache(1, 24);
    (void)model.stepLast(ids.narrow(1, 0, 9), cache);
    (void)model.step(ids.narrow(1, 0, 5), cache); // a proposal that is rejected
    QCOMPARE(cache.length(), std::int64_t{14});
    cache.rollback(9);
    QCOMPARE(cache.length(), std::int64_t{9});
    cache.rollback(12); // never forwards
    QCOMPARE(cache.length(), std::int64_t{9});
    QVERIFY(relativeDifference(model.step(ids.narrow(1, 9, 11), cache), whole.narrow(1, 9, 11)) <
            1e-5);
    QVERIFY_EXCEPTION_THROWN((void)model.step(ids, cache), c10::Error); // 20 + 20 > 24
}

QTEST_APPLESS_MAIN(TestAttention)
#include "tst_attention.moc"
