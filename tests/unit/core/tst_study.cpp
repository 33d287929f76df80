// SPDX-License-Identifier: GPL-3.0-or-later
#include <bit>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/store/h5.h"
#include "core/store/schema.h"
#include "core/store/study.h"
#include "tests/support/sample_study.h"

#include <QProcess>
#include <QTemporaryDir>
#include <QTest>

using namespace mla;
namespace fs = std::filesystem;

namespace
{

// Every field as text, doubles by their bits (so that NaN equals NaN).
class Dump
{
public:
    Dump& operator<<(double v)
    {
        m_out << (std::isnan(v) ? ~std::uint64_t{0} : std::bit_cast<std::uint64_t>(v)) << ' ';
        return *this;
    }
    Dump& operator<<(const std::string& v)
    {
        m_out << v.size() << ':' << v << ' ';
        return *this;
    }
    template <std::integral T>
    Dump& operator<<(T v)
    {
        m_out << +v << ' ';
        return *this;
    }
    Dump& operator<<(const FidelityRecord& v)
    {
        return *this << v.relativeError << v.cosine << v.attentionKl;
    }
    Dump& operator<<(const LossCurve& v)
    {
        return *this << v.step << v.train << v.heldout << v.learningRate;
    }
    Dump& operator<<(const SpectrumRecord& v)
    {
        return *this << v.weights << v.activations << v.rank << v.retainedEnergy << v.effectiveRank
                     << v.tailBound;
    }
    Dump& operator<<(const RopeRecord& v)
    {
        return *this << v.heads << v.pairs << v.keyEnergy << v.keptEnergy << v.scoreEnergy
                     << v.distance << v.scoreResidual;
    }
    Dump& operator<<(const LayerRecord& v)
    {
        return *this << v.layer.value << v.loss << v.spectrum << v.rope << v.before << v.after
                     << v.sources.ropeOnly << v.sources.rankOnly << v.sources.both
                     << v.sources.refined << v.lossBefore << v.lossAfter << v.seconds
                     << v.keptConverted << v.complete;
    }
    Dump& operator<<(const ErrorSourcesNote& v)
    {
        return *this << v.measuredOn << v.noConversion << v.noRefinement;
    }
    Dump& operator<<(const PositionBucket& v)
    {
        return *this << v.first << v.last << v.tokens << v.originalPerplexity << v.perplexity
                     << v.kl;
    }
    Dump& operator<<(const PositionScores& v) { return *this << v.source << v.buckets; }
    Dump& operator<<(const AttentionMapRecord& v)
    {
        return *this << v.layer.value << v.head.value << v.prompt << v.tokens << v.original
                     << v.draft;
    }
    Dump& operator<<(const CheckpointRecord& v)
    {
        return *this << v.id << v.path << v.fingerprint << v.configJson;
    }
    Dump& operator<<(const CalibrationRecord& v)
    {
        return *this << v.id << v.source << v.sequences << v.length << v.inputIds << v.mask;
    }
    Dump& operator<<(const RunRecord& v)
    {
        *this << v.id << v.variant << v.converter << v.checkpoint << v.parent << v.calibration
              << v.settingsJson << v.draftPath << v.device << v.software << v.created << v.seed
              << v.kvLoraRank << v.qkRopeHeadDim << v.cacheElements << v.originalCacheElements
              << v.seconds << v.peakRssBytes << v.warnings << v.layers;
        for (const auto& [name, stage] : v.stages)
            *this << name << stage.perplexity << stage.kl;
        return *this << v.errorSources << v.positions << v.attentionMaps;
    }
    Dump& operator<<(const AcceptanceRecord& v)
    {
        return *this << v.id << v.target << v.run << v.task << v.backend << v.method << v.k
                     << v.temperature << v.seed << v.tokens << v.wallTime << v.settingsJson
                     << v.tokensPerSecond << v.identicalToGreedy << v.prompt << v.drafted
                     << v.accepted << v.plainSteps << v.chatTemplate << v.topK << v.topP << v.weight
                     << v.speeds << v.baselineSpeeds << v.draftSeconds << v.verifySeconds
                     << v.costs.draft << v.costs.verify << v.continuation << v.choices
                     << v.acceptProbability;
    }
    Dump& operator<<(const TokenChoices& v) { return *this << v.ids << v.probabilities; }
    Dump& operator<<(const ContinuationRecord& v)
    {
        return *this << v.id << v.target << v.task << v.offsets << v.ids << v.margins << v.drawn
                     << v.choices;
    }
    Dump& operator<<(const TokenTextRecord& v) { return *this << v.id << v.ids << v.texts; }
    template <typename T>
    Dump& operator<<(const std::vector<T>& values)
    {
        *this << values.size();
        for (const T& value : values)
            *this << value;
        return *this;
    }
    template <typename T>
    Dump& operator<<(const std::optional<T>& value)
    {
        *this << value.has_value();
        return value ? *this << *value : *this;
    }
    std::string text() const { return m_out.str(); }

private:
    std::ostringstream m_out;
};

std::string dump(const StudyData& study)
{
    Dump out;
    out << study.created << study.software << study.checkpoints << study.calibrations << study.runs
        << study.acceptance << study.continuations << study.tokenTexts;
    return out.text();
}

std::string reason(const auto& result)
{
    return result.ok() ? "" : result.error().text();
}

bool contains(const std::string& text, const char* part)
{
    return text.find(part) != std::string::npos;
}

} // namespace

class TestStudy : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void init() { QVERIFY(m_folder.isValid()); }
    void roundTrip();
    void savedTwiceIsEqualByteForByte();
    void chatPrompts();
    void layerRoundTrip();
    void longTexts();
    void names();
    void badRecordsAreRefusedAndLeaveTheFile();
    void damagedFiles_data();
    void damagedFiles();
    void newerVersionIsRefused();
    void hostileSizes();
    void linksOutOfTheFileAreNotFollowed();
    void updateIsReadModifyWrite();
    void secondWriterWaits();
    void concurrentUpdatesAreAllKept();
    void killedWriterLeavesAStudy();
    void readableWithH5py();
    void h5pyHoldsTheFile();

private:
    fs::path path(const char* name) const { return fs::path(m_folder.path().toStdString()) / name; }
    QTemporaryDir m_folder;
};

void TestStudy::roundTrip()
{
    const StudyData study = test::sampleStudy();
    const auto saved = saveStudy(path("a.h5"), study);
    QVERIFY2(saved.ok(), reason(saved).c_str());
    const auto loaded = loadStudy(path("a.h5"));
    QVERIFY2(loaded.ok(), reason(loaded).c_str());
    QCOMPARE(dump(loaded.value()), dump(study));
    QVERIFY(saveStudy(path("none.h5"), StudyData{}).ok());
    QCOMPARE(dump(loadStudy(path("none.h5")).value()), dump(StudyData{}));
}

void TestStudy::savedTwiceIsEqualByteForByte()
{
    QVERIFY(saveStudy(path("one.h5"), test::sampleStudy()).ok());
    QVERIFY(saveStudy(path("two.h5"), test::sampleStudy()).ok());
    QCOMPARE(readFile(path("one.h5")).value(), readFile(path("two.h5")).value());
}

void TestStudy::chatPrompts()
{
    StudyData study = test::sampleStudy();
    study.acceptance[1].chatTemplate = true;
    ChatPromptRecord record{"abc",        "toy",     "transformers 5.19.0",
                            {"aa", "bb"}, {0, 2, 5}, {1, 9, 1, 8, 7}};
    study.put(record);
    QVERIFY(saveStudy(path("chat.h5"), study).ok());
    const auto read = loadStudy(path("chat.h5"));
    QVERIFY2(read.ok(), reason(read).c_str());
    QVERIFY(read->acceptance[1].chatTemplate && !read->acceptance[0].chatTemplate);
    QCOMPARE(read->chatPrompts.size(), std::size_t{1});
    const ChatPromptRecord& back = read->chatPrompts[0];
    QCOMPARE(back.id, record.id);
    QCOMPARE(back.checkpoint, record.checkpoint);
    QCOMPARE(back.software, record.software);
    QCOMPARE(back.prompts, record.prompts);
    QCOMPARE(back.offsets, record.offsets);
    QCOMPARE(back.ids, record.ids);
    for (const std::vector<std::int32_t>& offsets :
         {std::vector<std::int32_t>{0, 2}, {0, 2, 9}, {0, 6, 5}, {1, 2, 5}}) {
        record.offsets = offsets;
        study.put(record);
        QVERIFY(!saveStudy(path("chat.h5"), study).ok());
    }
}

void TestStudy::layerRoundTrip()
{
    for (const LayerRecord& record : {test::sampleLayer(7), LayerRecord{}}) {
        QVERIFY(saveLayerRecord(path("007.h5"), record).ok());
        const auto loaded = loadLayerRecord(path("007.h5"));
        QVERIFY2(loaded.ok(), reason(loaded).c_str());
        QCOMPARE((Dump() << loaded.value()).text(), (Dump() << record).text());
    }
    QVERIFY(contains(reason(loadStudy(path("007.h5"))), "mla-draft-study is expected"));
}

void TestStudy::longTexts()
{
    StudyData study = test::sampleStudy();
    study.runs[0].settingsJson = std::string(200'000, 'j');
    study.runs[0].device = std::string("a\0b", 3);
    study.checkpoints[0].configJson = std::string(3'000'000, 'c');
    QVERIFY(saveStudy(path("long.h5"), study).ok());
    QCOMPARE(dump(loadStudy(path("long.h5")).value()), dump(study));
}

void TestStudy::names()
{
    QCOMPARE(schema::safeName("transmla-76+32-f4/functional"),
             std::string("transmla-76+32-f4%2Ffunctional"));
    for (const std::string id :
         {"", ".", "..", "a/b", "%2F", "100%", "a%2", "tab\t", "ü 你", "x:y"}) {
        const std::string name = schema::safeName(id);
        QCOMPARE(schema::idOf(name), id);
        QVERIFY(name.find('/') == std::string::npos && name != "." && name != "..");
    }
    QCOMPARE(schema::layerName(LayerIndex(7)), std::string("007"));
    QCOMPARE(schema::layerName(LayerIndex(1234)), std::string("1234"));
}

void TestStudy::badRecordsAreRefusedAndLeaveTheFile()
{
    const StudyData good = test::sampleStudy();
    QVERIFY(saveStudy(path("good.h5"), good).ok());
    const auto refused = [&](auto change, const char* part) {
        StudyData bad = good;
        change(bad);
        const std::string text = reason(saveStudy(path("good.h5"), bad));
        return contains(text, part) && contains(text, "good.h5") &&
               dump(loadStudy(path("good.h5")).value()) == dump(good);
    };
    QVERIFY(refused([](StudyData& s) { s.runs[1].id = s.runs[0].id; }, "unique"));
    QVERIFY(refused([](StudyData& s) { s.runs[1].id.clear(); }, "unique"));
    QVERIFY(refused([](StudyData& s) { s.calibrations[0].mask.pop_back(); }, "mask"));
    QVERIFY(refused([](StudyData& s) { s.runs[0].layers[0].loss->train.pop_back(); }, "loss"));
    QVERIFY(refused([](StudyData& s) { s.runs[0].layers[0].rope->keyEnergy.pop_back(); },
                    "key_energy"));
    QVERIFY(refused([](StudyData& s) { s.runs[0].layers[1].layer = LayerIndex(0); }, "layers/000"));
    QVERIFY(refused([](StudyData& s) { s.runs[1].attentionMaps[0].draft.pop_back(); },
                    "attention_maps/000/draft"));
    QVERIFY(refused([](StudyData& s) { s.acceptance[0].accepted[0] = 4; }, "accepted"));
    QVERIFY(contains(reason(saveStudy(path("absent") / "a.h5", good)), "absent"));
}

void TestStudy::damagedFiles_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("message");
    QVERIFY(saveStudy(path("whole.h5"), test::sampleStudy()).ok());
    const std::string whole = readFile(path("whole.h5")).value();
    std::ofstream(path("cut.h5"), std::ios::binary) << whole.substr(0, whole.size() - 1024);
    std::ofstream(path("half.h5"), std::ios::binary) << whole.substr(0, whole.size() / 2);
    std::ofstream(path("empty.h5"));
    std::ofstream(path("text.h5")) << "a plain text\n";
    auto foreign = h5::File::create();
    QVERIFY(foreign->root().writeText("hello", "world").ok());
    std::ofstream(path("foreign.h5"), std::ios::binary) << foreign->image().value();
    QTest::newRow("last 1024 bytes missing") << "cut.h5"
                                             << "truncated file";
    QTest::newRow("half") << "half.h5"
                          << "truncated file";
    QTest::newRow("empty") << "empty.h5"
                           << "empty";
    QTest::newRow("text") << "text.h5"
                          << "not an HDF5 file";
    QTest::newRow("foreign") << "foreign.h5"
                             << "not of format mla-draft-study";
    QTest::newRow("missing") << "missing.h5"
                             << "no such file";
}

void TestStudy::damagedFiles()
{
    QFETCH(QString, name);
    QFETCH(QString, message);
    const auto study = loadStudy(path(qPrintable(name)));
    QVERIFY(!study.ok());
    QCOMPARE(study.error().code, ErrorCode::BadInput);
    const QString text = QString::fromStdString(study.error().text());
    QVERIFY2(text.contains(message) && text.contains(name), qPrintable(text));
}

void TestStudy::newerVersionIsRefused()
{
    for (const auto& [version, accepted] : {std::pair{"1.9", true}, {"2.0", false}, {"x", false}}) {
        {
            auto file = h5::File::create();
            h5::Group& root = file->root();
            QVERIFY(root.setTextAttribute(schema::format, schema::studyFormat).ok());
            QVERIFY(root.setTextAttribute(schema::version, version).ok());
            QVERIFY(root.setTextAttribute(schema::created, "").ok());
            QVERIFY(root.setTextAttribute(schema::software, "").ok());
            QVERIFY(writeFileAtomically(path("version.h5"), file->image().value()).ok());
        }
        const std::string text = reason(loadStudy(path("version.h5")));
        QCOMPARE(text.empty(), accepted);
        QVERIFY(accepted || contains(text, version));
    }
}

void TestStudy::hostileSizes()
{
    // A dataset that claims 2^40 numbers: its extent is found in the file by its value and
    // inflated.
    StudyData study = test::sampleStudy();
    study.runs[0].layers[0].spectrum->weights.assign(1237, 1.0);
    QVERIFY(saveStudy(path("huge.h5"), study).ok());
    std::string bytes = readFile(path("huge.h5")).value();
    const std::uint64_t extent = 1237, inflated = std::uint64_t{1} << 40;
    std::string pattern(8, '\0'), claim(8, '\0');
    std::memcpy(pattern.data(), &extent, 8);
    std::memcpy(claim.data(), &inflated, 8);
    int changed = 0;
    for (std::size_t at = bytes.find(pattern); at != bytes.npos; at = bytes.find(pattern, at + 8)) {
        bytes.replace(at, 8, claim);
        ++changed;
    }
    QVERIFY(changed > 0);
    QVERIFY(writeFileAtomically(path("huge.h5"), bytes).ok());
    const std::string text = reason(loadStudy(path("huge.h5")));
    QVERIFY2(contains(text, "weights"), text.c_str());
}

void TestStudy::linksOutOfTheFileAreNotFollowed()
{
    const QByteArray python = qgetenv("MLA_PYTHON");
    if (python.isEmpty())
        QSKIP("MLA_PYTHON is not set: no h5py to make such a file with");
    QVERIFY(saveStudy(path("linked.h5"), test::sampleStudy()).ok());
    QProcess process;
    process.start(python, {"-c",
                           "import h5py, sys\n"
                           "with h5py.File(sys.argv[1], 'r+') as f:\n"
                           "    del f['checkpoints/toy/path']\n"
                           "    f['checkpoints/toy/path'] = h5py.ExternalLink('other.h5', '/x')\n",
                           QString::fromStdString(path("linked.h5").string())});
    QVERIFY(process.waitForFinished() && process.exitCode() == 0);
    QVERIFY(contains(reason(loadStudy(path("linked.h5"))), "/checkpoints/toy/path"));
}

void TestStudy::updateIsReadModifyWrite()
{
    const auto add = [](StudyData& study) -> Status {
        study.put(test::sampleRun("r", "converted"));
        return {};
    };
    QVERIFY(updateStudy(path("u.h5"), add).ok());
    const auto created = loadStudy(path("u.h5"));
    QVERIFY(created->findRun("r") && created->created.size() == 20);
    const auto failing = [](StudyData& study) -> Status {
        study.runs.clear();
        return badInput("no");
    };
    QCOMPARE(reason(updateStudy(path("u.h5"), failing)), std::string("no"));
    QCOMPARE(dump(loadStudy(path("u.h5")).value()), dump(created.value()));
    std::ofstream(path("notes.h5")) << "text";
    QVERIFY(contains(reason(updateStudy(path("notes.h5"), add)), "not an HDF5 file"));
    QCOMPARE(readFile(path("notes.h5")).value(), std::string("text"));
}

void TestStudy::secondWriterWaits()
{
    const auto nothing = [](StudyData&) -> Status { return {}; };
    const int holder = ::open(path("w.h5.lock").c_str(), O_RDWR | O_CREAT, 0600);
    QVERIFY(::flock(holder, LOCK_EX) == 0);
    const auto refused = updateStudy(path("w.h5"), nothing, std::chrono::milliseconds(100));
    QVERIFY(contains(reason(refused), "another program is writing"));
    std::thread release([holder] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        ::close(holder);
    });
    const auto waited = updateStudy(path("w.h5"), nothing);
    release.join();
    QVERIFY2(waited.ok(), reason(waited).c_str());
}

void TestStudy::concurrentUpdatesAreAllKept()
{
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([this, t] {
            for (int i = 0; i < 5; ++i)
                (void)updateStudy(path("c.h5"), [&](StudyData& study) -> Status {
                    study.put(test::sampleRow("original", std::to_string(t * 5 + i), {1}));
                    return {};
                });
        });
    for (std::thread& thread : threads)
        thread.join();
    QCOMPARE(loadStudy(path("c.h5"))->acceptance.size(), std::size_t{20});
}

void TestStudy::killedWriterLeavesAStudy()
{
    QVERIFY(saveStudy(path("k.h5"), test::sampleStudy()).ok());
    for (int round = 0; round < 20; ++round) {
        const pid_t child = ::fork();
        if (child == 0) {
            StudyData study = test::sampleStudy();
            for (int i = 0;; ++i) {
                study.runs[0].seed = static_cast<std::uint64_t>(i);
                (void)saveStudy(path("k.h5"), study);
            }
        }
        QVERIFY(child > 0);
        std::this_thread::sleep_for(std::chrono::microseconds(5000 + 1700 * round));
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        auto loaded = loadStudy(path("k.h5"));
        QVERIFY2(loaded.ok(), reason(loaded).c_str());
        loaded->runs[0].seed = test::sampleStudy().runs[0].seed;
        QCOMPARE(dump(loaded.value()), dump(test::sampleStudy()));
    }
    QVERIFY(updateStudy(path("k.h5"), [](StudyData&) -> Status { return {}; }).ok());
}

void TestStudy::readableWithH5py()
{
    const QByteArray python = qgetenv("MLA_PYTHON");
    if (python.isEmpty())
        QSKIP("MLA_PYTHON is not set: no interpreter with h5py");
    QVERIFY(saveStudy(path("py.h5"), test::sampleStudy()).ok());
    const QString script = R"(
import h5py, json, math, sys
f = h5py.File(sys.argv[1])
assert f.attrs["format"] == "mla-draft-study" and f.attrs["version"] == "1.4"
assert f.attrs["created"] == "2026-01-01T00:00:00Z"
run = f["runs"]["transmla-4+2%2Ffunctional"]
assert run.attrs["variant"] == "functional" and run.attrs["kv_lora_rank"] == 4
assert json.loads(run.attrs["settings"])["note"] == "größer"
assert run.attrs["seed"] == 2**64 - 1
assert run["warnings"].asstr()[2] == "dritte — 警告"
layer = run["layers/001"]
assert list(layer["loss/step"]) == [0, 1, 2, 3] and math.isnan(layer["loss/train"][0])
assert list(layer["spectrum/weights"]) == [8, 4, 2, 1]
assert layer["rope/kept_energy"].shape == (2, 3)
assert layer["fidelity/after"][0] == .25 + .1 and layer["complete"][()] == 1
assert run["stages/refined/perplexity"][()] == 25
assert layer["fidelity/rope_only"][0] == .125 and layer["fidelity/refined"][0] == .25
assert run["error_sources"].attrs["measured_on"] == "self"
assert list(run["positions/first"]) == [0, 32] and list(run["positions/tokens"]) == [64, 9]
assert run["attention_maps/000"].attrs["head"] == 3
assert list(run["attention_maps/000/tokens"].asstr()) == ["<s>", " é"]
assert run["attention_maps/000/draft"][1, 0] == .75
row = f["acceptance"]["transmla-4+2%2Ffunctional%2Fmath%2Fk3"]
assert list(row["accepted"]) == [3, 0, 1, 2] and row.attrs["k"] == 3
assert "tokens_per_second" not in row.attrs
sampled = f["acceptance"]["transmla-4+2%2Ffunctional%2Fsampled%2Fk3"]
assert list(sampled["weight"]) == [.75, .25] and sampled.attrs["plain_steps"] == 1.25
assert list(sampled["accept_probability"]) == [1, .5] and sampled.attrs["continuation"] == "text"
assert list(f["continuations/text/top_ids"]) == [7, 5, -1, 2, 7, 5]
assert list(f["token_texts/toy/ids"]) == [2, 5, 7]
assert list(f["token_texts/toy/texts"].asstr()) == ["</s>", "é", " the"]
assert f["calibration/self/input_ids"].shape == (2, 3)
assert json.loads(f["checkpoints/toy/config"].asstr()[()])["hidden_size"] == 8
)";
    QProcess process;
    process.start(python, {"-c", script, QString::fromStdString(path("py.h5").string())});
    QVERIFY(process.waitForFinished());
    QVERIFY2(process.exitCode() == 0, process.readAllStandardError().constData());
}

void TestStudy::h5pyHoldsTheFile()
{
    const QByteArray python = qgetenv("MLA_PYTHON");
    if (python.isEmpty())
        QSKIP("MLA_PYTHON is not set: no interpreter with h5py");
    QVERIFY(saveStudy(path("held.h5"), test::sampleStudy()).ok());
    for (const QString mode : {"r", "r+"}) {
        QProcess process;
        process.start(python, {"-c",
                               "import h5py, sys\n"
                               "f = h5py.File(sys.argv[1], sys.argv[2], locking=True)\n"
                               "print('open', flush=True)\n"
                               "sys.stdin.readline()\n",
                               QString::fromStdString(path("held.h5").string()), mode});
        QVERIFY(process.waitForReadyRead());
        const auto loaded = loadStudy(path("held.h5"));
        QCOMPARE(loaded.ok(), mode == "r");
        QVERIFY(loaded.ok() || contains(reason(loaded), "open for writing"));
        QVERIFY(saveStudy(path("held.h5"), test::sampleStudy()).ok()); // replaced, not written to
        process.write("\n");
        QVERIFY(process.waitForFinished());
    }
}

QTEST_APPLESS_MAIN(TestStudy)
#include "tst_study.moc"
