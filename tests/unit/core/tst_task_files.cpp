// SPDX-License-Identifier: GPL-3.0-or-later
// Task files by name, and the sets that ship.
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "core/pipeline/accept_prompts.h"
#include "core/pipeline/task_files.h"
#include "tests/support/numeric.h"

#include <QTemporaryDir>
#include <QTest>

using namespace mla;
using namespace mla::test;
namespace fs = std::filesystem;

namespace
{

const std::vector<std::string> kBundled = {"human_eval", "instructions", "questions", "summaries"};

fs::path resources()
{
    return MLA_RESOURCES;
}

std::vector<nlohmann::json> questions(const std::string& task)
{
    std::vector<nlohmann::json> parsed;
    for (const std::string& line : must(readJsonLines(resources() / "tasks" / (task + ".jsonl"))))
        parsed.push_back(nlohmann::json::parse(line));
    return parsed;
}

using Encoder = std::function<std::vector<int>(const std::string&)>;

/// Tokens of the demo's vocabulary: sixteen of them are a few words.
Encoder shortTokens()
{
    return [tokenizer = must(Tokenizer::open(resources() / "demo/stories260K"))](
               const std::string& text) { return tokenizer.encode(text); };
}

/// Words and signs, for code: in the demo's tokens, which are letters there, "from typing import
/// List" alone would be an overlap.
Encoder wordsAndSigns()
{
    return [known = std::make_shared<std::map<std::string, int>>()](const std::string& text) {
        const std::regex piece("[A-Za-z0-9_]+|[^A-Za-z0-9_[:space:]]");
        std::vector<int> ids;
        for (std::sregex_iterator it(text.begin(), text.end(), piece), end; it != end; ++it)
            ids.push_back(known->emplace(it->str(), static_cast<int>(known->size())).first->second);
        return ids;
    };
}

/// The lines of both prompt files as calibration rows.
CalibrationSet calibrationRows(const Encoder& encode)
{
    constexpr std::int64_t width = 256;
    std::vector<torch::Tensor> ids, mask;
    for (const char* file : {"calibration.txt", "stories.txt"}) {
        std::istringstream text(must(readFile(resources() / "prompts" / file)));
        for (std::string line; std::getline(text, line);) {
            std::vector<int> row = encode(line);
            const auto size = std::min<std::int64_t>(width, static_cast<std::int64_t>(row.size()));
            row.resize(width);
            ids.push_back(torch::tensor(row, torch::kInt64));
            mask.push_back(torch::arange(width) < size);
        }
    }
    return {torch::stack(ids), torch::stack(mask), "prompts"};
}

} // namespace

class TestTaskFiles : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase();
    void pathsAreTaken();
    void namesAreLookedUp();
    void bundledNames();
    void unknownNamesListTheKnown();
    void bundledSets_data();
    void bundledSets();
    void idsAreDistinct();
    void promptsKeepOffCalibration_data();
    void promptsKeepOffCalibration();

private:
    QTemporaryDir m_dir;
    fs::path m_folder;
};

void TestTaskFiles::initTestCase()
{
    m_folder = m_dir.path().toStdString();
    for (const char* name : {"sums.jsonl", "odes.jsonl", "notes.txt"})
        std::ofstream(m_folder / name) << R"({"prompt": "1 + 1 ="})" << '\n';
}

void TestTaskFiles::pathsAreTaken()
{
    const std::string file = (m_folder / "sums.jsonl").string();
    QCOMPARE(must(resolveTask(file)), fs::path(file));
    QCOMPARE(must(resolveTask("no/such.jsonl", m_folder)), fs::path("no/such.jsonl"));
    const fs::path before = fs::current_path();
    fs::current_path(m_folder);
    const fs::path here = must(resolveTask("notes.txt"));
    fs::current_path(before);
    QCOMPARE(here, fs::path("notes.txt"));
}

void TestTaskFiles::namesAreLookedUp()
{
    const std::vector<fs::path> expected = {m_folder / "odes.jsonl", m_folder / "sums.jsonl"};
    QCOMPARE(must(resolveTasks({"odes", "sums.jsonl"}, m_folder)), expected);
    QCOMPARE(taskNames(m_folder), (std::vector<std::string>{"odes", "sums"}));
}

void TestTaskFiles::bundledNames()
{
    QCOMPARE(taskNames(must(bundledTasks())), kBundled);
    QCOMPARE(must(resolveTask("summaries")), must(bundledTasks()) / "summaries.jsonl");
}

void TestTaskFiles::unknownNamesListTheKnown()
{
    const auto refused = resolveTasks({"odes", "ballads"}, m_folder);
    QVERIFY(!refused);
    QCOMPARE(refused.error().code, ErrorCode::Usage);
    for (const std::string& part :
         {std::string("ballads"), m_folder.string(), std::string("odes, sums")})
        QVERIFY2(refused.error().text().find(part) != std::string::npos,
                 refused.error().text().c_str());
    QVERIFY(!resolveTask("", m_folder));
    const auto nowhere = resolveTask("odes", m_folder / "absent");
    QVERIFY(nowhere.error().text().find("no .jsonl file is there") != std::string::npos);
}

void TestTaskFiles::bundledSets_data()
{
    QTest::addColumn<int>("count");
    QTest::addColumn<QByteArray>("category");
    QTest::newRow("human_eval") << 164 << QByteArray("code"); // the published set's size
    QTest::newRow("instructions") << 24 << QByteArray("instruction");
    QTest::newRow("questions") << 24 << QByteArray("qa");
    QTest::newRow("summaries") << 24 << QByteArray("summarization");
}

void TestTaskFiles::bundledSets()
{
    QFETCH(int, count);
    QFETCH(QByteArray, category);
    std::set<std::string> texts;
    for (const nlohmann::json& question : questions(QTest::currentDataTag())) {
        QVERIFY(question.at("question_id").is_number_integer());
        QCOMPARE(question.at("category").get<std::string>(), category.toStdString());
        QCOMPARE(question.at("turns").size(), std::size_t{1});
        const std::string text = must(recordText(question.dump(), "question"));
        QCOMPARE(text, question.at("turns").at(0).get<std::string>());
        texts.insert(text);
    }
    QCOMPARE(static_cast<int>(texts.size()), count);
}

void TestTaskFiles::idsAreDistinct()
{
    std::set<int> ids;
    std::size_t all = 0;
    for (const std::string& task : kBundled)
        for (const nlohmann::json& question : questions(task)) {
            ids.insert(question.at("question_id").get<int>());
            ++all;
        }
    QCOMPARE(ids.size(), all);
}

void TestTaskFiles::promptsKeepOffCalibration_data()
{
    QTest::addColumn<bool>("code");
    for (const std::string& task : kBundled)
        QTest::newRow(task.c_str()) << (task == "human_eval");
}

void TestTaskFiles::promptsKeepOffCalibration()
{
    QFETCH(bool, code);
    const Encoder encode = code ? wordsAndSigns() : shortTokens();
    TaskPrompts task{QTest::currentDataTag(), {}};
    for (const nlohmann::json& question : questions(task.name))
        task.prompts.push_back(encode(question.at("turns").at(0).get<std::string>()));
    const std::vector<std::string> warnings = overlapWarnings({task}, calibrationRows(encode));
    QVERIFY2(warnings.empty(), warnings.empty() ? "" : warnings.front().c_str());
}

QTEST_APPLESS_MAIN(TestTaskFiles)
#include "tst_task_files.moc"
