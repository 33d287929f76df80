// SPDX-License-Identifier: GPL-3.0-or-later
// Logits and greedy tokens of Hugging Face Transformers (make_model_goldens.py) for every tiny
// checkpoint (each family, each kind of rope, configs of both generations) and the demo's: whole
// sequences and token by token through the cache.
#include "core/model/sampling.h"
#include "tests/support/numeric.h"

#include <QTest>

using namespace mla;
using namespace mla::test;

namespace
{
constexpr double kTolerance = 1e-4; // of the logits' standard deviation; 2e-3 is asked for

std::filesystem::path checkpointOf(const std::string& name)
{
    return name == "stories260K"
               ? stories()
               : goldenPath(goldenJson("models.json").at("models").at(name).at("checkpoint"));
}
} // namespace

class TestModels : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() { useOneThread(); }
    void logits_data() { models(); }
    void logits();
    void cachedLogits_data() { models(); }
    void cachedLogits();
    void greedyTokens_data();
    void greedyTokens();

private:
    static void models();
};

void TestModels::models()
{
    QTest::addColumn<QString>("name");
    const nlohmann::json facts = goldenJson("models.json").at("models");
    QCOMPARE(facts.size(), std::size_t{17});
    for (const auto& [name, model] : facts.items())
        QTest::newRow(name.c_str()) << QString::fromStdString(name);
}

void TestModels::logits()
{
    QFETCH(QString, name);
    const nlohmann::json facts = goldenJson("models.json").at("models").at(name.toStdString());
    const Goldens golden(facts.at("logits"));
    const torch::NoGradGuard noGrad;
    const Decoder model = openModel(checkpointOf(name.toStdString()));
    const torch::Tensor got = model.logits(golden("input_ids", torch::kInt64));
    const double worst = maxDifference(got, golden("logits")) / facts.at("spread").get<double>();
    qInfo("%s: max |difference| / spread = %.2g", qPrintable(name), worst);
    QVERIFY(worst < kTolerance);
}

void TestModels::cachedLogits()
{
    QFETCH(QString, name);
    const nlohmann::json facts = goldenJson("models.json").at("models").at(name.toStdString());
    const Goldens golden(facts.at("logits"));
    const torch::Tensor ids = golden("input_ids", torch::kInt64);
    const torch::NoGradGuard noGrad;
    const Decoder model = openModel(checkpointOf(name.toStdString()));
    KvCache cache = model.makeCache(ids.size(0), ids.size(1));
    std::vector<torch::Tensor> steps;
    for (std::int64_t t = 0; t < ids.size(1); ++t)
        steps.push_back(model.step(ids.narrow(1, t, 1), cache));
    const torch::Tensor got = torch::cat(steps, 1);
    const double spread = facts.at("spread");
    // Dynamic rope: cached keys keep the frequencies of when they were new.
    const bool dynamic = golden.has("stepped");
    QCOMPARE(dynamic, model.config().rope.type == RopeType::Dynamic);
    const double worst = maxDifference(got, golden(dynamic ? "stepped" : "logits")) / spread;
    const double whole = maxDifference(got, model.logits(ids)) / spread;
    qInfo("%s: against Transformers %.2g, against whole sequences %.2g of the spread",
          qPrintable(name), worst, whole);
    QVERIFY(worst < kTolerance);
    QVERIFY(dynamic ? whole > 0.01 : whole < kTolerance);
}

void TestModels::greedyTokens_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<int>("index");
    const nlohmann::json facts = goldenJson("models.json").at("models");
    for (const auto& [name, model] : facts.items())
        for (int i = 0; i < static_cast<int>(model.at("greedy").size()); ++i)
            QTest::addRow("%s %d", name.c_str(), i) << QString::fromStdString(name) << i;
}

void TestModels::greedyTokens()
{
    QFETCH(QString, name);
    QFETCH(int, index);
    const nlohmann::json text =
        goldenJson("models.json").at("models").at(name.toStdString()).at("greedy").at(index);
    const std::vector<int> prompt = text.at("prompt_ids"), expected = text.at("ids");
    QCOMPARE(expected.size(), std::size_t{64});
    const torch::NoGradGuard noGrad;
    const Decoder model = openModel(checkpointOf(name.toStdString()));
    JobContext job;
    const Continuation cached = must(continuePrompt(job, model, prompt, 64, {}));
    QCOMPARE(cached.ids, expected);

    std::vector<int> grown = prompt; // the whole text again for every token
    for (std::size_t i = 0; i < expected.size(); ++i)
        grown.push_back(
            model.logits(idTensor(grown, torch::kCPU))[0].select(0, -1).argmax().item<int>());
    grown.erase(grown.begin(), grown.begin() + static_cast<std::ptrdiff_t>(prompt.size()));
    QCOMPARE(grown,
             text.contains("whole_ids") ? text.at("whole_ids").get<std::vector<int>>() : expected);
}

QTEST_APPLESS_MAIN(TestModels)
#include "tst_model_goldens.moc"
