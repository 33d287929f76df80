// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pipeline/settings.h"

#include <limits>

#include <nlohmann/json.hpp>

#include <QTest>

using nlohmann::json;
using namespace mla;

namespace
{

/// A plan in which every field differs from its default.
StudyPlan unusualPlan()
{
    StudyPlan plan;
    plan.checkpoint = "models/draft";
    plan.target = "models/target";
    plan.study = "s.h5";
    plan.drafts = "drafts";
    plan.calibration = {"a.txt,b.jsonl", 16, 64};
    ConvertSettings transmla, mha2mla;
    transmla = {"transmla", 76, 32, 4, "2-norm", "joint"};
    mha2mla = {"mha2mla", 84, 8, 0, "distance-weighted", "activation-aware"};
    plan.conversions = {transmla, mha2mla};
    plan.objectives = {"functional"};
    plan.refine.objective = "partial-rope";
    plan.refine.steps = 45;
    plan.refine.learningRate = 1e-3;
    plan.refine.batchTokens = 512;
    plan.refine.clip = 0.5;
    plan.refine.warmup = 0.1;
    plan.refine.layers = LayerRange{2, 5};
    plan.accept.tasks = {"t/one.jsonl", "t/two.jsonl"};
    plan.accept.k = 3;
    plan.accept.maxNewTokens = 32;
    plan.accept.minNewTokens = 16;
    plan.accept.maxPromptTokens = 256;
    plan.accept.limit = 7;
    plan.accept.method = "speculative";
    plan.accept.backend = "hf";
    plan.accept.temperature = 0.5;
    plan.perplexityText = "held-out.txt";
    plan.accept.chatTemplate = true;
    plan.compute = {"cpu", 2, std::numeric_limits<std::uint64_t>::max(), "/opt/bin/python3"};
    plan.resume = true;
    return plan;
}

QString errorOf(const Status& status)
{
    return status ? QString() : QString::fromStdString(status.error().text());
}

} // namespace

class TestSettings : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void defaultsAreTheDocumentedOnes();
    void planSurvivesJson();
    void absentAndNullKeysKeepDefaults();
    void wrongPlansAreNamed_data();
    void wrongPlansAreNamed();
    void conversionsAreChecked_data();
    void conversionsAreChecked();
    void refinementsAreChecked();
    void acceptanceIsChecked_data();
    void acceptanceIsChecked();
    void calibrationIsChecked();
};

void TestSettings::defaultsAreTheDocumentedOnes()
{
    const CalibrationSettings calibration;
    QCOMPARE(calibration.sequences, 128);
    QCOMPARE(calibration.length, 256);
    const RefineSettings refine;
    QCOMPARE(refine.steps, 60);
    QCOMPARE(refine.batchTokens, 1024);
    QCOMPARE(refine.clip, 1.0);
    const AcceptSettings accept;
    QCOMPARE(accept.k, 4);
    QCOMPARE(accept.maxNewTokens, 64);
    QCOMPARE(accept.temperature, 0.0);
    QCOMPARE(ComputeSettings().seed, std::uint64_t{0});
}

void TestSettings::planSurvivesJson()
{
    const json written = toJson(unusualPlan());
    const json parsed = json::parse(written.dump());
    const Result<StudyPlan> read = studyPlanFromJson(parsed);
    QVERIFY2(read.ok(), read ? "" : read.error().text().c_str());
    QCOMPARE(toJson(*read).dump(), written.dump());
    QCOMPARE(read->conversions.at(1).ropeSelect, std::string("distance-weighted"));
    QCOMPARE(read->refine.layers->last, 5);
    QCOMPARE(*read->accept.limit, 7);
    QVERIFY(read->accept.chatTemplate);
    QCOMPARE(read->compute.python, std::string("/opt/bin/python3"));
    QCOMPARE(read->accept.tasks.at(1), std::filesystem::path("t/two.jsonl"));
    QCOMPARE(read->compute.seed, std::numeric_limits<std::uint64_t>::max());
}

void TestSettings::absentAndNullKeysKeepDefaults()
{
    const Result<StudyPlan> empty = studyPlanFromJson(json::object());
    QVERIFY(empty.ok());
    QCOMPARE(toJson(*empty).dump(), toJson(StudyPlan()).dump());
    const Result<StudyPlan> some = studyPlanFromJson(
        json::parse(R"({"refine": {"steps": 5, "layers": null, "learning_rate": null}})"));
    QVERIFY(some.ok());
    QCOMPARE(some->refine.steps, 5);
    QCOMPARE(some->refine.batchTokens, 1024);
    QVERIFY(!some->refine.layers && !some->refine.learningRate);
}

void TestSettings::wrongPlansAreNamed_data()
{
    QTest::addColumn<QString>("plan");
    QTest::addColumn<QString>("named");
    QTest::newRow("unknown") << R"({"chekpoint": "x"})"
                             << "'chekpoint'";
    QTest::newRow("unknown inside") << R"({"refine": {"step": 1}})"
                                    << "'refine.step'";
    QTest::newRow("unknown in list") << R"({"conversions": [{}, {"rank": 1}]})"
                                     << "'conversions[1].rank'";
    QTest::newRow("text for a number") << R"({"refine": {"steps": "60"}})"
                                       << "'refine.steps'";
    QTest::newRow("fraction") << R"({"accept": {"k": 4.5}})"
                              << "'accept.k'";
    QTest::newRow("too large") << R"({"accept": {"k": 4294967296}})"
                               << "'accept.k'";
    QTest::newRow("negative seed") << R"({"compute": {"seed": -1}})"
                                   << "'compute.seed'";
    QTest::newRow("number for text") << R"({"study": 1})"
                                     << "'study'";
    QTest::newRow("object for list") << R"({"conversions": {}})"
                                     << "'conversions'";
    QTest::newRow("list of numbers") << R"({"objectives": [1]})"
                                     << "'objectives'";
    QTest::newRow("list for object") << R"({"refine": []})"
                                     << "refine";
    QTest::newRow("text for a switch") << R"({"resume": "yes"})"
                                       << "'resume'";
    QTest::newRow("layers") << R"({"refine": {"layers": {"first": 0, "end": 1}}})"
                            << "'refine.layers.end'";
    QTest::newRow("not an object") << "[]"
                                   << "object";
}

void TestSettings::wrongPlansAreNamed()
{
    QFETCH(QString, plan);
    QFETCH(QString, named);
    const Result<StudyPlan> read = studyPlanFromJson(json::parse(plan.toStdString()));
    QVERIFY(!read.ok());
    QCOMPARE(read.error().code, ErrorCode::BadInput);
    const QString message = QString::fromStdString(read.error().text());
    QVERIFY2(message.contains(named), qPrintable(message));
}

void TestSettings::conversionsAreChecked_data()
{
    QTest::addColumn<QString>("changes");
    QTest::addColumn<QString>("named"); // empty: valid
    QTest::newRow("transmla") << R"({})"
                              << "";
    QTest::newRow("mha2mla") << R"({"converter":"mha2mla","rope_select":"high","svd":"split"})"
                             << "";
    QTest::newRow("freqfold") << R"({"freqfold":4})"
                              << "";
    QTest::newRow("no rank") << R"({"kv_lora_rank":0})"
                             << "--kv-lora-rank";
    QTest::newRow("odd d_r") << R"({"qk_rope_head_dim":7})"
                             << "--qk-rope-head-dim";
    QTest::newRow("no d_r") << R"({"qk_rope_head_dim":0})"
                            << "--qk-rope-head-dim";
    QTest::newRow("negative freqfold") << R"({"freqfold":-1})"
                                       << "--freqfold";
    QTest::newRow("converter") << R"({"converter":"magic"})"
                               << "--converter";
    QTest::newRow("later converter") << R"({"converter":"auto"})"
                                     << "not available in this version";
    QTest::newRow("rope") << R"({"converter":"mha2mla","rope_select":"1-norm"})"
                          << "--rope-select";
    QTest::newRow("svd") << R"({"converter":"mha2mla","svd":"both"})"
                         << "--svd";
    QTest::newRow("mha2mla freqfold") << R"({"converter":"mha2mla","freqfold":2})"
                                      << "--freqfold";
    QTest::newRow("transmla rope") << R"({"rope_select":"high"})"
                                   << "--rope-select";
    QTest::newRow("transmla svd") << R"({"svd":"split"})"
                                  << "--svd";
}

void TestSettings::conversionsAreChecked()
{
    QFETCH(QString, changes);
    QFETCH(QString, named);
    json conversion = {{"kv_lora_rank", 76}, {"qk_rope_head_dim", 32}};
    conversion.update(json::parse(changes.toStdString()));
    const Result<StudyPlan> plan = studyPlanFromJson({{"conversions", json::array({conversion})}});
    QVERIFY(plan.ok());
    const Status status = validate(plan->conversions.front());
    QCOMPARE(status.ok(), named.isEmpty());
    if (!status) {
        QCOMPARE(status.error().code, ErrorCode::Usage);
        QVERIFY2(errorOf(status).contains(named), qPrintable(errorOf(status)));
    }
}

void TestSettings::refinementsAreChecked()
{
    QVERIFY(validate(RefineSettings()).ok());
    RefineSettings settings;
    settings.objective = "logits";
    QVERIFY(errorOf(validate(settings)).contains("--objective"));
    settings = {};
    settings.steps = 0;
    QVERIFY(errorOf(validate(settings)).contains("--steps"));
    settings = {};
    for (const double rate : {0.0, -1e-3, std::numeric_limits<double>::infinity(),
                              std::numeric_limits<double>::quiet_NaN()}) {
        settings.learningRate = rate;
        QVERIFY(errorOf(validate(settings)).contains("--lr"));
    }
    settings = {};
    settings.layers = LayerRange{3, 2};
    QVERIFY(errorOf(validate(settings)).contains("--layers"));
    settings.layers = LayerRange{3, 3};
    QVERIFY(validate(settings).ok());
    settings.warmup = std::numeric_limits<double>::quiet_NaN();
    QVERIFY(!validate(settings).ok());
}

void TestSettings::acceptanceIsChecked_data()
{
    QTest::addColumn<QString>("settings");
    QTest::addColumn<QString>("named");
    QTest::newRow("defaults") << "{}"
                              << "";
    QTest::newRow("speculative") << R"({"method":"speculative"})"
                                 << "";
    QTest::newRow("method") << R"({"method":"beam"})"
                            << "--method";
    QTest::newRow("k") << R"({"k":0})"
                       << "-k";
    QTest::newRow("tokens") << R"({"max_new_tokens":0})"
                            << "--max-new-tokens";
    QTest::newRow("min above max") << R"({"min_new_tokens":65})"
                                   << "--min-new-tokens";
    QTest::newRow("prompt") << R"({"max_prompt_tokens":0})"
                            << "--max-prompt-tokens";
    QTest::newRow("limit") << R"({"limit":0})"
                           << "--limit";
    QTest::newRow("hf") << R"({"backend":"hf"})"
                        << "";
    QTest::newRow("replay elsewhere") << R"({"backend":"vllm","method":"replay"})"
                                      << "--method replay";
    QTest::newRow("backend") << R"({"backend":"none"})"
                             << "--backend";
    QTest::newRow("sampling") << R"({"temperature":0.7})"
                              << "";
    QTest::newRow("sampled replay") << R"({"temperature":0.7,"method":"replay"})"
                                    << "";
    QTest::newRow("greedy top-k") << R"({"top_k":5})"
                                  << "--top-k";
    QTest::newRow("top-p of nothing") << R"({"temperature":1,"top_p":0})"
                                      << "--top-p";
    QTest::newRow("timed replay") << R"({"method":"replay","repeats":2})"
                                  << "--repeats";
    QTest::newRow("sweep of an engine") << R"({"method":"speculative","sweep_k":4})"
                                        << "--sweep-k";
    QTest::newRow("cold") << R"({"temperature":-1})"
                          << "--temperature";
    QTest::newRow("same names") << R"({"tasks":["a/x.jsonl","b/x.jsonl"]})"
                                << "--tasks";
}

void TestSettings::acceptanceIsChecked()
{
    QFETCH(QString, settings);
    QFETCH(QString, named);
    const Result<StudyPlan> plan =
        studyPlanFromJson({{"accept", json::parse(settings.toStdString())}});
    QVERIFY(plan.ok());
    const Status status = validate(plan->accept);
    QCOMPARE(status.ok(), named.isEmpty());
    if (!status) {
        QCOMPARE(status.error().code, ErrorCode::Usage);
        QVERIFY2(errorOf(status).contains(named), qPrintable(errorOf(status)));
    }
}

void TestSettings::calibrationIsChecked()
{
    QVERIFY(validate(CalibrationSettings()).ok());
    QVERIFY(validate(CalibrationSettings{"self:prompts.txt", 2, 2}).ok());
    QVERIFY(errorOf(validate(CalibrationSettings{"", 8, 8})).contains("--calibration"));
    QVERIFY(errorOf(validate(CalibrationSettings{"self:", 8, 8})).contains("--calibration"));
    QVERIFY(errorOf(validate(CalibrationSettings{"self", 1, 8})).contains("--sequences"));
    QVERIFY(errorOf(validate(CalibrationSettings{"self", 8, 1})).contains("--length"));
}

QTEST_APPLESS_MAIN(TestSettings)
#include "tst_settings.moc"
