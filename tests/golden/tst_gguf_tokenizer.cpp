// SPDX-License-Identifier: GPL-3.0-or-later
// The tokenizer of a GGUF file gives the ids of the tokenizer.json that the model had, and so does
// the tokenizer.json written from it. Expected ids are the `tokenizers` library's.
#include "core/checkpoint/token_pair.h"
#include "core/checkpoint/tokenizer.h"
#include "core/checkpoint/tokenizer_gguf.h"
#include "tests/support/gguf_tokenizer_file.h"
#include "tests/support/tokenizer_goldens.h"

#include <QTemporaryDir>
#include <QtTest>

using mla::Tokenizer;
using mla::test::compareWithGolden;
using mla::test::GgufMetadataFile;
using mla::test::goldenPath;
using mla::test::readJson;
using nlohmann::json;

namespace
{

constexpr int kNormal = 1, kControl = 3;

std::string key(const std::string& name)
{
    return "tokenizer.ggml." + name;
}

/// The small byte-level tokenizer under the pre-tokenizer `pre`.
GgufMetadataFile byteLevelFile(const std::string& pre)
{
    const json document = readJson(goldenPath("byte_level.json"));
    std::vector<std::string> tokens(document["model"]["vocab"].size());
    for (const auto& [token, id] : document["model"]["vocab"].items())
        tokens[id.get<std::size_t>()] = token;
    std::vector<std::int32_t> kinds(tokens.size(), kNormal);
    const auto bos = static_cast<std::uint32_t>(tokens.size());
    for (int i = 0; i < 2; ++i) {
        tokens.push_back(document["added_tokens"][static_cast<std::size_t>(i)]["content"]);
        kinds.push_back(kControl);
    }
    std::vector<std::string> merges;
    for (const json& pair : document["model"]["merges"])
        merges.push_back(pair[0].get<std::string>() + " " + pair[1].get<std::string>());
    GgufMetadataFile file;
    file.text(key("model"), "gpt2").texts(key("tokens"), tokens).integers(key("token_type"), kinds);
    file.texts(key("merges"), merges).integer(key("bos_token_id"), bos);
    file.boolean(key("add_bos_token"), true).text(key("pre"), pre);
    return file;
}

GgufMetadataFile scoredFile(const json& golden)
{
    GgufMetadataFile file;
    file.text(key("model"), "llama").texts(key("tokens"), golden["tokens"]);
    file.numbers(key("scores"), golden["scores"]).integers(key("token_type"), golden["token_type"]);
    file.integer(key("unknown_token_id"), 0).boolean(key("add_bos_token"), false);
    return file;
}

} // namespace

class GgufTokenizerTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void preTokenizers_data()
    {
        QTest::addColumn<int>("index");
        m_byteLevel = readJson(goldenPath("gguf_byte_level.json"));
        for (std::size_t i = 0; i < m_byteLevel["names"].size(); ++i)
            QTest::newRow(m_byteLevel["names"][i]["pre"].get<std::string>().c_str())
                << static_cast<int>(i);
    }

    void preTokenizers()
    {
        QFETCH(const int, index);
        const json& golden = m_byteLevel["names"][static_cast<std::size_t>(index)];
        compare(byteLevelFile(golden["pre"]), m_byteLevel["cases"], golden["answers"]);
    }

    void scores()
    {
        const json golden = readJson(goldenPath("gguf_llama.json"));
        compare(scoredFile(golden), readJson(goldenPath("corpus.json"))["cases"],
                golden["answers"]);
    }

    void bosAndEosAsTheFileSays()
    {
        json golden = readJson(goldenPath("gguf_llama.json"));
        GgufMetadataFile plain = scoredFile(golden);
        const auto without = open(plain);
        golden["token_type"][5] = 5; // a piece that only pads the table
        golden["tokens"][5] = "[PAD5]";
        GgufMetadataFile file;
        file.text(key("model"), "llama").texts(key("tokens"), golden["tokens"]);
        file.numbers(key("scores"), golden["scores"]);
        file.integers(key("token_type"), golden["token_type"]);
        file.integer(key("unknown_token_id"), 0).integer(key("bos_token_id"), 1);
        file.integer(key("eos_token_id"), 2).boolean(key("add_eos_token"), true);
        const auto tokenizer = open(file);
        auto ids = without->encode("the cat");
        QCOMPARE(tokenizer->encode("the cat", false), ids);
        ids.insert(ids.begin(), 1); // by default
        ids.push_back(2);
        QCOMPARE(tokenizer->encode("the cat"), ids);
        QVERIFY(tokenizer->isSpecial(1) && !tokenizer->tokenOf(5));
    }

    void longPiecesAreRefused()
    {
        GgufMetadataFile file;
        file.text(key("model"), "llama").integer(key("unknown_token_id"), 0);
        file.texts(key("tokens"), {"<unk>", std::string(1 << 20, 'a')});
        file.integers(key("token_type"), {2, kNormal}).numbers(key("scores"), {0, 0});
        const std::string path = m_directory.filePath("long.gguf").toStdString();
        file.write(path);
        const auto tokenizer = Tokenizer::open(path);
        QVERIFY(!tokenizer);
        const std::string text = tokenizer.error().text();
        QVERIFY2(text.find("tokenizer.ggml.tokens[1]") != std::string::npos, text.c_str());
    }

    void refusals_data()
    {
        QTest::addColumn<QString>("what");
        QTest::addColumn<QString>("named");
        QTest::newRow("model") << "model"
                               << "'bert'";
        QTest::newRow("pre") << "pre"
                             << "'k2-horizon'";
        QTest::newRow("no pre") << "no pre"
                                << "tokenizer.ggml.pre";
        QTest::newRow("types") << "types"
                               << "tokenizer.ggml.token_type";
        QTest::newRow("type") << "type"
                              << "tokenizer.ggml.token_type[0]";
        QTest::newRow("twice") << "twice"
                               << "tokenizer.ggml.tokens[1]";
        QTest::newRow("merge") << "merge"
                               << "tokenizer.ggml.merges[0]";
        QTest::newRow("bos") << "bos"
                             << "tokenizer.ggml.bos_token_id";
    }

    void refusals()
    {
        QFETCH(const QString, what);
        QFETCH(const QString, named);
        GgufMetadataFile file;
        file.text(key("model"), what == "model" ? "bert" : "gpt2");
        file.texts(key("tokens"), {"a", what == "twice" ? "a" : "b"});
        file.integers(key("token_type"), what == "types" ? std::vector<std::int32_t>{1}
                                                         : std::vector{what == "type" ? 9 : 1, 1});
        file.texts(key("merges"), {what == "merge" ? "ab" : "a b"});
        if (what != "no pre")
            file.text(key("pre"), what == "pre" ? "k2-horizon" : "gpt-2");
        file.boolean(key("add_bos_token"), true).integer(key("bos_token_id"), 7);
        const std::string path = m_directory.filePath("refused.gguf").toStdString();
        file.write(path);
        const auto tokenizer = Tokenizer::open(path);
        QVERIFY(!tokenizer);
        QCOMPARE(tokenizer.error().code, mla::ErrorCode::BadInput);
        const std::string text = tokenizer.error().text();
        QVERIFY2(text.find(named.toStdString()) != std::string::npos, text.c_str());
        QVERIFY2(text.find(path) != std::string::npos, text.c_str());
    }

private:
    mla::Result<Tokenizer> open(const GgufMetadataFile& file)
    {
        const std::string path = m_directory.filePath("model.gguf").toStdString();
        file.write(path);
        auto tokenizer = Tokenizer::open(path);
        if (!tokenizer)
            qFatal("%s", tokenizer.error().text().c_str());
        return tokenizer;
    }

    /// From the GGUF file, and from the tokenizer.json written from it.
    void compare(const GgufMetadataFile& file, const json& cases, const json& answers)
    {
        const auto tokenizer = open(file);
        std::string difference = compareWithGolden(*tokenizer, cases, answers);
        QVERIFY2(difference.empty(), difference.c_str());
        const auto gguf = mla::GgufFile::open(m_directory.filePath("model.gguf").toStdString());
        const QTemporaryDir written;
        const std::string path = written.filePath("tokenizer.json").toStdString();
        QVERIFY(mla::writeTokenizerJson(*gguf, path).ok());
        const auto again = Tokenizer::open(written.path().toStdString());
        QVERIFY2(again.ok(), again ? "" : again.error().text().c_str());
        difference = compareWithGolden(*again, cases, answers);
        QVERIFY2(difference.empty(), difference.c_str());
        const auto shared =
            mla::sharedTokens({*tokenizer, tokenizer->size()}, {*again, again->size()});
        QVERIFY(shared.ok() && shared->whole);
    }

    QTemporaryDir m_directory;
    json m_byteLevel;
};

QTEST_APPLESS_MAIN(GgufTokenizerTest)
#include "tst_gguf_tokenizer.moc"
