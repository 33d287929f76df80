// SPDX-License-Identifier: GPL-3.0-or-later
// Chat prompts through Python: refusals and protocol with a shell script in Python's place, ids
// with Transformers itself where MLA_PYTHON names it.
#include <filesystem>
#include <fstream>

#include "core/backends/chat_template.h"
#include "core/backends/python_environment.h"
#include "core/checkpoint/tokenizer.h"

#include <nlohmann/json.hpp>

#include <QTemporaryDir>
#include <QTest>

using namespace mla;
namespace fs = std::filesystem;

namespace
{

const fs::path kStories = fs::path(MLA_RESOURCES) / "demo" / "stories260K";
constexpr auto kTemplate = "{{ bos_token }}{% for m in messages %}[{{ m['role'] }}] "
                           "{{ m['content'] | trim }}\n{% endfor %}"
                           "{% if add_generation_prompt %}[assistant]{% endif %}";

void write(const fs::path& file, const std::string& text)
{
    std::ofstream(file) << text;
}

} // namespace

class TestChatTemplate : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase();
    void init();
    void fingerprintCoversTokenizerAndTemplate();
    void refusedWithoutEnvironment();
    void refusedWithoutTemplate();
    void answersBecomeIds();
    void badAnswers_data();
    void badAnswers();
    void cancelled();
    void asTransformersRenders();
    void smolLm2();
    void transformersNamesAFault();

private:
    fs::path model(const std::string& chatTemplate);
    std::string script(const std::string& body);
    [[nodiscard]] Result<ChatPrompts> render(const fs::path& folder, const std::string& python);
    std::unique_ptr<QTemporaryDir> m_dir;
    fs::path m_root;
    QByteArray m_python;
    JobContext m_job;
};

void TestChatTemplate::initTestCase()
{
    m_python = qgetenv("MLA_PYTHON");
    qunsetenv("MLA_PYTHON");
    qputenv("MLA_DRAFT_RESOURCES", MLA_RESOURCES);
}

void TestChatTemplate::init()
{
    m_dir = std::make_unique<QTemporaryDir>();
    m_root = m_dir->path().toStdString();
    qputenv("XDG_CACHE_HOME", m_dir->filePath("cache").toUtf8());
}

fs::path TestChatTemplate::model(const std::string& chatTemplate)
{
    const fs::path folder = m_root / "model";
    fs::create_directory(folder);
    for (const char* file : {"config.json", "tokenizer.json", "tokenizer_config.json"})
        fs::copy_file(kStories / file, folder / file, fs::copy_options::overwrite_existing);
    if (!chatTemplate.empty())
        write(folder / "chat_template.jinja", chatTemplate);
    return folder;
}

std::string TestChatTemplate::script(const std::string& body)
{
    const fs::path file = m_root / "python";
    write(file, "#!/bin/sh\n" + body);
    fs::permissions(file, fs::perms::owner_all);
    return file.string();
}

Result<ChatPrompts> TestChatTemplate::render(const fs::path& folder, const std::string& python)
{
    return renderChat(m_job, folder, {"Hello there", "  Größe 你好\n\nTwo lines  "}, python);
}

void TestChatTemplate::fingerprintCoversTokenizerAndTemplate()
{
    const fs::path folder = model("one");
    const std::string first = *chatFingerprint(folder);
    QCOMPARE(*chatFingerprint(folder), first);
    write(folder / "config.json", "{}"); // decides nothing here
    QCOMPARE(*chatFingerprint(folder), first);
    write(folder / "chat_template.jinja", "two");
    const std::string second = *chatFingerprint(folder);
    QVERIFY(second != first);
    write(folder / "tokenizer_config.json", "{}");
    QVERIFY(*chatFingerprint(folder) != second);
}

void TestChatTemplate::refusedWithoutEnvironment()
{
    const auto prompts = render(kStories, {});
    QVERIFY(!prompts.ok());
    QCOMPARE(prompts.error().code, ErrorCode::Usage);
    for (const char* part : {"--chat-template", "Transformers", "installer/setup.sh --python"})
        QVERIFY2(prompts.error().text().find(part) != std::string::npos,
                 prompts.error().text().c_str());
}

void TestChatTemplate::refusedWithoutTemplate()
{
    const auto prompts = render(kStories, script("read a; echo '{\"template\": false}'; cat\n"));
    QVERIFY(!prompts.ok());
    QCOMPARE(prompts.error().code, ErrorCode::Usage);
    QVERIFY(prompts.error().message.find(kStories.string()) != std::string::npos);
    QVERIFY(prompts.error().message.find("no chat template") != std::string::npos);
}

void TestChatTemplate::answersBecomeIds()
{
    const auto prompts = render(
        kStories, script("read a; echo '{\"template\": true, \"dated\": true, \"software\": "
                         "\"shell 1\"}'; n=4; while read a; do echo \"{\\\"ids\\\": [1, $n]}\"; "
                         "n=$((n+1)); done\n"));
    QVERIFY2(prompts.ok(), prompts.ok() ? "" : prompts.error().text().c_str());
    QCOMPARE(prompts->ids, (std::vector<std::vector<int>>{{1, 4}, {1, 5}}));
    QVERIFY(prompts->dated);
    QCOMPARE(prompts->software, std::string("shell 1"));
}

void TestChatTemplate::badAnswers_data()
{
    QTest::addColumn<QString>("answer");
    QTest::newRow("no ids") << R"({"ids": []})";
    QTest::newRow("none at all") << R"({})";
    QTest::newRow("not numbers") << R"({"ids": [1, "2"]})";
    QTest::newRow("not a list") << R"({"ids": 3})";
    QTest::newRow("not an object") << R"([1, 2])";
    QTest::newRow("not JSON") << "ids";
    QTest::newRow("an error") << R"({"error": "TemplateError: x", "kind": "TemplateError"})";
}

void TestChatTemplate::badAnswers()
{
    QFETCH(QString, answer);
    const auto prompts =
        render(kStories, script("read a; echo '{\"template\": true}'; read a; echo '" +
                                answer.toStdString() + "'; cat >/dev/null\n"));
    QVERIFY(!prompts.ok());
    QCOMPARE(prompts.error().code, ErrorCode::ComputeFailed);
}

void TestChatTemplate::cancelled()
{
    std::stop_source stop;
    stop.request_stop();
    JobContext job(stop.get_token(), {});
    const auto prompts = renderChat(job, kStories, {"x"}, script("sleep 60\n"));
    QVERIFY(!prompts.ok());
    QCOMPARE(prompts.error().code, ErrorCode::Cancelled);
}

/// The template's text written out by hand, tokenised without a post-processor of its own.
void TestChatTemplate::asTransformersRenders()
{
    if (m_python.isEmpty())
        QSKIP("MLA_PYTHON is not set: no Python with Transformers");
    const fs::path folder = model(kTemplate);
    const auto prompts = render(folder, m_python.toStdString());
    QVERIFY2(prompts.ok(), prompts.ok() ? "" : prompts.error().text().c_str());
    const Tokenizer tokenizer = *Tokenizer::open(folder);
    QCOMPARE(prompts->ids[0], tokenizer.encode("<s>[user] Hello there\n[assistant]", false));
    QCOMPARE(prompts->ids[1],
             tokenizer.encode("<s>[user] Größe 你好\n\nTwo lines\n[assistant]", false));
    QCOMPARE(prompts->ids[0].front(), 1);
    QVERIFY(!prompts->dated);
    QVERIFY(prompts->software.starts_with("transformers "));
}

/// Expected: tokenizer.apply_chat_template([{"role": "user", "content": "Hello"}],
/// add_generation_prompt=True) of Transformers 5.19.0.
void TestChatTemplate::smolLm2()
{
    const QByteArray folder = qgetenv("MLA_SMOLLM2_DIR");
    if (m_python.isEmpty() || folder.isEmpty())
        QSKIP("MLA_PYTHON and MLA_SMOLLM2_DIR are not both set");
    const auto prompts = renderChat(m_job, folder.toStdString(), {"Hello"}, m_python.toStdString());
    QVERIFY2(prompts.ok(), prompts.ok() ? "" : prompts.error().text().c_str());
    QCOMPARE(prompts->ids[0],
             (std::vector<int>{1,    9690,  198,   2683, 359, 253, 5356,  5646, 11173, 3365, 3511,
                               308,  34519, 28,    7018, 411, 407, 19712, 8182, 2,     198,  1,
                               4093, 198,   19556, 2,    198, 1,   520,   9531, 198}));
}

void TestChatTemplate::transformersNamesAFault()
{
    if (m_python.isEmpty())
        QSKIP("MLA_PYTHON is not set: no Python with Transformers");
    const auto plain = render(kStories, m_python.toStdString());
    QVERIFY(!plain.ok());
    QVERIFY(plain.error().message.find("no chat template") != std::string::npos);
    const auto broken =
        render(model("{{ raise_exception('roles must alternate') }}"), m_python.toStdString());
    QVERIFY(!broken.ok());
    QVERIFY2(broken.error().message.find("roles must alternate") != std::string::npos,
             broken.error().message.c_str());
}

QTEST_GUILESS_MAIN(TestChatTemplate)
#include "tst_chat_template.moc"
