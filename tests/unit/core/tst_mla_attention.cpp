// SPDX-License-Identifier: GPL-3.0-or-later
// What a source's family adds to the MLA block (QK-norm, latent norm, window): whole sequences
// against the formula token by token in fp64, decoding from the cache, and what stays frozen.
#include "core/model/kv_cache.h"
#include "core/model/mla_attention.h"
#include "tests/support/numeric.h"

#include <QTest>

using namespace mla;
using namespace mla::test;
using torch::Tensor;

namespace
{

constexpr int kHidden = 24, kHeads = 6, kKvHeads = 2, kRank = 10, kRopeDim = 4, kNopeDim = 4,
              kValueDim = 8;

struct Extras {
    bool biases, qkNorm, latentNorm;
    int window;
};

MlaBlock blockWith(const Extras& extras, torch::Generator& g)
{
    const auto random = [&](torch::IntArrayRef shape) {
        return torch::randn(shape, g, torch::dtype(torch::kFloat32));
    };
    const auto weight = [&](int rows, int columns) {
        return random({rows, columns}) / std::sqrt(static_cast<double>(columns));
    };
    MlaBlock b;
    b.heads = kHeads;
    b.upHeads = b.ropeKeyHeads = kKvHeads;
    b.nopeDim = kNopeDim;
    b.ropeDim = kRopeDim;
    b.vDim = kValueDim;
    b.rank = kRank;
    b.scale = 0.35;
    b.window = extras.window;
    b.wq = weight(kHeads * (kNopeDim + kRopeDim), kHidden);
    b.wdkv = weight(kRank, kHidden);
    b.wkr = weight(kKvHeads * kRopeDim, kHidden);
    b.wuk = weight(kKvHeads * kNopeDim, kRank);
    b.wuv = weight(kKvHeads * kValueDim, kRank);
    b.wo = weight(kHidden, kHeads * kValueDim);
    if (extras.biases) {
        b.bq = random({b.wq.size(0)});
        b.bdkv = random({kRank});
        b.bkr = random({b.wkr.size(0)});
        b.buk = random({b.wuk.size(0)});
        b.buv = random({b.wuv.size(0)});
    }
    if (extras.qkNorm) {
        b.qNorm = random({kKvHeads, kNopeDim + kRopeDim});
        b.kNorm = random({kKvHeads, kNopeDim + kRopeDim});
        b.normEps = 1e-3;
    }
    if (extras.latentNorm) {
        b.latentNorm = random({kRank});
        b.latentNormEps = 1e-3;
    }
    b.frequencies = torch::rand({kKvHeads, kRopeDim / 2}, g, torch::dtype(torch::kFloat64));
    return b;
}

Tensor f64(const Tensor& t)
{
    return t.to(torch::kFloat64);
}

Tensor affine(const Tensor& weight, const Tensor& bias, const Tensor& x)
{
    const Tensor y = torch::mv(f64(weight), x);
    return bias.defined() ? y + f64(bias) : y;
}

Tensor normalised(const Tensor& x, const Tensor& weight, double eps)
{
    return weight.defined() ? x / torch::sqrt(x.pow(2).mean() + eps) * f64(weight) : x;
}

/// The last kRopeDim dims of a head turned to `position`.
Tensor turned(const Tensor& head, const Tensor& frequencies, int position)
{
    constexpr int half = kRopeDim / 2;
    const Tensor a = head.narrow(0, kNopeDim, half), b = head.narrow(0, kNopeDim + half, half);
    const Tensor angle = frequencies * position;
    return torch::cat({head.narrow(0, 0, kNopeDim), a * angle.cos() - b * angle.sin(),
                       b * angle.cos() + a * angle.sin()});
}

/// The block's definition for one sequence x [T, d], written out.
Tensor byFormula(const MlaBlock& b, const Tensor& x)
{
    const auto length = static_cast<int>(x.size(0));
    std::vector<std::vector<Tensor>> keys(kKvHeads), values(kKvHeads);
    std::vector<Tensor> rows;
    for (int t = 0; t < length; ++t) {
        const Tensor xt = f64(x[t]);
        const Tensor c = normalised(affine(b.wdkv, b.bdkv, xt), b.latentNorm, b.latentNormEps);
        const Tensor nope = affine(b.wuk, b.buk, c).view({kKvHeads, kNopeDim});
        const Tensor rotary = affine(b.wkr, b.bkr, xt).view({kKvHeads, kRopeDim});
        const Tensor value = affine(b.wuv, b.buv, c).view({kKvHeads, kValueDim});
        for (int g = 0; g < kKvHeads; ++g) {
            const Tensor weight = b.kNorm.defined() ? b.kNorm[g] : Tensor();
            const Tensor key = normalised(torch::cat({nope[g], rotary[g]}), weight, b.normEps);
            keys[static_cast<std::size_t>(g)].push_back(turned(key, b.frequencies[g], t));
            values[static_cast<std::size_t>(g)].push_back(value[g]);
        }
        const Tensor q = affine(b.wq, b.bq, xt).view({kHeads, -1});
        std::vector<Tensor> heads;
        for (int i = 0; i < kHeads; ++i) {
            const int g = i / (kHeads / kKvHeads);
            const Tensor weight = b.qNorm.defined() ? b.qNorm[g] : Tensor();
            const Tensor query = turned(normalised(q[i], weight, b.normEps), b.frequencies[g], t);
            const int first = b.window > 0 ? std::max<int>(0, t + 1 - int(b.window)) : 0;
            const auto seen = [&](const std::vector<Tensor>& all) {
                return torch::stack(std::vector<Tensor>(all.begin() + first, all.end()));
            };
            const Tensor p =
                (torch::mv(seen(keys[static_cast<std::size_t>(g)]), query) * b.scale).softmax(0);
            heads.push_back(torch::mv(seen(values[static_cast<std::size_t>(g)]).t(), p));
        }
        rows.push_back(torch::mv(f64(b.wo), torch::cat(heads)));
    }
    return torch::stack(rows);
}

} // namespace

class TestMlaAttention : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() { useOneThread(); }
    void formula_data();
    void formula();
    void normsStayFrozen();
};

void TestMlaAttention::formula_data()
{
    QTest::addColumn<bool>("biases");
    QTest::addColumn<bool>("qkNorm");
    QTest::addColumn<bool>("latentNorm");
    QTest::addColumn<int>("window");
    for (const bool biases : {false, true})
        for (const bool qkNorm : {false, true})
            for (const bool latentNorm : {false, true})
                for (const int window : {0, 5})
                    QTest::newRow(
                        qPrintable(QString("%1%2%3window %4")
                                       .arg(biases ? "biases, " : "", qkNorm ? "QK-norm, " : "",
                                            latentNorm ? "latent norm, " : "")
                                       .arg(window)))
                        << biases << qkNorm << latentNorm << window;
}

void TestMlaAttention::formula()
{
    QFETCH(bool, biases);
    QFETCH(bool, qkNorm);
    QFETCH(bool, latentNorm);
    QFETCH(int, window);
    torch::Generator g = seededGenerator(7, biases ? 1 : 0, qkNorm ? 1 : 0);
    const MlaBlock block = blockWith({biases, qkNorm, latentNorm, window}, g);
    const torch::NoGradGuard noGrad;
    constexpr int length = 19;
    const Tensor x = torch::randn({1, length, kHidden}, g, torch::dtype(torch::kFloat32));
    const Tensor expected = byFormula(block, x[0]).unsqueeze(0);
    const double whole = relativeDifference(attend(block, x), expected);

    LayerCache cache = makeCache(block, 1, length + 2);
    const Tensor wrong = torch::randn({1, 2, kHidden}, g, torch::dtype(torch::kFloat32));
    std::vector<Tensor> parts = {attendCached(block, x.narrow(1, 0, 4), cache, 0)};
    (void)attendCached(block, wrong, cache, 4); // rejected tokens are written over
    for (int t = 4; t < 12; ++t)
        parts.push_back(attendCached(block, x.narrow(1, t, 1), cache, t));
    parts.push_back(attendCached(block, x.narrow(1, 12, length - 12), cache, 12));
    const double cached = relativeDifference(torch::cat(parts, 1), expected);
    qInfo("whole %.2g, cached %.2g", whole, cached);
    QVERIFY(whole < 1e-5);
    QVERIFY(cached < 1e-5);
    const std::int64_t perToken =
        cache.first.numel() / (length + 2) + cache.second.numel() / (length + 2);
    QCOMPARE(perToken, block.cacheElements());
    QCOMPARE(block.cacheElements(),
             std::int64_t{kRank + kKvHeads * kRopeDim + (qkNorm ? kKvHeads : 0)});
}

/// Refinement trains through the norms, not their weights.
void TestMlaAttention::normsStayFrozen()
{
    torch::Generator g = seededGenerator(8, 0);
    MlaBlock block = blockWith({false, true, true, 0}, g);
    QCOMPARE(block.trainable().size(), std::size_t{5});
    for (Tensor* tensor : block.trainable()) {
        QVERIFY(tensor != &block.qNorm && tensor != &block.kNorm && tensor != &block.latentNorm);
        *tensor = tensor->detach().clone().requires_grad_(true);
    }
    const Tensor x = torch::randn({2, 9, kHidden}, g, torch::dtype(torch::kFloat32));
    attend(block, x).pow(2).sum().backward();
    for (Tensor* tensor : block.trainable())
        QVERIFY(tensor->grad().abs().max().item<double>() > 0);
}

QTEST_APPLESS_MAIN(TestMlaAttention)
#include "tst_mla_attention.moc"
