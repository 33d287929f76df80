// SPDX-License-Identifier: GPL-3.0-or-later
// Damaged and unsupported tokenizer.model directories are refused with the file and the place
// named. Messages of a protocol buffer may be appended to a file: the last value counts, repeated
// fields add up.
#include "core/checkpoint/tokenizer.h"

#include <ctime>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include <QTemporaryDir>
#include <QtTest>

using mla::ErrorCode;
using mla::Tokenizer;

namespace
{

std::string goldenModel(const char* name)
{
    std::ifstream file(std::string(MLA_TEST_DATA "/golden/tokenizer/") + name, std::ios::binary);
    std::stringstream content;
    content << file.rdbuf();
    return content.str();
}

/// Field `number` with `content` of less than 128 bytes.
std::string field(int number, const std::string& content)
{
    return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(content.size())} +
           content;
}

/// ModelProto.pieces: text, and the four bytes of a score.
std::string piece(const std::string& text, const std::string& score)
{
    return field(1, field(1, text) + "\x15" + score);
}

} // namespace

class SentencePieceRefusalsTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void models_data();
    void models();
    void companions_data();
    void companions();
    void everyTruncationIsAnswered();
    void damageIsAnswered();

private:
    mla::Result<Tokenizer> open(const std::string& model)
    {
        const std::filesystem::path folder = m_directory.path().toStdString();
        std::ofstream(folder / "tokenizer.model", std::ios::binary) << model;
        return Tokenizer::open(folder);
    }
    void verifyRefused(const mla::Result<Tokenizer>& tokenizer, const QString& file,
                       const QString& named)
    {
        QVERIFY(!tokenizer);
        QCOMPARE(tokenizer.error().code, ErrorCode::BadInput);
        const std::string text = tokenizer.error().text();
        QVERIFY2(text.find(named.toStdString()) != std::string::npos, text.c_str());
        QVERIFY2(text.find(m_directory.filePath(file).toStdString()) != std::string::npos,
                 text.c_str());
    }

    QTemporaryDir m_directory;
};

void SentencePieceRefusalsTest::models_data()
{
    QTest::addColumn<QByteArray>("model");
    QTest::addColumn<QString>("named");
    const auto row = [](const char* name, const std::string& model, const char* named) {
        QTest::newRow(name) << QByteArray::fromStdString(model) << named;
    };
    const std::string good = goldenModel("sp_bpe.model");
    const std::string zero(4, '\0'), infinity("\0\0\x80\x7F", 4);
    row("empty", "", "no pieces");
    row("text", "not a model", "sentencepiece");
    row("JSON", "{}", "sentencepiece");
    row("length beyond the end", good + "\x0A\x7F", "sentencepiece");
    row("endless number", good + std::string(11, '\xFF'), "sentencepiece");
    row("words", good + field(2, "\x18\x03"), "WORD");
    row("characters", good + field(2, "\x18\x04"), "model_type");
    row("empty piece", good + piece("", zero), "pieces[440].piece");
    row("NUL in a piece", good + piece(std::string("a\0b", 3), zero), "pieces[440].piece");
    row("no UTF-8", good + piece("\xFF", zero), "pieces[440].piece");
    row("infinite score", good + piece("new", infinity), "pieces[440].score");
    row("unknown type", good + field(1, field(1, "new") + "\x18\x09"), "pieces[440].type");
    row("piece twice", good + piece("<s>", zero), "<s>");
    row("two unknowns", good + field(1, field(1, "new") + "\x18\x02"), "unk");
    row("mapping without text", good + field(3, field(2, std::string("\0\4\0\0", 4))), "charsmap");
    row("mapping too short", good + field(3, field(2, "x")), "charsmap");
    // One block of 256 units whose root points outside it.
    std::string units(1024, '\0');
    units[2] = '\x10';
    const std::string mapping = std::string("\0\4\0\0", 4) + units + std::string("a\0", 2);
    const std::string inner = std::string("\x12\x86\x08", 3) + mapping; // 1,030 bytes
    row("mapping that points outside", good + std::string("\x1A\x89\x08", 3) + inner, "charsmap");
}

void SentencePieceRefusalsTest::models()
{
    QFETCH(const QByteArray, model);
    QFETCH(const QString, named);
    verifyRefused(open(model.toStdString()), "tokenizer.model", named);
}

void SentencePieceRefusalsTest::companions_data()
{
    QTest::addColumn<QString>("file");
    QTest::addColumn<QString>("content");
    QTest::addColumn<QString>("named");
    const auto row = [](const char* name, const char* file, const char* content,
                        const char* named) { QTest::newRow(name) << file << content << named; };
    const char* config = "tokenizer_config.json";
    row("class", config, R"({"tokenizer_class": "GemmaTokenizer"})", "GemmaTokenizer");
    row("no object", config, "[]", "object");
    row("no JSON", config, "{", "tokenizer_config.json");
    row("flag", config, R"({"legacy": 1})", "legacy");
    row("no BOS", config, R"({"bos_token": null})", "bos_token");
    row("no EOS", config, R"({"eos_token": null, "add_eos_token": true})", "eos_token");
    row("no unknown", config, R"({"unk_token": null, "legacy": false})", "unk_token");
    row("token", config, R"({"pad_token": 5})", "pad_token");
    row("token without content", config, R"({"pad_token": {}})", "pad_token.content");
    row("list", config, R"({"additional_special_tokens": "<x>"})", "additional_special_tokens");
    row("decoder", config, R"({"added_tokens_decoder": []})", "added_tokens_decoder");
    row("id", config, R"({"added_tokens_decoder": {"x": {"content": "a"}}})", "'x'");
    row("huge id", config, R"({"added_tokens_decoder": {"2147483647": "a"}})", "2147483647");
    row("token twice", config, R"({"added_tokens_decoder": {"500": "a", "501": "a"}})", "'a'");
    row("negative id", "added_tokens.json", R"({"<x>": -1})", "-1");
    row("text for an id", "added_tokens.json", R"({"<x>": "5"})", "'<x>'");
}

void SentencePieceRefusalsTest::companions()
{
    QFETCH(const QString, file);
    QFETCH(const QString, content);
    QFETCH(const QString, named);
    const std::string path = m_directory.filePath(file).toStdString();
    std::ofstream(path) << content.toStdString();
    verifyRefused(open(goldenModel("sp_bpe.model")), file, named);
    std::filesystem::remove(path);
}

/// A cut between two fields leaves a smaller model, every other one an error.
void SentencePieceRefusalsTest::everyTruncationIsAnswered()
{
    const std::string model = goldenModel("sp_unigram.model");
    int refused = 0, cuts = 0;
    for (std::size_t length = 0; length < model.size(); length += 13, ++cuts) {
        const auto tokenizer = open(model.substr(0, length));
        refused += tokenizer ? 0 : 1;
        if (tokenizer)
            QVERIFY(tokenizer->decode(tokenizer->encode("the cat \u00C5")).ok());
    }
    QVERIFY(refused > cuts * 3 / 4);
}

void SentencePieceRefusalsTest::damageIsAnswered()
{
    std::mt19937 random(20240607);
    for (const char* name : {"sp_bpe.model", "sp_unigram.model"}) {
        const std::string model = goldenModel(name);
        for (int i = 0; i < 300; ++i) {
            std::string damaged = model;
            for (unsigned n = random() % 4 + 1; n > 0; --n)
                damaged[random() % damaged.size()] = static_cast<char>(random());
            const std::clock_t start = std::clock();
            if (const auto tokenizer = open(damaged))
                for (const char* text : {"the cat sat", "A\u030A \u00C5 \uFB01 \u2160 [X]", "\xFF"})
                    QVERIFY(tokenizer->decode(tokenizer->encode(text)).ok());
            QVERIFY(std::clock() - start < CLOCKS_PER_SEC);
        }
    }
}

QTEST_APPLESS_MAIN(SentencePieceRefusalsTest)
#include "tst_sentencepiece_refusals.moc"
