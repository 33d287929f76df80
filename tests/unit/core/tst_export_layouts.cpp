// SPDX-License-Identifier: GPL-3.0-or-later
// What is known of an export before it is written, how weights are divided, the model card, and
// exports in a study.
#include <QFile>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTemporaryDir>
#include <QTest>

#include "core/export/export_layouts.h"
#include "core/export/model_card.h"
#include "core/export/shards.h"
#include "core/store/study.h"

using namespace mla;

namespace
{

/// H = 4, G = 2, h = 16; MHA2MLA 20 + 2 x 8: 36 of 64 elements.
ModelConfig draft()
{
    ModelConfig config;
    config.modelType = "mla_draft";
    config.numHiddenLayers = 2;
    config.numAttentionHeads = 4;
    config.numKeyValueHeads = 2;
    config.headDim = 16;
    MlaConfig mla;
    mla.converter = "mha2mla";
    mla.latentRank = {20, 20};
    mla.qkRopeHeadDim = 8;
    mla.qkNopeHeadDim = 8;
    mla.vHeadDim = 16;
    mla.ropeKeyHeads = 2;
    mla.kvUpHeads = 2;
    config.mla = mla;
    return config;
}

bool says(const std::vector<std::string>& sentences, const std::string& words)
{
    for (const std::string& sentence : sentences)
        if (sentence.find(words) != std::string::npos)
            return true;
    return false;
}

ExportRecord sampleExport()
{
    ExportCheckRecord own{"mla-draft", "us", "", "the draft", 0, 2e-3, 4, 96, 96, true, ""};
    ExportCheckRecord vllm;
    vllm.stack = "vllm";
    vllm.remark = "not tried: there is no vllm";
    return {"toy/run/huggingface-bf16",
            "toy/run",
            "huggingface",
            "bf16",
            "/somewhere/out",
            "2026-01-02T03:04:05Z",
            "mla-draft-workbench",
            123'456'789'012,
            {"all"},
            {"nothing", "else"},
            {own, vllm}};
}

} // namespace

class TestExportLayouts : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void describesDrafts();
    void refusesWithTheReason();
    void dividesWeights();
    void cardHasFrontMatter();
    void licenceIsTheSources();
    void studyKeepsExports();
};

void TestExportLayouts::describesDrafts()
{
    for (const std::string& name : exportLayoutNames()) {
        const auto described = describeLayout(draft(), name, "d");
        QVERIFY2(described.ok(), name.c_str());
        QCOMPARE(described->layout, name);
        QVERIFY(!described->loadsIn.empty());
    }
    const auto own = describeLayout(draft(), "huggingface", "d");
    QVERIFY(own->refusal.empty());
    QVERIFY(says(own->keeps, ": 36 elements a token and layer, of the original's 64"));
    QVERIFY(says(own->loses, "heads of width 16")); // none of vLLM's 32, 64, ...
    ModelConfig wide = draft();
    wide.mla->qkNopeHeadDim = 24;
    QVERIFY(!says(describeLayout(wide, "huggingface", "d")->loses, "heads of width"));
    QVERIFY(!says(describeLayout(draft(), "vllm-plugin", "d")->loses, "heads of width"));
}

void TestExportLayouts::refusesWithTheReason()
{
    QCOMPARE(describeLayout(draft(), "onnx", "d").error().code, ErrorCode::Usage);
    ModelConfig source = draft();
    source.mla.reset();
    QCOMPARE(describeLayout(source, "huggingface", "d").error().code, ErrorCode::BadInput);
    ModelConfig imported = draft();
    imported.mla->layout = DraftLayout::Mha2Mla;
    for (const char* name : {"huggingface", "vllm-plugin"})
        QVERIFY(describeLayout(imported, name, "d")->refusal.find("refine") != std::string::npos);
}

void TestExportLayouts::dividesWeights()
{
    const std::vector<SafetensorsWriter::Declared> tensors = {{"a", DType::F32, {10, 10}}, // 400
                                                              {"b", DType::BF16, {50}},    // 100
                                                              {"c", DType::F32, {300}},    // 1200
                                                              {"d", DType::F32, {1}}};
    const auto one = planShards(tensors, 0);
    QCOMPARE(one.size(), std::size_t(1));
    QCOMPARE(one[0].file, std::string("model.safetensors"));
    QCOMPARE(one[0].end, std::ptrdiff_t(4));
    const auto three = planShards(tensors, 500);
    QCOMPARE(three.size(), std::size_t(3));
    QCOMPARE(three[0].file, std::string("model-00001-of-00003.safetensors"));
    const std::pair<std::ptrdiff_t, std::ptrdiff_t> expected[] = {{0, 2}, {2, 3}, {3, 4}};
    for (std::size_t i = 0; i < 3; ++i)
        QCOMPARE(std::pair(three[i].first, three[i].end), expected[i]);
    const QJsonObject index =
        QJsonDocument::fromJson(QByteArray::fromStdString(shardIndex(tensors, three))).object();
    QCOMPARE(index["metadata"]["total_size"].toInt(), 400 + 100 + 1200 + 4);
    QCOMPARE(index["weight_map"]["c"].toString(), QString("model-00002-of-00003.safetensors"));
}

void TestExportLayouts::cardHasFrontMatter()
{
    StudyData study;
    RunRecord run;
    run.id = "toy/run";
    run.stages["refined"] = {28.25, 0.25};
    study.put(run);
    AcceptanceRecord row;
    row.id = "r";
    row.target = "big";
    row.run = "toy/run";
    row.task = "humaneval";
    row.method = "replay";
    row.k = 3;
    row.prompt = {0, 0, 0, 0};
    row.drafted = {3, 3, 3, 3};
    row.accepted = {3, 0, 1, 2}; // rate 0.5, mean length 2.5
    study.put(row);
    const ModelConfig config = draft();
    const ExportRecord record = sampleExport();
    const QString card = QString::fromStdString(
        modelCardText({config, record, "/home/me/Toy-1B", "0123456789abcdef0123", "functional",
                       "mha2mla", "{}", "apache-2.0", &study}));
    QVERIFY(card.startsWith("---\nlibrary_name: transformers\n"));
    const QString matter = card.section("---\n", 1, 1);
    QVERIFY(matter.contains("\nlicense: apache-2.0\n"));
    QVERIFY(matter.contains("\npipeline_tag: text-generation\n"));
    for (const char* said : {"# Toy-1B as an MLA draft", "36 of the original's 64 (56 %)", "28.25",
                             "| big | humaneval |", "50.0 % | 2.50", "functional", "96 of 96"})
        QVERIFY2(card.contains(said), said);
    QVERIFY(!card.contains("/home/me"));
}

void TestExportLayouts::licenceIsTheSources()
{
    QTemporaryDir folder;
    const auto licence = [&](const QByteArray& text) {
        QFile file(folder.filePath("README.md"));
        const bool open = file.open(QIODevice::WriteOnly | QIODevice::Truncate);
        Q_ASSERT(open);
        file.write(text);
        file.close();
        return licenceOf(folder.path().toStdString());
    };
    QVERIFY(!licenceOf(folder.path().toStdString()));
    QCOMPARE(licence("---\ntags: [x]\nlicense: \"mit\"\n---\nlicense: gpl\n"), std::string("mit"));
    QVERIFY(!licence("---\ntags: [x]\n---\nlicense: gpl\n"));
    QVERIFY(!licence("license: gpl\n"));
    QVERIFY(!licence("---\nlicense: a: {b}\n---\n"));
}

void TestExportLayouts::studyKeepsExports()
{
    QTemporaryDir folder;
    const std::filesystem::path path = folder.filePath("s.h5").toStdString();
    StudyData study;
    study.put(sampleExport());
    ExportRecord other = sampleExport();
    other.id = "a/second";
    other.checks.clear();
    study.put(other);
    study.put(sampleExport()); // replaces
    QVERIFY(saveStudy(path, study).ok());
    const auto read = loadStudy(path);
    QVERIFY(read.ok());
    QCOMPARE(read->exports.size(), std::size_t(2));
    const ExportRecord& record = read->exports[0];
    QCOMPARE(record.id, sampleExport().id);
    QCOMPARE(record.weightBytes, std::int64_t(123'456'789'012));
    QCOMPARE(record.loses, sampleExport().loses);
    QCOMPARE(record.checks.size(), std::size_t(2));
    QCOMPARE(record.checks[0].stack, std::string("mla-draft"));
    QCOMPARE(record.checks[0].equalTokens, 96);
    QCOMPARE(record.checks[0].bound, 2e-3);
    QVERIFY(record.checks[0].passed);
    QVERIFY(!record.checks[1].tried());
    QCOMPARE(record.checks[1].remark, std::string("not tried: there is no vllm"));
    QVERIFY(read->exports[1].checks.empty());
}

QTEST_APPLESS_MAIN(TestExportLayouts)
#include "tst_export_layouts.moc"
