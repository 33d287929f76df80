// SPDX-License-Identifier: GPL-3.0-or-later
// Products of a few rows against exact ones, and what may be kept narrow.
#include "core/model/linear.h"
#include "core/model/thin_product.h"

#include <QTest>

using namespace mla;

namespace
{

torch::Tensor randomRows(std::int64_t rows, std::int64_t columns)
{
    return torch::randn({rows, columns}, torch::kFloat64);
}

/// The bound of any order of K fp32 additions and products: K eps times the sum of magnitudes.
bool within(const torch::Tensor& y, const torch::Tensor& x, const torch::Tensor& w)
{
    const torch::Tensor exact = x.to(torch::kFloat64).matmul(w.to(torch::kFloat64).t());
    const torch::Tensor bound =
        x.to(torch::kFloat64).abs().matmul(w.to(torch::kFloat64).abs().t()) *
        (static_cast<double>(w.size(1)) * std::numeric_limits<float>::epsilon());
    return ((y.to(torch::kFloat64) - exact).abs() <= bound).all().item<bool>();
}

} // namespace

class TestLinear : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void init() { torch::manual_seed(7); }
    void thinProductsAreExact_data();
    void thinProductsAreExact();
    void aRowDependsOnItselfAlone_data();
    void aRowDependsOnItselfAlone();
    void everyBf16Value();
    void shapesAndBias();
    void gradients();
    void keepsNarrowWhatLosesNothing();
};

void TestLinear::thinProductsAreExact_data()
{
    QTest::addColumn<int>("rows");
    QTest::addColumn<int>("outputs");
    QTest::addColumn<int>("inputs");
    // Around the sizes at which the kernel changes its step: rows by 4, outputs by 8, inputs by 16.
    for (const int rows : {1, 2, 3, 4, 5, 7, 32, 33})
        for (const int outputs : {1, 8, 9})
            for (const int inputs : {1, 8, 15, 16, 17, 64, 97})
                QTest::addRow("%d x %d x %d", rows, outputs, inputs) << rows << outputs << inputs;
}

void TestLinear::thinProductsAreExact()
{
    QFETCH(int, rows);
    QFETCH(int, outputs);
    QFETCH(int, inputs);
    const torch::Tensor x = randomRows(rows, inputs).to(torch::kFloat32);
    const torch::Tensor w = randomRows(outputs, inputs).to(torch::kFloat32);
    QVERIFY(within(linearMap(x, w, {}), x, w));
    const torch::Tensor narrow = w.to(torch::kBFloat16);
    QVERIFY(within(linearMap(x, narrow, {}), x, narrow));
}

void TestLinear::aRowDependsOnItselfAlone_data()
{
    QTest::addColumn<bool>("narrow");
    QTest::newRow("fp32") << false;
    QTest::newRow("bf16") << true;
}

/// What lets a verification of k + 1 tokens agree with decoding one token at a time.
void TestLinear::aRowDependsOnItselfAlone()
{
    QFETCH(bool, narrow);
    const torch::Tensor x = randomRows(13, 100).to(torch::kFloat32);
    torch::Tensor w = randomRows(37, 100).to(torch::kFloat32);
    if (narrow)
        w = w.to(torch::kBFloat16);
    const torch::Tensor together = linearMap(x, w, {});
    for (int row = 0; row < 13; ++row)
        QVERIFY(linearMap(x[row], w, {}).equal(together[row]));
}

/// 1 times every finite bf16 number is that number; each stands once at every place of a block.
void TestLinear::everyBf16Value()
{
    constexpr int width = 16, count = 1 << 16;
    std::vector<Bf16Bits> w;
    std::vector<float> expected;
    for (int bits = 0; bits < count; ++bits) {
        const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16U;
        float value = 0;
        std::memcpy(&value, &word, sizeof value);
        if (!std::isfinite(value))
            continue;
        expected.push_back(value);
        for (int i = 0; i < width; ++i)
            w.push_back(i == bits % width ? static_cast<Bf16Bits>(bits) : Bf16Bits(0));
    }
    const std::vector<float> x(width, 1.0F);
    std::vector<float> y(expected.size());
    thinProduct(x.data(), 1, w.data(), static_cast<std::int64_t>(expected.size()), width, y.data());
    QCOMPARE(y, expected);
}

void TestLinear::shapesAndBias()
{
    const torch::Tensor x = randomRows(6, 20).to(torch::kFloat32).view({2, 3, 20});
    const torch::Tensor w = randomRows(5, 20).to(torch::kFloat32);
    const torch::Tensor b = randomRows(1, 5).to(torch::kFloat32).view({5});
    const torch::Tensor y = linearMap(x, w, b);
    QVERIFY(y.sizes() == torch::IntArrayRef({2, 3, 5}));
    QVERIFY(torch::allclose(y, torch::linear(x, w, b), 1e-5, 1e-5));
    // Rows that do not lie one behind another, and none at all.
    const torch::Tensor strided = x.transpose(0, 1);
    QVERIFY(torch::allclose(linearMap(strided, w, b), torch::linear(strided, w, b), 1e-5, 1e-5));
    QVERIFY(linearMap(x.narrow(1, 0, 0), w, b).sizes() == torch::IntArrayRef({2, 0, 5}));
}

void TestLinear::gradients()
{
    const torch::Tensor x = randomRows(3, 20).to(torch::kFloat32);
    torch::Tensor w = randomRows(5, 20).to(torch::kFloat32).requires_grad_();
    linearMap(x, w, {}).sum().backward();
    QVERIFY(torch::allclose(w.grad(), x.sum(0).expand({5, 20})));
}

void TestLinear::keepsNarrowWhatLosesNothing()
{
    const torch::Tensor w = randomRows(4, 8).to(torch::kFloat32);
    QVERIFY(keptNarrow(w).is_same(w)); // random digits do not fit
    const torch::Tensor stored = w.to(torch::kBFloat16).to(torch::kFloat32);
    const torch::Tensor kept = keptNarrow(stored);
    QVERIFY(kept.scalar_type() == torch::kBFloat16);
    QVERIFY(kept.to(torch::kFloat32).equal(stored));
    QVERIFY(computeOptions(kept).dtype() == torch::kFloat32);
    const torch::Tensor wide = w.to(torch::kFloat64);
    QVERIFY(keptNarrow(wide).is_same(wide));
}

QTEST_APPLESS_MAIN(TestLinear)
#include "tst_linear.moc"
