// SPDX-License-Identifier: GPL-3.0-or-later
// The blocked causal pass against the dense formula, forward and backward; decoding from a cache
// against whole sequences, for GQA blocks and both kinds of MLA block.
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

Tensor denseAttention(const Tensor& q, const Tensor& k, const Tensor& v, double scale)
{
    const std::int64_t length = q.size(2);
    const Tensor future = torch::ones({length, length}, torch::kBool).triu(1);
    const Tensor scores = torch::matmul(q, k.transpose(-1, -2)) * scale;
    return scores.masked_fill(future, -std::numeric_limits<double>::infinity())
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

GqaBlock randomGqa(bool biases, torch::Generator& g)
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
    if (biases) {
        b.bq = randomTensor({b.wq.size(0)}, g);
        b.bk = randomTensor({b.wk.size(0)}, g);
        b.bv = randomTensor({b.wv.size(0)}, g);
        b.bo = randomTensor({kHidden}, g);
    }
    b.frequencies = torch::rand({1, kHeadDim / 2}, g, torch::dtype(torch::kFloat64));
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
    void modelRollsBack();
};

void TestAttention::blockedEqualsDense_data()
{
    QTest::addColumn<int>("length");
    for (const int length : {1, 63, 64, 65, 200})
        QTest::newRow(qPrintable(QString::number(length))) << length;
}

void TestAttention::blockedEqualsDense()
{
    QFETCH(int, length);
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
    const Tensor blocked = causalAttention(mine[0], mine[1], mine[2], 0.6);
    const Tensor dense = denseAttention(theirs[0], theirs[1], theirs[2], 0.6);
    double worst = maxDifference(blocked.detach(), dense.detach());
    (blocked * weight).sum().backward();
    (dense * weight).sum().backward();
    for (std::size_t i = 0; i < mine.size(); ++i)
        worst = std::max(worst, maxDifference(mine[i].grad(), theirs[i].grad()));
    qInfo("T = %d: %.2g", length, worst);
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
    QTest::addColumn<bool>("biases");
    QTest::newRow("biases") << true;
    QTest::newRow("no biases") << false;
}

void TestAttention::cachedGqa()
{
    QFETCH(bool, biases);
    torch::Generator g = seededGenerator(5, biases ? 1 : 0);
    const GqaBlock block = randomGqa(biases, g);
    const Tensor x = randomTensor({2, 70, kHidden}, g), wrong = randomTensor({2, 2, kHidden}, g);
    const double worst = relativeDifference(chunked(block, x, wrong), attend(block, x));
    qInfo("cached against whole: %.2g", worst);
    QVERIFY(worst < 1e-5);
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
