// SPDX-License-Identifier: GPL-3.0-or-later
// Objectives, their gradients and a short training against an independent float64 implementation
// (make_method_goldens.py).
#include "core/refine/layer_refiner.h"
#include "core/refine/schedule.h"
#include "tests/support/method_layer.h"

#include <algorithm>
#include <functional>
#include <map>

#include <QTest>

using namespace mla;
using namespace mla::test;
using torch::Tensor;

namespace
{

constexpr double kFloat32 = 5e-5; // max |difference| / max |golden|

/// The block with given weights of the goldens' training section, and how its tensors are named.
struct GoldenBlock {
    MlaBlock block;
    KeyBasis basis;
    /// Values of the block's tensors (or of their gradients) under the goldens' names.
    [[nodiscard]] std::map<std::string, Tensor>
    named(const std::function<Tensor(const Tensor&)>& value) const
    {
        const auto joined = [&](const Tensor& a, const Tensor& b) {
            return a.defined() ? torch::cat({value(a), value(b)}) : value(b);
        };
        std::map<std::string, Tensor> all = {{"q_proj.weight", value(block.wq)},
                                             {"q_proj.bias", value(block.bq)},
                                             {"kv_b_k.weight", value(block.wuk)},
                                             {"kv_b_v.weight", value(block.wuv)},
                                             {"kv_a.weight", joined(block.wdkv, block.wkr)},
                                             {"kv_a.bias", joined(block.bdkv, block.bkr)}};
        if (block.buk.defined()) {
            all.emplace("kv_b_k.bias", value(block.buk));
            all.emplace("kv_b_v.bias", value(block.buv));
        }
        return all;
    }
};

GoldenBlock goldenBlock(const std::string& converter, const MethodLayer& layer)
{
    const nlohmann::json facts = goldenJson("method.json").at("training").at(converter);
    const Goldens file("method_training.safetensors");
    const auto get = [&](const char* name) { return file(converter + "/" + name); };
    const std::vector<std::vector<int>> pairs = facts.at("rope_pairs");
    GoldenBlock out;
    MlaBlock& b = out.block;
    b.heads = layer.config.numAttentionHeads;
    b.upHeads = facts.at("kv_up_heads");
    b.ropeKeyHeads = static_cast<int>(pairs.size());
    b.nopeDim = facts.at("qk_nope_head_dim");
    b.ropeDim = facts.at("qk_rope_head_dim");
    b.vDim = layer.config.headDim;
    b.rank = facts.at("kv_lora_rank");
    b.scale = facts.at("attention_scale");
    b.wq = get("q_proj.weight");
    b.bq = get("q_proj.bias");
    const Tensor down = get("kv_a.weight"), bias = get("kv_a.bias");
    const std::int64_t rotary = static_cast<std::int64_t>(b.ropeKeyHeads) * b.ropeDim;
    b.wdkv = down.narrow(0, 0, b.rank).clone();
    b.wkr = down.narrow(0, b.rank, rotary).clone();
    b.bkr = bias.narrow(0, bias.size(0) - rotary, rotary).clone();
    if (bias.size(0) > rotary)
        b.bdkv = bias.narrow(0, 0, b.rank).clone();
    b.wuk = get("kv_b_k.weight");
    b.wuv = get("kv_b_v.weight");
    if (file.has(converter + "/kv_b_k.bias")) {
        b.buk = get("kv_b_k.bias");
        b.buv = get("kv_b_v.bias");
    }
    b.wo = layer.block.wo;
    b.bo = layer.block.bo;
    std::vector<Tensor> frequencies;
    std::vector<Tensor> orders;
    const int half = layer.config.headDim / 2;
    for (const std::vector<int>& head : pairs) {
        frequencies.push_back(
            layer.block.frequencies[0].index_select(0, torch::tensor(head, torch::kInt64)));
        std::vector<std::int64_t> kept, rest;
        for (std::int64_t pair = 0; pair < half; ++pair)
            (std::find(head.begin(), head.end(), pair) == head.end() ? rest : kept).push_back(pair);
        const Tensor k = torch::tensor(kept), r = torch::tensor(rest);
        orders.push_back(torch::cat({k, k + half, r, r + half}));
    }
    b.frequencies = torch::stack(frequencies);
    if (file.has(converter + "/rope_map"))
        out.basis.ropeMap = get("rope_map");
    else
        out.basis.permutation = torch::stack(orders);
    return out;
}

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

} // namespace

class TestRefine : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase();
    void block_data() { cases(); }
    void block();
    void lossAndGradients_data() { cases(); }
    void lossAndGradients();
    void threeSteps_data() { cases(); }
    void threeSteps();
    void schedule();

private:
    static void cases();
    MethodLayer m_layer;
    JobContext m_job;
};

void TestRefine::initTestCase()
{
    useOneThread();
    m_layer = methodLayer();
}

void TestRefine::cases()
{
    QTest::addColumn<QString>("converter");
    QTest::addColumn<QString>("objective");
    for (const char* converter : {"transmla", "mha2mla"})
        for (const char* objective : {"functional", "partial_rope"})
            QTest::newRow(qPrintable(QString("%1, %2").arg(converter, objective)))
                << converter << objective;
}

void TestRefine::block()
{
    QFETCH(QString, converter);
    const Goldens file("method_training.safetensors");
    const std::string prefix = converter.toStdString() + "/";
    const MlaBlock block = goldenBlock(converter.toStdString(), m_layer).block;
    const double attention =
        relativeDifference(attend(block, m_layer.evalInput()), file(prefix + "attention"));
    const Tensor value = keysValues(block, m_layer.evalInput()).value.transpose(1, 2);
    const double values = relativeDifference(value, file(prefix + "values"));
    qInfo("attention %.2g, values %.2g", attention, values);
    QVERIFY(attention < kFloat32);
    QVERIFY(values < kFloat32);
}

void TestRefine::lossAndGradients()
{
    QFETCH(QString, converter);
    QFETCH(QString, objective);
    const nlohmann::json facts =
        goldenJson("method.json").at("training").at(converter.toStdString());
    const Goldens file("method_training.safetensors");
    GoldenBlock golden = goldenBlock(converter.toStdString(), m_layer);
    for (Tensor* tensor : golden.block.trainable())
        tensor->requires_grad_(true);
    const auto loss = objectiveOf(objective.toStdString(), m_layer, golden.basis);
    const std::vector<std::int64_t> batch = facts.at("batch");
    const Tensor rows = torch::tensor(batch);
    const Tensor value = loss->loss(golden.block, {m_layer.x.index_select(0, rows),
                                                   m_layer.attention.index_select(0, rows),
                                                   m_layer.mask.index_select(0, rows)});
    const double expected = facts.at(objective.toStdString()).at("loss");
    double worst = std::abs(value.item<double>() / expected - 1);
    qInfo("loss: relative %.2g", worst);
    QVERIFY(worst < kFloat32);
    if (objective == "functional") {
        const double denominator = facts.at("denominator");
        QVERIFY(std::abs(loss->scale() / denominator - 1) < kFloat32);
    }

    value.backward();
    worst = 0;
    const auto gradients = golden.named([](const Tensor& t) { return t.grad(); });
    for (const auto& [name, gradient] : gradients) {
        const std::string key =
            converter.toStdString() + "/" + objective.toStdString() + "/grad/" + name;
        if (file.has(key))
            worst = std::max(worst, relativeDifference(gradient, file(key)));
        else if (name.starts_with("q_proj")) // partial-rope trains no query
            QVERIFY(!gradient.defined());
    }
    qInfo("gradients: %.2g", worst);
    QVERIFY(worst < kFloat32);
}

void TestRefine::threeSteps()
{
    QFETCH(QString, converter);
    QFETCH(QString, objective);
    const nlohmann::json facts = goldenJson("method.json")
                                     .at("training")
                                     .at(converter.toStdString())
                                     .at(objective.toStdString())
                                     .at("trained");
    const Goldens file("method_training.safetensors");
    GoldenBlock golden = goldenBlock(converter.toStdString(), m_layer);
    const auto loss = objectiveOf(objective.toStdString(), m_layer, golden.basis);
    RefineOptions options;
    options.steps = facts.at("steps");
    options.learningRate = facts.at("lr");
    options.batchSequences = 6; // all of them
    const RefinedLayer out =
        must(refineLayer(m_job, golden.block, golden.basis, *loss, dataOf(m_layer), options));
    golden.block = out.block;

    QCOMPARE(out.curve.step, (std::vector<int>{0, 1, 2, 3}));
    double worst = 0;
    for (std::size_t s = 0; s <= 3; ++s) {
        const double held = facts.at("heldout_losses").at(s);
        worst = std::max(worst, std::abs(out.curve.heldout[s] / held - 1));
        if (s == 0)
            continue;
        const double train = facts.at("losses").at(s - 1),
                     rate = facts.at("learning_rates").at(s - 1);
        worst = std::max(worst, std::abs(out.curve.train[s] / train - 1));
        QVERIFY(std::abs(out.curve.learningRate[s] / rate - 1) < 1e-12);
    }
    qInfo("losses: relative %.2g", worst);
    QVERIFY(worst < kFloat32);
    QCOMPARE(out.lossBefore, out.curve.heldout.front());
    QCOMPARE(out.lossAfter, out.curve.heldout.back());

    worst = 0;
    for (const auto& [name, parameter] : golden.named([](const Tensor& t) { return t; })) {
        const std::string key =
            converter.toStdString() + "/" + objective.toStdString() + "/trained/" + name;
        if (file.has(key))
            worst = std::max(worst, maxDifference(parameter, file(key)));
    }
    qInfo("parameters: %.2g", worst);
    QVERIFY(worst < 1e-5);
}

/// S = 60, 5 % warm-up = 3 steps: ramp (s + 1) / 3 times decay 1 - s / 60.
void TestRefine::schedule()
{
    const std::map<int, double> expected = {{0, 1.0 / 3},   {1, 59.0 / 60 * 2 / 3},
                                            {2, 58.0 / 60}, {3, 57.0 / 60},
                                            {30, 0.5},      {59, 1.0 / 60}};
    for (const auto& [step, rate] : expected)
        QVERIFY(std::abs(learningRateAt(step, 60, 2e-3, 0.05) - 2e-3 * rate) < 1e-15);
    QCOMPARE(learningRateAt(0, 1, 1.0, 0.05), 1.0);
    QCOMPARE(learningRateAt(0, 10, 1.0, 0.0), 1.0); // no warm-up
}

QTEST_APPLESS_MAIN(TestRefine)
#include "tst_refine.moc"
