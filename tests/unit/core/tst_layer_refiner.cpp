// SPDX-License-Identifier: GPL-3.0-or-later
// The rules that a layer's refinement keeps (design section 6).
#include "core/refine/layer_refiner.h"
#include "tests/support/method_layer.h"

#include <limits>

#include <QTest>

using namespace mla;
using namespace mla::test;
using torch::Tensor;

namespace
{

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::unique_ptr<Objective> objectiveOf(const std::string& name, const MethodLayer& layer,
                                       const KeyBasis& basis)
{
    return name == "functional" ? functionalObjective(layer.attention, layer.mask)
                                : partialRopeObjective(layer.block, basis);
}

LayerData dataOf(const MethodLayer& layer)
{
    return {LayerIndex(3), layer.x, layer.attention, layer.mask, 2};
}

ConvertedLayer convertedLayer(const MethodLayer& layer, const std::string& converter,
                              const std::string& svd = "joint")
{
    ConvertSettings settings;
    settings.converter = converter;
    settings.kvLoraRank = 20;
    settings.qkRopeHeadDim = 8;
    settings.svd = svd;
    return must(must(makeConverter(settings))->convert(layer.sample(), settings.kvLoraRank));
}

/// Turns a loss of training into NaN from the n-th training batch on.
class Poisoned final : public Objective
{
public:
    Poisoned(const Objective& inner, int healthy) : m_inner(inner), m_healthy(healthy) {}
    [[nodiscard]] Tensor loss(const MlaBlock& block, const RefineBatch& batch) const override
    {
        const Tensor loss = m_inner.loss(block, batch);
        const bool training = torch::GradMode::is_enabled();
        return training && m_healthy-- <= 0 ? loss * kNaN : loss;
    }
    [[nodiscard]] double scale() const override { return m_inner.scale(); }

private:
    const Objective& m_inner;
    mutable int m_healthy;
};

} // namespace

class TestLayerRefiner : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase();
    void paddingCountsForNothing();
    void keepsBestStep();
    void neverWorse();
    void nonFiniteInput();
    void nonFiniteLater();
    void zeroBlocksStayZero();
    void queriesStayWithoutGradient();
    void frozenStay();
    void repeatable();
    void cancels();

private:
    RefinedLayer refined(const ConvertedLayer& start, const Objective& objective,
                         const LayerData& data, RefineOptions options = {});
    static bool sameBlock(MlaBlock a, MlaBlock b);
    MethodLayer m_layer;
    JobContext m_job;
};

void TestLayerRefiner::initTestCase()
{
    useOneThread();
    m_layer = methodLayer();
}

RefinedLayer TestLayerRefiner::refined(const ConvertedLayer& start, const Objective& objective,
                                       const LayerData& data, RefineOptions options)
{
    return must(refineLayer(m_job, start.block, start.basis, objective, data, options));
}

bool TestLayerRefiner::sameBlock(MlaBlock a, MlaBlock b)
{
    const std::vector<Tensor*> ours = a.trainable(), theirs = b.trainable();
    bool same = ours.size() == theirs.size();
    for (std::size_t i = 0; same && i < ours.size(); ++i)
        same = identical(*ours[i], *theirs[i]);
    return same;
}

void TestLayerRefiner::paddingCountsForNothing()
{
    const ConvertedLayer start = convertedLayer(m_layer, "mha2mla");
    const Tensor valid = m_layer.mask.unsqueeze(-1);
    const Tensor other = torch::where(valid, m_layer.x, torch::full({}, 9.0F));
    const Tensor target = torch::where(valid, m_layer.attention, torch::full({}, -7.0F));
    QVERIFY(maxDifference(other, m_layer.x) > 1);
    for (const char* name : {"functional", "partial-rope"}) {
        const auto loss = objectiveOf(name, m_layer, start.basis);
        const Tensor a = loss->loss(start.block, {m_layer.x, m_layer.attention, m_layer.mask});
        const Tensor b = loss->loss(start.block, {other, target, m_layer.mask});
        QCOMPARE(a.item<float>(), b.item<float>());
    }
    QVERIFY(std::abs(functionalObjective(m_layer.attention, m_layer.mask)->scale() /
                         functionalObjective(target, m_layer.mask)->scale() -
                     1) < 1e-12);
}

void TestLayerRefiner::keepsBestStep()
{
    const ConvertedLayer start = convertedLayer(m_layer, "transmla");
    const auto loss = objectiveOf("functional", m_layer, start.basis);
    RefineOptions options;
    options.steps = 24;
    options.learningRate = 5e-3; // rough enough that the last step need not be the best
    options.batchSequences = 2;
    const RefinedLayer out = refined(start, *loss, dataOf(m_layer), options);
    double best = out.lossBefore;
    for (const double value : out.curve.heldout)
        best = std::isnan(value) ? best : std::min(best, value);
    QCOMPARE(out.lossAfter, best);
    QVERIFY(out.lossAfter < out.lossBefore);
    QVERIFY(!out.keptConverted);
    QCOMPARE(heldoutLoss(*loss, out.block, dataOf(m_layer), 2), out.lossAfter);
    // Held-out sequences are the last two: the plain mean of their losses.
    const Tensor held =
        loss->loss(start.block, {m_layer.x.narrow(0, 6, 2), m_layer.attention.narrow(0, 6, 2),
                                 m_layer.mask.narrow(0, 6, 2)});
    QVERIFY(std::abs(held.item<double>() / out.lossBefore - 1) < 1e-6);
}

void TestLayerRefiner::neverWorse()
{
    const ConvertedLayer start = convertedLayer(m_layer, "transmla");
    const auto loss = objectiveOf("functional", m_layer, start.basis);
    RefineOptions options;
    options.steps = 12;
    options.learningRate = 100;
    const RefinedLayer out = refined(start, *loss, dataOf(m_layer), options);
    QVERIFY(out.keptConverted);
    QCOMPARE(out.lossAfter, out.lossBefore);
    QVERIFY(sameBlock(out.block, start.block));
}

void TestLayerRefiner::nonFiniteInput()
{
    const ConvertedLayer start = convertedLayer(m_layer, "mha2mla");
    LayerData data = dataOf(m_layer);
    data.input = data.input.clone();
    data.input[0][0][0] = kNaN;
    const auto loss = objectiveOf("functional", m_layer, start.basis);
    RefineOptions options;
    options.batchSequences = 6;
    const RefinedLayer out = refined(start, *loss, data, options);
    QCOMPARE(out.warnings.size(), std::size_t{1});
    QVERIFY(out.warnings[0].find("layer 3") != std::string::npos);
    QVERIFY(out.keptConverted);
    QVERIFY(sameBlock(out.block, start.block));
}

void TestLayerRefiner::nonFiniteLater()
{
    const ConvertedLayer start = convertedLayer(m_layer, "mha2mla");
    const auto loss = objectiveOf("functional", m_layer, start.basis);
    const Poisoned poisoned(*loss, 5);
    RefineOptions options;
    options.steps = 12;
    options.batchSequences = 6;
    const RefinedLayer out = refined(start, poisoned, dataOf(m_layer), options);
    QCOMPARE(out.warnings.size(), std::size_t{1});
    QVERIFY(out.warnings[0].find("step 6") != std::string::npos);
    QVERIFY(!out.keptConverted);
    QVERIFY(out.lossAfter < out.lossBefore);
    QCOMPARE(heldoutLoss(*loss, out.block, dataOf(m_layer), 6), out.lossAfter);
}

void TestLayerRefiner::zeroBlocksStayZero()
{
    const ConvertedLayer start = convertedLayer(m_layer, "mha2mla", "split");
    const int keyRank = start.basis.keyRank;
    QCOMPARE(keyRank, 10);
    for (const char* name : {"functional", "partial-rope"}) {
        const auto loss = objectiveOf(name, m_layer, start.basis);
        RefineOptions options;
        options.steps = 20;
        const RefinedLayer out = refined(start, *loss, dataOf(m_layer), options);
        QVERIFY(!out.keptConverted);
        QVERIFY(!out.block.wuk.slice(1, keyRank).any().item<bool>());
        QVERIFY(!out.block.wuv.slice(1, 0, keyRank).any().item<bool>());
        QVERIFY(!identical(out.block.wuk, start.block.wuk));
        QVERIFY(!identical(out.block.wuv, start.block.wuv));
    }
}

void TestLayerRefiner::queriesStayWithoutGradient()
{
    const ConvertedLayer start = convertedLayer(m_layer, "mha2mla");
    const auto loss = objectiveOf("partial-rope", m_layer, start.basis);
    const RefinedLayer out = refined(start, *loss, dataOf(m_layer));
    QVERIFY(!out.keptConverted);
    QVERIFY(identical(out.block.wq, start.block.wq));
    QVERIFY(identical(out.block.bq, start.block.bq));
    QVERIFY(!identical(out.block.wdkv, start.block.wdkv));
}

void TestLayerRefiner::frozenStay()
{
    for (const char* converter : {"transmla", "mha2mla"}) {
        const ConvertedLayer start = convertedLayer(m_layer, converter);
        const Tensor output = m_layer.block.wo.clone(), bias = m_layer.block.bo.clone();
        const Tensor query = start.block.wq.clone(), latent = start.block.bdkv.clone();
        const auto loss = objectiveOf("functional", m_layer, start.basis);
        const RefinedLayer out = refined(start, *loss, dataOf(m_layer));
        QVERIFY(identical(out.block.wo, output));
        QVERIFY(identical(out.block.bo, bias));
        QVERIFY(identical(out.block.frequencies, start.block.frequencies));
        QVERIFY(identical(start.block.wq, query)); // the start is copied, not trained
        if (start.block.buv.defined())             // biases stay on the up side
            QVERIFY(identical(out.block.bdkv, latent));
        QVERIFY(!identical(out.block.wq, query));
    }
}

void TestLayerRefiner::repeatable()
{
    const ConvertedLayer start = convertedLayer(m_layer, "transmla");
    const auto loss = objectiveOf("functional", m_layer, start.basis);
    RefineOptions options;
    options.batchSequences = 2;
    const RefinedLayer first = refined(start, *loss, dataOf(m_layer), options);
    const RefinedLayer second = refined(start, *loss, dataOf(m_layer), options);
    QVERIFY(sameBlock(first.block, second.block));
    QCOMPARE(first.lossAfter, second.lossAfter);
    options.seed = 1; // other batches
    QVERIFY(!sameBlock(first.block, refined(start, *loss, dataOf(m_layer), options).block));
}

void TestLayerRefiner::cancels()
{
    const ConvertedLayer start = convertedLayer(m_layer, "transmla");
    const auto loss = objectiveOf("functional", m_layer, start.basis);
    std::stop_source stop;
    int last = -1;
    JobContext job(stop.get_token(), [&](const JobEvent& event) {
        if (const auto* point = std::get_if<LossPoint>(&event)) {
            last = point->step;
            if (point->step == 3)
                stop.request_stop();
        }
    });
    const auto result =
        refineLayer(job, start.block, start.basis, *loss, dataOf(m_layer), RefineOptions());
    QVERIFY(!result.ok());
    QCOMPARE(result.error().code, ErrorCode::Cancelled);
    QCOMPARE(last, 3);
}

QTEST_APPLESS_MAIN(TestLayerRefiner)
#include "tst_layer_refiner.moc"
