// SPDX-License-Identifier: GPL-3.0-or-later
// What `fidelity` measures on demand, over whole drafts of the demo checkpoint: against what their
// own runs recorded, and what the study keeps of it.
#include "core/export/draft_directory.h"
#include "core/pipeline/draft_diagnostics.h"
#include "core/pipeline/pipeline.h"
#include "core/store/study.h"
#include "tests/support/numeric.h"

#include <QTemporaryDir>
#include <QTest>

using namespace mla;
using namespace mla::test;

namespace
{

namespace fs = std::filesystem;

constexpr double kSame = 1e-9;

ComputeSettings onCpu()
{
    ComputeSettings compute;
    compute.device = "cpu";
    return compute;
}

const LayerRecord& layerOf(const std::vector<LayerRecord>& layers, int layer)
{
    return *std::ranges::find(layers, LayerIndex(layer), &LayerRecord::layer);
}

} // namespace

class TestDraftDiagnostics : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase();
    void sourcesOfAConversion();
    void sourcesOfARefinement();
    void sourcesOnOtherSequences();
    void otherCalibrationIsNotTheConversions_data();
    void otherCalibrationIsNotTheConversions();
    void positionsAddUpToTheStage();
    void positionsOfALongText();
    void attentionMapIsStored();
    void attentionMapRefusals();
    void studyMustHoldTheRun();

private:
    [[nodiscard]] fs::path path(const std::string& name) const
    {
        return fs::path(m_folder.path().toStdString()) / name;
    }
    [[nodiscard]] DiagnosticsRequest request(const std::string& draft) const
    {
        return {path(draft), stories(), std::nullopt, onCpu(), path("study.h5")};
    }
    void refine(const std::string& output, const std::optional<CalibrationSettings>& calibration,
                const std::string& objective);
    [[nodiscard]] RunRecord stored(const std::string& draft) const
    {
        const std::string run = must(readDraftMeta(path(draft))).runId;
        return *must(loadStudy(path("study.h5"))).findRun(run);
    }

    QTemporaryDir m_folder;
    JobContext m_job;
    RunRecord m_converted, m_refined; ///< as their stages recorded them
};

void TestDraftDiagnostics::refine(const std::string& output,
                                  const std::optional<CalibrationSettings>& calibration,
                                  const std::string& objective)
{
    RefineRequest refine;
    refine.draft = path("converted");
    refine.original = stories();
    refine.output = path(output);
    refine.settings.objective = objective;
    refine.settings.steps = 12;
    refine.calibration = calibration;
    refine.compute = onCpu();
    refine.study = path("study.h5");
    must(refineDraft(m_job, refine));
}

void TestDraftDiagnostics::initTestCase()
{
    ConvertRequest convert;
    convert.checkpoint = stories();
    convert.output = path("converted");
    convert.settings.kvLoraRank = 28;
    convert.settings.qkRopeHeadDim = 4;
    convert.settings.freqfold = 2;
    convert.calibration = {"self", 16, 64};
    convert.compute = onCpu();
    convert.study = path("study.h5");
    m_converted = must(convertCheckpoint(m_job, convert)).run;
    refine("refined", std::nullopt, "functional");
    m_refined = stored("refined");
}

/// Both = what the conversion recorded of itself on the same held-out sequences.
void TestDraftDiagnostics::sourcesOfAConversion()
{
    const ErrorSourcesReport report = must(measureErrorSources(m_job, request("converted")));
    QCOMPARE(report.note.noRefinement, std::string("the draft has not been refined"));
    QCOMPARE(report.note.noConversion, std::string());
    QCOMPARE(report.layers.size(), std::size_t{5});
    for (const LayerRecord& layer : report.layers) {
        const ErrorSourcesRecord& sources = layer.sources;
        QVERIFY(sources.ropeOnly && sources.rankOnly && sources.both && !sources.refined);
        const double recorded = layerOf(m_converted.layers, layer.layer.value).after->relativeError;
        QVERIFY(std::abs(sources.both->relativeError - recorded) < 1e-6);
        // Each source alone is a part of the loss.
        QVERIFY(sources.ropeOnly->relativeError > 0 && sources.rankOnly->relativeError > 0);
        QVERIFY(sources.both->relativeError <
                sources.ropeOnly->relativeError + sources.rankOnly->relativeError + 0.2);
    }
    const RunRecord run = stored("converted");
    QVERIFY(run.errorSources.has_value());
    QCOMPARE(run.errorSources->noRefinement, report.note.noRefinement);
    for (const LayerRecord& layer : report.layers)
        QCOMPARE(layerOf(run.layers, layer.layer.value).sources.rankOnly->relativeError,
                 layer.sources.rankOnly->relativeError);
}

void TestDraftDiagnostics::sourcesOfARefinement()
{
    const ErrorSourcesReport report = must(measureErrorSources(m_job, request("refined")));
    QCOMPARE(report.note.noConversion, std::string());
    QCOMPARE(report.note.noRefinement, std::string());
    const RunRecord converted = stored("converted");
    for (const LayerRecord& layer : report.layers) {
        const ErrorSourcesRecord& sources = layer.sources;
        const LayerRecord& recorded = layerOf(m_refined.layers, layer.layer.value);
        QVERIFY(std::abs(sources.both->relativeError - recorded.before->relativeError) < 1e-6);
        QVERIFY(std::abs(sources.refined->relativeError - recorded.after->relativeError) < 1e-6);
        QVERIFY(std::abs(sources.refined->attentionKl - recorded.after->attentionKl) < 1e-6);
        // The same conversion, whichever draft it is told from.
        const ErrorSourcesRecord& parent = layerOf(converted.layers, layer.layer.value).sources;
        QCOMPARE(sources.ropeOnly->relativeError, parent.ropeOnly->relativeError);
        QCOMPARE(sources.rankOnly->relativeError, parent.rankOnly->relativeError);
    }
}

/// Other sequences are what is measured on; the conversion stays that of the draft.
void TestDraftDiagnostics::sourcesOnOtherSequences()
{
    DiagnosticsRequest other = request("converted");
    other.calibration = CalibrationSettings{"self", 8, 96};
    other.study.reset();
    const ErrorSourcesReport report = must(measureErrorSources(m_job, other));
    QCOMPARE(report.note.noConversion, std::string());
    const auto plain =
        must(measureFidelity(m_job, other.draft, other.original, other.calibration, other.compute));
    for (const LayerRecord& layer : report.layers)
        QVERIFY(std::abs(layer.sources.both->relativeError -
                         layerOf(plain.layers, layer.layer.value).after->relativeError) < 1e-6);
}

void TestDraftDiagnostics::otherCalibrationIsNotTheConversions_data()
{
    QTest::addColumn<bool>("told");
    QTest::newRow("its settings say so") << true;
    QTest::newRow("its rotation is another") << false; // drafts of older versions
}

void TestDraftDiagnostics::otherCalibrationIsNotTheConversions()
{
    QFETCH(bool, told);
    if (told) {
        refine("elsewhere", CalibrationSettings{"self", 8, 24}, "partial-rope");
    } else {
        std::ifstream in(path("elsewhere/mla_draft.json"));
        nlohmann::json meta = nlohmann::json::parse(in);
        nlohmann::json settings = nlohmann::json::parse(meta.at("settings").get<std::string>());
        QCOMPARE(settings.erase("calibration"), std::size_t{1});
        meta["settings"] = settings.dump();
        std::ofstream(path("elsewhere/mla_draft.json")) << meta.dump();
    }
    const ErrorSourcesReport report = must(measureErrorSources(m_job, request("elsewhere")));
    QVERIFY(report.note.noConversion.find("refinement was given another") != std::string::npos);
    for (const LayerRecord& layer : report.layers) {
        QVERIFY(!layer.sources.ropeOnly && !layer.sources.rankOnly && !layer.sources.both);
        QVERIFY(layer.sources.refined.has_value());
    }
}

/// The refinement measured perplexity and KL on the same held-out sequences.
void TestDraftDiagnostics::positionsAddUpToTheStage()
{
    const PositionScores scores = must(measurePositions(m_job, {request("refined"), std::nullopt}));
    QCOMPARE(scores.buckets.size(), std::size_t{2}); // sequences of 64 tokens
    const PositionBucket all = allPositions(scores);
    QCOMPARE(all.tokens, std::int64_t{2 * 63});
    const StageRecord& stage = m_refined.stages.at("refined");
    QVERIFY(std::abs(all.perplexity / stage.perplexity - 1) < kSame);
    QVERIFY(std::abs(all.kl / stage.kl - 1) < kSame);
    QVERIFY(std::abs(all.originalPerplexity / m_refined.stages.at("original").perplexity - 1) <
            kSame);
    const RunRecord run = stored("refined");
    QCOMPARE(run.positions->source, scores.source);
    QCOMPARE(run.positions->buckets.size(), std::size_t{2});
    QCOMPARE(run.positions->buckets[1].kl, scores.buckets[1].kl);
}

/// A text longer than the model's context of 512 is cut into windows of it.
void TestDraftDiagnostics::positionsOfALongText()
{
    std::ofstream(path("tale.txt")) << [] {
        std::string text;
        for (int i = 0; i < 200; ++i)
            text += "Once upon a time there was a little dog. ";
        return text;
    }();
    const PositionScores scores =
        must(measurePositions(m_job, {request("converted"), path("tale.txt")}));
    QCOMPARE(scores.source, path("tale.txt").string());
    QCOMPARE(scores.buckets.size(), std::size_t{5});
    QCOMPARE(scores.buckets.back().first, 256);
    QCOMPARE(scores.buckets.back().last, 511);
    std::ofstream(path("empty.txt")) << "";
    const auto none = measurePositions(m_job, {request("converted"), path("empty.txt")});
    QVERIFY(!none.ok());
    QCOMPARE(none.error().code, ErrorCode::BadInput);
}

void TestDraftDiagnostics::attentionMapIsStored()
{
    const AttentionMapRequest ask{request("refined"), LayerIndex(1), HeadIndex(2),
                                  "Once upon a time"};
    const AttentionMapRecord map = must(measureAttentionMap(m_job, ask));
    const std::size_t length = map.tokens.size();
    QVERIFY(length > 3);
    QCOMPARE(map.original.size(), length * length);
    QCOMPARE(map.draft.size(), length * length);
    for (std::size_t row = 0; row < length; ++row) {
        double original = 0, draft = 0, difference = 0;
        for (std::size_t key = 0; key < length; ++key) {
            original += map.original[row * length + key];
            draft += map.draft[row * length + key];
            difference += map.difference()[row * length + key];
            if (key > row)
                QVERIFY(map.original[row * length + key] == 0 &&
                        map.draft[row * length + key] == 0);
        }
        QVERIFY(std::abs(original - 1) < 1e-12 && std::abs(draft - 1) < 1e-12);
        QVERIFY(std::abs(difference) < 1e-12);
    }
    std::string text;
    for (const std::string& token : map.tokens)
        text += token;
    QVERIFY2(text.find("Once upon a time") != std::string::npos, text.c_str());
    must(measureAttentionMap(m_job, ask)); // replaces itself
    const RunRecord run = stored("refined");
    QCOMPARE(run.attentionMaps.size(), std::size_t{1});
    QCOMPARE(run.attentionMaps[0].draft, map.draft);
    QCOMPARE(run.attentionMaps[0].tokens, map.tokens);
    QVERIFY(run.positions.has_value()); // what was measured before stays
}

void TestDraftDiagnostics::attentionMapRefusals()
{
    const auto refusal = [&](int layer, int head, const std::string& prompt) {
        const auto map = measureAttentionMap(
            m_job, {request("refined"), LayerIndex(layer), HeadIndex(head), prompt});
        return map.ok() || map.error().code != ErrorCode::Usage ? std::string("not refused")
                                                                : map.error().message;
    };
    const auto contains = [](const std::string& text, const char* part) {
        return text.find(part) != std::string::npos;
    };
    QVERIFY(contains(refusal(5, 0, "text"), "layer 5: the model has 0 to 4"));
    QVERIFY(contains(refusal(0, 8, "text"), "head 8: the model has 0 to 7"));
    QVERIFY(contains(refusal(0, 0, ""), "--prompt is empty"));
    std::string longText;
    for (int i = 0; i < 200; ++i)
        longText += "dog ";
    QVERIFY(contains(refusal(0, 0, longText), "at most 128"));
}

void TestDraftDiagnostics::studyMustHoldTheRun()
{
    DiagnosticsRequest other = request("converted");
    other.study = path("none.h5");
    const auto sources = measureErrorSources(m_job, other);
    QVERIFY(!sources.ok());
    QCOMPARE(sources.error().code, ErrorCode::Usage);
    QVERIFY(sources.error().message.find("does not hold the run") != std::string::npos);
    QVERIFY(!fs::exists(path("none.h5")));
    must(saveStudy(path("other.h5"), StudyData{}));
    other.study = path("other.h5");
    QVERIFY(!measurePositions(m_job, {other, std::nullopt}).ok());
}

QTEST_GUILESS_MAIN(TestDraftDiagnostics)
#include "tst_draft_diagnostics.moc"
