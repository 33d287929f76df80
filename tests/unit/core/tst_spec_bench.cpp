// SPDX-License-Identifier: GPL-3.0-or-later
// Raw results in the form of Spec-Bench. Expected counts are worked out by hand from the aligned
// count: a step drafts min(k, tokens left - 1).
#include <nlohmann/json.hpp>

#include <sstream>

#include "core/report/spec_bench.h"

#include <QTest>

using namespace mla;
using Counts = std::vector<std::int32_t>;

namespace
{

/// As evaluation/inference_sps.py writes it (`idxs`), as evaluation/eval.py does
/// (`decoding_steps`), and with more tokens in the steps than in the text.
constexpr auto kAnswers =
    R"({"question_id": 81, "category": "writing", "answer_id": "hKfQ9Yt3", "model_id": "vicuna-7b-sps", "choices": [{"index": 0, "turns": ["Sure.", "Of course."], "idxs": [2, 2], "new_tokens": [9, 4], "wall_time": [0.25, 0.125], "accept_lengths": [5, 1, 3, 1, 2, 1]}], "tstamp": 1711111111.5}
{"question_id": 82, "category": "writing", "answer_id": "Lw2bSx8Q", "model_id": "vicuna-7b-sps", "choices": [{"index": 0, "turns": ["Dear"], "decoding_steps": [2], "new_tokens": [6], "wall_time": [0.625], "accept_lengths": [2, 4]}, {"index": 1, "turns": ["x"], "decoding_steps": [1], "new_tokens": [1], "wall_time": [9], "accept_lengths": [1]}], "tstamp": 1711111112.5}

{"question_id": 321, "category": "qa", "answer_id": "aa", "model_id": "vicuna-7b-sps", "choices": [{"index": 0, "turns": ["Paris"], "decoding_steps": [2], "new_tokens": [5], "wall_time": [0.5], "accept_lengths": [3, 3]}], "tstamp": 1711111113.5}
)";

SpecBenchImport importOf(int k)
{
    SpecBenchImport import;
    import.k = k;
    import.target = "vicuna-7b";
    return import;
}

std::vector<AcceptanceRecord> read(const std::string& text, const SpecBenchImport& import)
{
    auto records = readSpecBench(text, "answers.jsonl", import);
    if (!records)
        throw std::runtime_error(records.error().text());
    return *records;
}

std::vector<nlohmann::json> written(const AcceptanceRecord& record)
{
    const auto lines = specBenchLines(record, 12.5);
    if (!lines)
        throw std::runtime_error(lines.error().text());
    std::vector<nlohmann::json> questions;
    std::istringstream in(*lines);
    for (std::string line; std::getline(in, line);)
        questions.push_back(nlohmann::json::parse(line));
    return questions;
}

/// k = 2. Prompt 0 accepts 2 of 2, then 1 of 2: one plain step must follow. Prompt 1 has no step at
/// all: a plain one. Prompt 2 accepts 2 of 2: more may follow or not.
AcceptanceRecord measured(int plainSteps)
{
    AcceptanceRecord record;
    record.id = "toy/converted|cats";
    record.run = "toy/converted";
    record.task = "cats";
    record.method = "speculative";
    record.k = 2;
    record.prompt = {0, 0, 2};
    record.drafted = {2, 2, 2};
    record.accepted = {2, 1, 2};
    record.plainSteps = plainSteps;
    return record;
}

} // namespace

class TestSpecBench : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void countsFollowFromLengths();
    void categoriesAreTasks();
    void namesCanBeGiven();
    void refusals_data();
    void refusals();
    void writesItsForm();
    void plainStepsFindTheirPrompts();
    void timeIsShared();
    void expectationsAreRefused();
    void roundTrip();
};

void TestSpecBench::countsFollowFromLengths()
{
    const AcceptanceRecord writing = read(kAnswers, importOf(4)).at(0);
    QCOMPARE(writing.prompt, (Counts{0, 0, 0, 0, 0, 1, 1}));
    QCOMPARE(writing.drafted, (Counts{4, 3, 2, 3, 2, 4, 3}));
    QCOMPARE(writing.accepted, (Counts{4, 0, 2, 0, 1, 1, 3}));
    QCOMPARE(double(writing.plainSteps), 1.0); // the second turn's last token
    QCOMPARE(writing.tokens, std::int64_t{19});
    QCOMPARE(writing.wallTime, 1.0);
    QCOMPARE(writing.tokensPerSecond.value(), 19.0);
}

void TestSpecBench::categoriesAreTasks()
{
    const auto records = read(kAnswers, importOf(4));
    QCOMPARE(records.size(), std::size_t{2});
    QCOMPARE(records[0].task, std::string("writing"));
    QCOMPARE(records[1].task, std::string("qa"));
    QCOMPARE(records[1].drafted, (Counts{4, 2})); // one text of 6: the steps say so
    QCOMPARE(records[1].accepted, (Counts{2, 2}));
    for (const AcceptanceRecord& record : records) {
        QCOMPARE(record.run, std::string("vicuna-7b-sps"));
        QCOMPARE(record.target, std::string("vicuna-7b"));
        QCOMPARE(record.k, 4);
    }
    QVERIFY(records[0].id != records[1].id);
}

void TestSpecBench::namesCanBeGiven()
{
    SpecBenchImport import = importOf(4);
    import.task = "all";
    import.run = "draft";
    import.backend = "hf";
    const auto records = read(kAnswers, import);
    QCOMPARE(records.size(), std::size_t{1});
    QCOMPARE(records[0].task, std::string("all"));
    QCOMPARE(records[0].run, std::string("draft"));
    QCOMPARE(records[0].backend, std::string("hf"));
    QCOMPARE(records[0].prompt.back(), 2);
}

void TestSpecBench::refusals_data()
{
    QTest::addColumn<QByteArray>("line");
    QTest::addColumn<QByteArray>("named");
    const auto choice = [](const char* text) {
        return QByteArray(R"({"category": "a", "model_id": "m", "choices": [)") + text + "]}";
    };
    QTest::newRow("no JSON") << QByteArray("{") << QByteArray("answers.jsonl, line 1");
    QTest::newRow("a list") << QByteArray("[]") << QByteArray("choices");
    QTest::newRow("no choice") << choice("") << QByteArray("choices");
    QTest::newRow("no lengths") << choice(R"({"new_tokens": [1], "wall_time": [1]})")
                                << QByteArray("accept_lengths");
    QTest::newRow("length 0")
        << choice(R"({"accept_lengths": [0], "new_tokens": [1], "wall_time": [1]})")
        << QByteArray("accept_lengths");
    QTest::newRow("too long for k")
        << choice(R"({"accept_lengths": [6], "new_tokens": [6], "wall_time": [1]})")
        << QByteArray("at most 5");
    QTest::newRow("plain decoding")
        << choice(R"({"accept_lengths": [1], "new_tokens": [1], "wall_time": [1]})")
        << QByteArray("no step of a drafted anything");
    QTest::newRow("no category")
        << QByteArray(
               R"({"model_id": "m", "choices": [{"accept_lengths": [2], "new_tokens": [2], "wall_time": [1]}]})")
        << QByteArray("category");
    QTest::newRow("empty") << QByteArray("\n") << QByteArray("no questions");
}

void TestSpecBench::refusals()
{
    QFETCH(QByteArray, line);
    QFETCH(QByteArray, named);
    const auto refused = readSpecBench(line.toStdString(), "answers.jsonl", importOf(4));
    QVERIFY(!refused);
    QCOMPARE(refused.error().code, ErrorCode::BadInput);
    QVERIFY2(refused.error().text().find(named.toStdString()) != std::string::npos,
             refused.error().text().c_str());
}

void TestSpecBench::writesItsForm()
{
    const auto questions = written(measured(2));
    QCOMPARE(questions.size(), std::size_t{3});
    const nlohmann::json expected = {{"question_id", 0},
                                     {"category", "cats"},
                                     {"answer_id", "toy/converted|cats#0"},
                                     {"model_id", "toy/converted"},
                                     {"tstamp", 12.5},
                                     {"choices",
                                      {{{"index", 0},
                                        {"turns", {""}},
                                        {"decoding_steps", {3}},
                                        {"new_tokens", {6}},
                                        {"wall_time", nlohmann::json::array()},
                                        {"accept_lengths", {3, 2, 1}}}}}};
    QCOMPARE(questions[0].dump(), expected.dump());
}

void TestSpecBench::plainStepsFindTheirPrompts()
{
    const auto lengths = [](int plainSteps) {
        std::string text;
        for (const nlohmann::json& question : written(measured(plainSteps)))
            text += question["choices"][0]["accept_lengths"].dump();
        return text;
    };
    QCOMPARE(lengths(2), std::string("[3,2,1][1][3]"));
    QCOMPARE(lengths(3), std::string("[3,2,1][1][3,1]"));
    QCOMPARE(lengths(4), std::string("[3,2,1][1][3,1][1]"));
}

void TestSpecBench::timeIsShared()
{
    AcceptanceRecord record = measured(2); // 6, 1 and 3 tokens
    record.wallTime = 5;
    record.tokensPerSecond = 2;
    const auto questions = written(record);
    QCOMPARE(questions[0]["choices"][0]["wall_time"][0].get<double>(), 3.0);
    QCOMPARE(questions[1]["choices"][0]["wall_time"][0].get<double>(), 0.5);
    QCOMPARE(questions[2]["choices"][0]["wall_time"][0].get<double>(), 1.5);
}

void TestSpecBench::expectationsAreRefused()
{
    AcceptanceRecord record = measured(2);
    record.method = "replay";
    record.temperature = 0.7;
    const auto refused = specBenchLines(record, 0);
    QVERIFY(!refused);
    QVERIFY(refused.error().text().find(record.id) != std::string::npos);
}

void TestSpecBench::roundTrip()
{
    AcceptanceRecord record = measured(3);
    record.wallTime = 5.5;
    record.tokensPerSecond = 2;
    record.tokens = 11;
    const auto lines = specBenchLines(record, 0);
    const AcceptanceRecord back = read(*lines, importOf(2)).at(0);
    // A lone last token was never drafted for, so prompt 1 has no step.
    QCOMPARE(back.prompt, record.prompt);
    QCOMPARE(back.drafted, record.drafted);
    QCOMPARE(back.accepted, record.accepted);
    QCOMPARE(double(back.plainSteps), double(record.plainSteps));
    QCOMPARE(back.tokens, record.tokens);
    QCOMPARE(back.wallTime, record.wallTime);
}

QTEST_APPLESS_MAIN(TestSpecBench)
#include "tst_spec_bench.moc"
