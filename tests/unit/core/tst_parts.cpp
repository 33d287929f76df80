// SPDX-License-Identifier: GPL-3.0-or-later
#include <cstring>
#include <fstream>
#include <memory>

#include "core/base/file.h"
#include "core/store/parts.h"
#include "core/store/study.h"
#include "tests/support/sample_study.h"

#include <QTemporaryDir>
#include <QTest>

using namespace mla;
namespace fs = std::filesystem;

namespace
{

constexpr auto manifest = R"({"objective":"functional","settings":{"lr":0.002,"steps":60}})";

const std::vector<float> weights = {1.0F, 2.0F, 3.0F, 4.0F};

TensorView tensor()
{
    return {"q.weight", DType::F32, {2, 2}, std::as_bytes(std::span(weights))};
}

Status writeLayer(PartsFolder& parts, int layer)
{
    const std::vector<TensorView> tensors = {tensor()};
    return parts.write(test::sampleLayer(layer), tensors);
}

bool contains(const std::string& text, const char* part)
{
    return text.find(part) != std::string::npos;
}

} // namespace

class TestParts : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void init() { m_folder = std::make_unique<QTemporaryDir>(); }
    void writtenLayersAreTakenUp();
    void otherSettingsAreNamed();
    void withoutResumeOldPartsGo();
    void halfWrittenLayersDoNotCount();
    void foreignFilesStay();
    void busyFolder();
    void removeTakesEmptyFolders();
    void unfinishedRunsAreFound();

private:
    fs::path root() const { return fs::path(m_folder->path().toStdString()) / "study.parts"; }
    fs::path run() const { return root() / "run"; }
    std::unique_ptr<QTemporaryDir> m_folder;
};

void TestParts::writtenLayersAreTakenUp()
{
    {
        auto parts = PartsFolder::open(run(), manifest, false);
        QVERIFY2(parts.ok(), parts.ok() ? "" : parts.error().text().c_str());
        QVERIFY(parts->finished().empty());
        QVERIFY(writeLayer(*parts, 3).ok());
        QVERIFY(writeLayer(*parts, 12).ok());
    }
    QVERIFY(fs::exists(run() / "003.h5") && fs::exists(run() / "012.safetensors"));
    // Key order and spaces do not matter.
    const auto parts = PartsFolder::open(
        run(), R"({"settings": {"steps": 60, "lr": 0.002}, "objective": "functional"})", true);
    QVERIFY2(parts.ok(), parts.ok() ? "" : parts.error().text().c_str());
    QCOMPARE(parts->finished(), (std::set{LayerIndex(3), LayerIndex(12)}));
    const auto record = parts->record(LayerIndex(12));
    QVERIFY(record.ok() && record->complete);
    QCOMPARE(record->layer.value, 12);
    QCOMPARE(record->loss->learningRate, test::sampleLayer(12).loss->learningRate);
    const auto tensors = parts->tensors(LayerIndex(3));
    QVERIFY(tensors.ok());
    const auto bytes = tensors->bytes("q.weight");
    QVERIFY(bytes.ok() && bytes->size() == 16);
    QVERIFY(std::memcmp(bytes->data(), weights.data(), 16) == 0);
    QVERIFY(!parts->record(LayerIndex(4)).ok());
}

void TestParts::otherSettingsAreNamed()
{
    QVERIFY(PartsFolder::open(run(), manifest, false).ok());
    const std::pair<const char*, const char*> cases[] = {
        {R"({"objective":"functional","settings":{"lr":0.002,"steps":90}})", "settings.steps"},
        {R"({"objective":"functional","settings":{"lr":0.002}})", "settings.steps"},
        {R"({"objective":"functional","settings":{"lr":0.002,"steps":60},"x":1})", "x"}};
    for (const auto& [other, key] : cases) {
        const auto parts = PartsFolder::open(run(), other, true);
        QVERIFY(!parts.ok());
        QVERIFY2(contains(parts.error().text(), key), parts.error().text().c_str());
    }
    std::ofstream(run() / "run.json") << "{";
    QVERIFY(contains(PartsFolder::open(run(), manifest, true).error().text(), "run.json"));
}

void TestParts::withoutResumeOldPartsGo()
{
    {
        auto parts = PartsFolder::open(run(), manifest, false);
        QVERIFY(writeLayer(*parts, 0).ok());
    }
    const auto parts = PartsFolder::open(run(), R"({"other":1})", false);
    QVERIFY(parts.ok() && parts->finished().empty());
    QVERIFY(!fs::exists(run() / "000.h5") && !fs::exists(run() / "000.safetensors"));
    QCOMPARE(readFile(run() / "run.json").value(), std::string(R"({"other":1})"));
}

void TestParts::halfWrittenLayersDoNotCount()
{
    {
        auto parts = PartsFolder::open(run(), manifest, false);
        for (int layer = 0; layer < 4; ++layer)
            QVERIFY(writeLayer(*parts, layer).ok());
    }
    fs::remove(run() / "000.h5"); // killed between weights and numbers
    fs::remove(run() / "001.safetensors");
    fs::resize_file(run() / "002.h5", fs::file_size(run() / "002.h5") - 1024);
    std::ofstream(run() / ".003.h5.tmp-1-1") << "half"; // killed while writing
    const auto parts = PartsFolder::open(run(), manifest, true);
    QVERIFY(parts.ok());
    QCOMPARE(parts->finished(), std::set{LayerIndex(3)});
    QVERIFY(!fs::exists(run() / ".003.h5.tmp-1-1"));
}

void TestParts::foreignFilesStay()
{
    fs::create_directories(run());
    for (const char* name : {"notes.txt", "3.h5", "model.safetensors", ".hidden"})
        std::ofstream(run() / name) << "mine";
    auto parts = PartsFolder::open(run(), manifest, false);
    QVERIFY(parts.ok() && parts->finished().empty());
    QVERIFY(parts->remove().ok());
    for (const char* name : {"notes.txt", "3.h5", "model.safetensors", ".hidden"})
        QVERIFY2(fs::exists(run() / name), name);
    QVERIFY(!fs::exists(run() / "run.json"));
}

void TestParts::busyFolder()
{
    auto first = PartsFolder::open(run(), manifest, false);
    QVERIFY(writeLayer(*first, 0).ok());
    const auto cleared = PartsFolder::open(run(), manifest, false);
    QVERIFY(!cleared.ok() && contains(cleared.error().text(), "another process"));
    const auto joined = PartsFolder::open(run(), manifest, true); // another range of layers
    QVERIFY(joined.ok());
    QCOMPARE(joined->finished(), std::set{LayerIndex(0)});
}

void TestParts::removeTakesEmptyFolders()
{
    auto parts = PartsFolder::open(run(), manifest, false);
    auto other = PartsFolder::open(root() / "other", manifest, false);
    QVERIFY(writeLayer(*parts, 0).ok());
    QVERIFY(parts->remove().ok());
    QVERIFY(!fs::exists(run()) && fs::exists(root()));
    QVERIFY(other->remove().ok());
    QVERIFY(!fs::exists(root()) && fs::exists(root().parent_path()));
}

void TestParts::unfinishedRunsAreFound()
{
    QVERIFY(unfinishedRuns(root()).empty());
    auto parts = PartsFolder::open(run(), manifest, false);
    QVERIFY(writeLayer(*parts, 0).ok() && writeLayer(*parts, 1).ok());
    QVERIFY(PartsFolder::open(root() / "nested" / "deeper", manifest, false).ok());
    fs::create_directories(root() / "broken");
    std::ofstream(root() / "broken" / "run.json") << "not json";
    const std::vector<UnfinishedRun> runs = unfinishedRuns(root());
    QCOMPARE(runs.size(), std::size_t{2});
    QCOMPARE(runs[0].folder, root() / "nested" / "deeper");
    QCOMPARE(runs[0].finishedLayers, 0);
    QCOMPARE(runs[1].folder, run());
    QCOMPARE(runs[1].finishedLayers, 2);
    QCOMPARE(runs[1].manifest, std::string(manifest));
}

QTEST_APPLESS_MAIN(TestParts)
#include "tst_parts.moc"
