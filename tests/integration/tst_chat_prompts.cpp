// SPDX-License-Identifier: GPL-3.0-or-later
// Acceptance and generation on chat prompts: rendered once, kept in the study, told apart from
// plain prompts. A shell script stands in for Python.
#include <fstream>

#include "core/pipeline/pipeline.h"
#include "core/store/study.h"
#include "tests/support/numeric.h"

#include <QFile>
#include <QTemporaryDir>
#include <QTest>

#include "tests/support/cli_program.h"

using namespace mla;
using namespace mla::test;
namespace fs = std::filesystem;

class TestChatPrompts : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void init();
    void idsAreKeptInTheStudy();
    void plainAndChatRowsStandApart();
    void textIsCutBeforeTheTemplate();
    void refusedBeforeAnythingRuns();
    void idsOutsideTheVocabularyAreRefused();
    void commandLine();

private:
    [[nodiscard]] AcceptRequest request(bool chat, const fs::path& python);
    /// Answers ids 1, 403, then one more by the order of requests; logs the requests.
    fs::path fakePython(const std::string& ids = "1, 403, $n");
    std::string requests(); ///< that the script saw
    std::unique_ptr<QTemporaryDir> m_dir;
    fs::path m_root;
    JobContext m_job;
};

void TestChatPrompts::init()
{
    m_dir = std::make_unique<QTemporaryDir>();
    m_root = m_dir->path().toStdString();
    qunsetenv("MLA_PYTHON");
    qputenv("XDG_CACHE_HOME", m_dir->filePath("cache").toUtf8());
    qputenv("MLA_DRAFT_RESOURCES", MLA_RESOURCES);
    std::ofstream(m_root / "tales.jsonl") << R"({"prompt": "Tell me of a dog."})" << '\n'
                                          << R"({"prompt": "Tell me of a cat."})" << '\n'
                                          << R"({"prompt": "Tell me of a dog."})" << '\n';
}

fs::path TestChatPrompts::fakePython(const std::string& ids)
{
    const fs::path file = m_root / "python";
    std::ofstream(file) << "#!/bin/sh\nlog='" << (m_root / "requests").string()
                        << "'\nread a; echo \"$a\" >>\"$log\"\n"
                           "echo '{\"template\": true, \"software\": \"shell 1\"}'\nn=410\n"
                           "while read a; do echo \"$a\" >>\"$log\"; echo \"{\\\"ids\\\": ["
                        << ids << "]}\"; n=$((n+1)); done\n";
    fs::permissions(file, fs::perms::owner_all);
    return file;
}

std::string TestChatPrompts::requests()
{
    std::ifstream in(m_root / "requests");
    return {std::istreambuf_iterator<char>(in), {}};
}

AcceptRequest TestChatPrompts::request(bool chat, const fs::path& python)
{
    AcceptRequest request;
    request.target = request.draft = stories();
    request.settings.tasks = {m_root / "tales.jsonl"};
    request.settings.maxNewTokens = 8;
    request.settings.chatTemplate = chat;
    request.compute.device = "cpu";
    request.compute.python = python.string();
    request.study = m_root / "study.h5";
    return request;
}

void TestChatPrompts::idsAreKeptInTheStudy()
{
    const fs::path python = fakePython();
    const AcceptOutcome first = must(measureAcceptance(m_job, request(true, python)));
    QCOMPARE(first.pooled.metrics.acceptanceRate, 1.0);
    const std::string asked = requests();
    QCOMPARE(std::count(asked.begin(), asked.end(), '\n'), 3); // the tokenizer, two texts
    const StudyData study = must(loadStudy(m_root / "study.h5"));
    QCOMPARE(study.chatPrompts.size(), std::size_t{1});
    const ChatPromptRecord& record = study.chatPrompts[0];
    QCOMPARE(record.prompts.size(), std::size_t{2});
    QCOMPARE(record.checkpoint, std::string("stories260K"));
    QCOMPARE(record.software, std::string("shell 1"));
    QCOMPARE(record.offsets, (std::vector<std::int32_t>{0, 3, 6}));
    QCOMPARE(record.ids, (std::vector<std::int32_t>{1, 403, 410, 1, 403, 411}));
    // The second run needs no Python at all.
    const AcceptOutcome again = must(measureAcceptance(m_job, request(true, {})));
    QCOMPARE(again.pooled.metrics.steps, first.pooled.metrics.steps);
    QCOMPARE(requests(), asked);
    // Of a task with one more text, that one alone is rendered.
    std::ofstream(m_root / "tales.jsonl", std::ios::app) << R"({"prompt": "More"})" << '\n';
    (void)must(measureAcceptance(m_job, request(true, python)));
    QVERIFY(requests().substr(asked.size()).find("dog") == std::string::npos);
    QCOMPARE(must(loadStudy(m_root / "study.h5")).chatPrompts[0].prompts.size(), std::size_t{3});
}

void TestChatPrompts::plainAndChatRowsStandApart()
{
    (void)must(measureAcceptance(m_job, request(true, fakePython())));
    (void)must(measureAcceptance(m_job, request(false, {})));
    const StudyData study = must(loadStudy(m_root / "study.h5"));
    QCOMPARE(study.acceptance.size(), std::size_t{2});
    QVERIFY(study.acceptance[0].chatTemplate && !study.acceptance[1].chatTemplate);
    QVERIFY(study.acceptance[0].settingsJson.find("\"chat_template\":true") != std::string::npos);
}

void TestChatPrompts::textIsCutBeforeTheTemplate()
{
    AcceptRequest cut = request(true, fakePython());
    cut.settings.maxPromptTokens = 3;
    (void)must(measureAcceptance(m_job, cut));
    const std::string asked = requests();
    QVERIFY(asked.find("Tell") != std::string::npos);
    QVERIFY2(asked.find("dog") == std::string::npos, asked.c_str());
}

void TestChatPrompts::refusedBeforeAnythingRuns()
{
    const auto refused = measureAcceptance(m_job, request(true, {}));
    QVERIFY(!refused.ok());
    QCOMPARE(refused.error().code, ErrorCode::Usage);
    QVERIFY(refused.error().text().find("installer/setup.sh --python") != std::string::npos);
    StudyPlan plan;
    plan.checkpoint = stories();
    plan.study = m_root / "plan.h5";
    plan.drafts = m_root / "drafts";
    ConvertSettings conversion;
    conversion.kvLoraRank = 28;
    conversion.qkRopeHeadDim = 4;
    plan.conversions = {conversion};
    plan.accept = request(true, {}).settings;
    const auto study = runStudy(m_job, plan);
    QVERIFY(!study.ok());
    QCOMPARE(study.error().code, ErrorCode::Usage);
    QVERIFY(!fs::exists(plan.drafts));
}

void TestChatPrompts::idsOutsideTheVocabularyAreRefused()
{
    const auto refused = measureAcceptance(m_job, request(true, fakePython("1, 9000")));
    QVERIFY(!refused.ok());
    QCOMPARE(refused.error().code, ErrorCode::BadInput);
    QVERIFY2(refused.error().message.find("9000") != std::string::npos,
             refused.error().message.c_str());
}

void TestChatPrompts::commandLine()
{
    const QString python = QString::fromStdString(fakePython().string());
    const QStringList accept = {"accept",
                                "--target",
                                demoCheckpoint(),
                                "--draft",
                                demoCheckpoint(),
                                "--tasks",
                                m_dir->filePath("tales.jsonl"),
                                "--max-new-tokens",
                                "8",
                                "--json",
                                "--chat-template"};
    const CliResult refused = runCli(accept);
    QCOMPARE(refused.exitCode, 2);
    QVERIFY2(refused.error().value("message").toString().contains("Python"), refused.text());
    const CliResult measured = runCli(accept + QStringList{"--python", python});
    QVERIFY2(measured.exitCode == 0, measured.text());
    QVERIFY(measured.json().value("chat_template").toBool());
    const QStringList generate = {"generate", demoCheckpoint(), "-n", "4", "--json"};
    const CliResult direct = runCli(generate + QStringList{"--ids", "1,403,410"});
    const CliResult chat =
        runCli(generate + QStringList{"--prompt", "Hello", "--chat-template", "--python", python});
    QVERIFY2(chat.exitCode == 0, chat.text());
    QCOMPARE(chat.json().value("ids").toArray(), direct.json().value("ids").toArray());
    QCOMPARE(runCli(generate + QStringList{"--ids", "1", "--chat-template"}).exitCode, 2);
}

QTEST_GUILESS_MAIN(TestChatPrompts)
#include "tst_chat_prompts.moc"
