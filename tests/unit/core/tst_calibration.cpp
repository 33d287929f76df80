// SPDX-License-Identifier: GPL-3.0-or-later
// Calibration sets from text, JSON lines and the model itself.
#include "core/calibrate/corpus.h"
#include "core/calibrate/self_generation.h"
#include "core/model/sampling.h"
#include "tests/support/numeric.h"

#include <QTemporaryDir>
#include <QTest>

using namespace mla;
using namespace mla::test;
using torch::Tensor;

class TestCalibration : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase();
    void textWindows();
    void severalFiles();
    void jsonLines();
    void recordKeys();
    void tooLittle();
    void tooLong();
    void selfGenerated();
    void selfPrefixes();
    void sampling();
    void savesAndLoads();

private:
    std::filesystem::path write(const char* name, const std::string& text);
    Result<CalibrationResult> build(const std::string& source, int sequences, int length,
                                    int workers = 1, std::uint64_t seed = 0);
    [[nodiscard]] static std::vector<int> row(const CalibrationSet& set, int index, bool valid);
    QTemporaryDir m_folder;
    std::optional<Checkpoint> m_checkpoint;
    std::optional<Tokenizer> m_tokenizer;
    std::string m_story;
    JobContext m_job;
};

void TestCalibration::initTestCase()
{
    useOneThread();
    m_checkpoint = must(Checkpoint::open(stories()));
    m_tokenizer = must(Tokenizer::open(stories()));
    for (int i = 0; i < 40; ++i) // no two windows are equal
        m_story += "Once there were " + std::to_string(i * 37) + " dogs and a cat called Tom. ";
}

std::filesystem::path TestCalibration::write(const char* name, const std::string& text)
{
    const auto path = std::filesystem::path(m_folder.path().toStdString()) / name;
    std::ofstream(path) << text;
    return path;
}

Result<CalibrationResult> TestCalibration::build(const std::string& source, int sequences,
                                                 int length, int workers, std::uint64_t seed)
{
    ComputeSettings compute{"cpu", workers, seed};
    return buildCalibration(m_job, *m_checkpoint, *m_tokenizer, {source, sequences, length},
                            std::filesystem::path(MLA_RESOURCES) / "prompts" / "stories.txt",
                            compute);
}

std::vector<int> TestCalibration::row(const CalibrationSet& set, int index, bool valid)
{
    std::vector<int> ids;
    for (int t = 0; t < set.length(); ++t)
        if (set.mask[index][t].item<bool>() == valid)
            ids.push_back(set.ids[index][t].item<int>());
    return ids;
}

/// N windows at slots floor(i * available / N) of the text encoded as a whole.
void TestCalibration::textWindows()
{
    constexpr int count = 9, length = 32;
    const std::vector<int> ids = m_tokenizer->encode(m_story);
    const int available = static_cast<int>(ids.size()) / length;
    QVERIFY(available > 2 * count);
    const CalibrationResult out = must(build(write("story.txt", m_story).string(), count, length));
    QVERIFY(out.warnings.empty());
    QCOMPARE(out.set.sequences(), count);
    QCOMPARE(out.set.length(), length);
    QCOMPARE(out.set.heldout(), 2); // ceil(9 / 8)
    QVERIFY(out.set.mask.all().item<bool>());
    for (int i = 0; i < count; ++i) {
        const auto begin =
            ids.begin() + static_cast<std::ptrdiff_t>(i * available / count) * length;
        QCOMPARE(row(out.set, i, true), std::vector<int>(begin, begin + length));
    }
}

void TestCalibration::severalFiles()
{
    const std::string first = write("a.txt", m_story).string();
    const std::string second = write("b.txt", "Lily was sad. " + m_story).string();
    const CalibrationSet both = must(build(first + "," + second, 9, 32)).set;
    const CalibrationSet a = must(build(first, 8, 32)).set;
    QCOMPARE(both.sequences(), 9); // 5 of the first, 4 of the second
    QCOMPARE(row(both, 0, true), row(a, 0, true));
    const std::vector<int> ids = m_tokenizer->encode("Lily was sad. " + m_story);
    QCOMPARE(row(both, 5, true), std::vector<int>(ids.begin(), ids.begin() + 32));
}

void TestCalibration::jsonLines()
{
    std::string lines = R"({"prompt": "Tom ran."})"
                        "\n\n"
                        R"({"turns": ["Lily had a red ball.", "And then?"]})"
                        "\n";
    for (int i = 0; i < 7; ++i)
        lines +=
            R"({"text": ")" + m_story.substr(static_cast<std::size_t>(i) * 50, 400) + "\"}\r\n";
    const CalibrationResult out = must(build(write("prompts.jsonl", lines).string(), 9, 24));
    QVERIFY(out.warnings.empty());
    QCOMPARE(out.set.sequences(), 9);
    const auto cut = [&](const std::string& text) {
        std::vector<int> ids = m_tokenizer->encode(text);
        ids.resize(std::min<std::size_t>(ids.size(), 24));
        return ids;
    };
    const std::vector<int> shortOne = cut("Tom ran.");
    QVERIFY(shortOne.size() < 24);
    QCOMPARE(row(out.set, 0, true), shortOne);
    QCOMPARE(row(out.set, 0, false), std::vector<int>(24 - shortOne.size(), 0)); // padding
    QVERIFY(out.set.mask[0][0].item<bool>());                                    // a prefix
    QVERIFY(!out.set.mask[0][-1].item<bool>());
    QCOMPARE(row(out.set, 1, true), cut("Lily had a red ball."));
    QCOMPARE(row(out.set, 2, true), cut(m_story.substr(0, 400)));
}

void TestCalibration::recordKeys()
{
    QCOMPARE(must(recordText(R"({"text": "a", "prompt": "b"})", "x")), std::string("a"));
    QCOMPARE(must(recordText(R"({"question_id": 1, "turns": ["c", "d"]})", "x")), std::string("c"));
    for (const char* bad : {"[1]", "{\"text\": 3}", "{\"turns\": []}", "{\"text\": \"a\"", "{}"}) {
        const auto text = recordText(bad, "tasks.jsonl");
        QVERIFY2(!text.ok(), bad);
        QCOMPARE(text.error().code, ErrorCode::BadInput);
        QVERIFY(text.error().text().find("tasks.jsonl") != std::string::npos);
    }
}

void TestCalibration::tooLittle()
{
    const auto few = build(write("short.txt", m_story.substr(0, 120)).string(), 16, 32);
    QVERIFY(!few.ok());
    QCOMPARE(few.error().code, ErrorCode::BadInput);
    QVERIFY(few.error().text().find("at least 8") != std::string::npos);
    const auto none = build((write("a.txt", "") / "missing.txt").string(), 16, 32);
    QVERIFY(!none.ok());

    const auto available = static_cast<int>(m_tokenizer->encode(m_story).size()) / 64;
    QVERIFY(available >= 8);
    const CalibrationResult fewer =
        must(build(write("story.txt", m_story).string(), available + 5, 64));
    QCOMPARE(fewer.set.sequences(), available);
    QCOMPARE(fewer.warnings.size(), std::size_t{1});
    QVERIFY(fewer.warnings[0].find(std::to_string(available + 5)) != std::string::npos);
}

void TestCalibration::tooLong()
{
    const auto result = build("self", 8, 513); // the context holds 512
    QVERIFY(!result.ok());
    QCOMPARE(result.error().code, ErrorCode::Usage);
}

void TestCalibration::selfGenerated()
{
    constexpr int count = 70, length = 24; // more than two batches
    const CalibrationSet one = must(build("self", count, length, 1)).set;
    const CalibrationSet again = must(build("self", count, length, 1)).set;
    const CalibrationSet two = must(build("self", count, length, 2)).set;
    QCOMPARE(one.sequences(), count);
    QCOMPARE(one.length(), length);
    QVERIFY(one.mask.all().item<bool>());
    QVERIFY(identical(one.ids, again.ids));
    QVERIFY(identical(one.ids, two.ids));
    QVERIFY(!identical(one.ids, must(build("self", count, length, 1, 7)).set.ids));
    QVERIFY(one.ids.min().item<int>() >= 0 && one.ids.max().item<int>() < 512);
}

void TestCalibration::selfPrefixes()
{
    const std::string line = "Tom and Lily went to the park with their big brown dog and a kite.";
    const std::vector<int> prompt = m_tokenizer->encode(line);
    QVERIFY(prompt.size() > 8);
    const CalibrationSet set =
        must(build("self:" + write("one.txt", line + "\n").string(), 12, 40)).set;
    QVERIFY(set.source.starts_with("self:"));
    int fromBos = 0, fromPrompt = 0;
    for (int i = 0; i < 12; ++i) {
        const std::vector<int> ids = row(set, i, true);
        if (std::equal(prompt.begin(), prompt.begin() + 8, ids.begin()))
            ++fromPrompt;
        else if (ids.front() == *m_checkpoint->config().bosTokenId)
            ++fromBos;
    }
    QCOMPARE(fromPrompt, 9);
    QCOMPARE(fromBos, 3); // a quarter

    // Given prefixes are kept whatever their lengths.
    const Decoder model = must(Decoder::load(*m_checkpoint));
    const std::vector<std::vector<int>> prefixes = {{1}, {1, 5, 9, 11}, {1, 5}};
    const Tensor ids = must(sampleSequences(m_job, model, prefixes, 6, 3, 1));
    QCOMPARE(ids.sizes(), (torch::IntArrayRef{3, 6}));
    for (std::size_t i = 0; i < prefixes.size(); ++i)
        for (std::size_t t = 0; t < prefixes[i].size(); ++t)
            QCOMPARE(ids[static_cast<std::int64_t>(i)][static_cast<std::int64_t>(t)].item<int>(),
                     prefixes[i][t]);
}

/// Frequencies of 40,000 draws within five standard deviations, at two temperatures.
void TestCalibration::sampling()
{
    constexpr std::int64_t rows = 40000;
    const std::vector<double> p = {0.5, 0.25, 0.0, 0.2, 0.05};
    const Tensor logits = torch::tensor(p).log().to(torch::kFloat32).expand({rows, 5});
    for (const double temperature : {1.0, 2.0}) {
        torch::Generator g = seededGenerator(5, 5);
        const Tensor drawn = sampleTokens(logits, temperature, g);
        double total = 0;
        for (const double value : p)
            total += std::pow(value, 1 / temperature);
        for (std::size_t token = 0; token < p.size(); ++token) {
            const double expected = std::pow(p[token], 1 / temperature) / total;
            const double got =
                (drawn == static_cast<std::int64_t>(token)).sum().item<double>() / rows;
            QVERIFY(std::abs(got - expected) <= 5 * std::sqrt(expected * (1 - expected) / rows));
        }
    }
}

void TestCalibration::savesAndLoads()
{
    const CalibrationSet set =
        must(build(write(
                       "p.jsonl", R"({"text": "Tom ran."})" + std::string("\n") +
                                      []() {
                                          std::string lines;
                                          for (int i = 0; i < 8; ++i)
                                              lines += "{\"text\": \"A dog ran to Lily " +
                                                       std::to_string(i) + "\"}\n";
                                          return lines;
                                      }())
                       .string(),
                   9, 16))
            .set;
    const auto path = std::filesystem::path(m_folder.path().toStdString()) / "set.safetensors";
    must(saveCalibration(path, set));
    const CalibrationSet back = must(loadCalibration(path));
    QVERIFY(identical(back.ids, set.ids));
    QVERIFY(identical(back.mask, set.mask));
    QCOMPARE(back.source, set.source);
}

QTEST_GUILESS_MAIN(TestCalibration)
#include "tst_calibration.moc"
