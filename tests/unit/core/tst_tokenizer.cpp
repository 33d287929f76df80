// SPDX-License-Identifier: GPL-3.0-or-later
// Hand-made tokenizers whose ids follow from the rules on paper.
#include "core/checkpoint/tokenizer.h"

#include <ctime>
#include <fstream>

#include <nlohmann/json.hpp>

#include <QTemporaryDir>
#include <QtTest>

using mla::ErrorCode;
using mla::Tokenizer;
using nlohmann::json;
using Ids = std::vector<int>;

namespace
{

/// A vocabulary a0 b1 c2 bc3 abc4, one merge.
json tiny()
{
    return json::parse(R"({"version": "1.0", "added_tokens": [], "model": {"type": "BPE",
        "vocab": {"a": 0, "b": 1, "c": 2, "bc": 3, "abc": 4}, "merges": [["b", "c"]]}})");
}

json added(const char* content, int id)
{
    return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
            {"rstrip", false}, {"normalized", false}, {"special", false}};
}

} // namespace

class TokenizerTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void mergesAsPairsAndStrings();
    void ignoreMerges();
    void rankDecidesBeforePosition();
    void repeatedKeyTakesTheLast();
    void unknownTokens();
    void byteFallback();
    void addedTokens();
    void templateAndSkippedTokens();
    void decodeRefusesForeignIds();
    void tableAccess();
    void opensADirectory();
    void invalidUtf8IsReplaced();
    void regexClasses_data();
    void regexClasses();
    void longRepeatsAreFast();

private:
    std::string write(const std::string& text)
    {
        const std::string path =
            m_directory.filePath(QString("t%1.json").arg(m_files++)).toStdString();
        std::ofstream(path, std::ios::binary) << text;
        return path;
    }
    mla::Result<Tokenizer> open(const json& document)
    {
        return Tokenizer::open(write(document.dump(-1, ' ', true)));
    }
    Ids encode(const json& document, const std::string& text, bool special = true)
    {
        const auto tokenizer = open(document);
        if (!tokenizer)
            qFatal("%s", tokenizer.error().text().c_str());
        return tokenizer->encode(text, special);
    }

    QTemporaryDir m_directory;
    int m_files = 0;
};

void TokenizerTest::mergesAsPairsAndStrings()
{
    json document = tiny();
    QCOMPARE(encode(document, "abc"), (Ids{0, 3}));
    document["model"]["merges"] = json::array({"#version: 0.2", "b c"});
    QCOMPARE(encode(document, "abc"), (Ids{0, 3}));
    document["model"]["merges"] = json::array();
    QCOMPARE(encode(document, "abc"), (Ids{0, 1, 2}));
    document["model"].erase("type"); // as early files had it
    QCOMPARE(encode(document, ""), Ids{});
}

void TokenizerTest::ignoreMerges()
{
    json document = tiny();
    document["model"]["ignore_merges"] = true;
    QCOMPARE(encode(document, "abc"), (Ids{4}));
    QCOMPARE(encode(document, "abcabc"), (Ids{0, 3, 0, 3}));
}

void TokenizerTest::rankDecidesBeforePosition()
{
    json document = tiny();
    document["model"]["vocab"] = {{"a", 0}, {"b", 1}, {"c", 2}, {"bc", 3}, {"ab", 4}, {"aa", 5}};
    document["model"]["merges"] = {"b c", "a b", "a a"};
    QCOMPARE(encode(document, "abc"), (Ids{0, 3})); // rank 0 wins over the leftmost pair
    QCOMPARE(encode(document, "aaa"), (Ids{5, 0})); // equal rank: leftmost first
    QCOMPARE(encode(document, "aab"), (Ids{0, 4}));
}

void TokenizerTest::repeatedKeyTakesTheLast()
{
    const auto tokenizer =
        Tokenizer::open(write(R"({"model": {"vocab": {"a": 0, "b": 1, "a": 2}, "merges": []}})"));
    QVERIFY(tokenizer.ok());
    QCOMPARE(tokenizer->encode("ab"), (Ids{2, 1}));
}

void TokenizerTest::unknownTokens()
{
    json document = tiny();
    QCOMPARE(encode(document, "xaxyb"), (Ids{0, 1})); // none is named: dropped
    document["model"]["vocab"]["<unk>"] = 5;
    document["model"]["unk_token"] = "<unk>";
    QCOMPARE(encode(document, "xaxyb"), (Ids{5, 0, 5, 5, 1}));
    document["model"]["fuse_unk"] = true;
    QCOMPARE(encode(document, "xaxyb"), (Ids{5, 0, 5, 1}));
}

void TokenizerTest::byteFallback()
{
    json document = tiny();
    json& model = document["model"];
    model["byte_fallback"] = true;
    model["vocab"].update({{"<unk>", 5}, {"<0xC3>", 6}, {"<0xA9>", 7}});
    model["unk_token"] = "<unk>";
    document["decoder"] = {{"type", "Sequence"},
                           {"decoders", {{{"type", "ByteFallback"}}, {{"type", "Fuse"}}}}};
    QCOMPARE(encode(document, "aéb"), (Ids{0, 6, 7, 1})); // C3 A9
    QCOMPARE(encode(document, "è"), (Ids{5}));            // C3 A8: a byte token is missing
    const auto tokenizer = open(document);
    QCOMPARE(tokenizer->decode({0, 6, 7, 1}).value(), std::string("aéb"));
    QCOMPARE(tokenizer->decode({6, 0}).value(), std::string("\uFFFDa"));
}

void TokenizerTest::addedTokens()
{
    json document = tiny();
    json& tokens = document["added_tokens"];
    tokens = json::array({added("<s>", 5), added("<s>>", 6), added("bc", 3)});
    QCOMPARE(encode(document, "a<s>>b<s>c"), (Ids{0, 6, 1, 5, 2})); // longest at a place
    QCOMPARE(encode(document, "abc"), (Ids{0, 3}));
    document["model"]["vocab"][" "] = 5;
    tokens = json::array({added("c", 2)});
    QCOMPARE(encode(document, "a c b"), (Ids{0, 5, 2, 5, 1}));
    tokens[0]["lstrip"] = true;
    QCOMPARE(encode(document, "a c b"), (Ids{0, 2, 5, 1}));
    tokens[0]["rstrip"] = true;
    QCOMPARE(encode(document, "a c b"), (Ids{0, 2, 1}));
    document["model"]["merges"] = json::array();
    tokens = json::array({added("bc", 3)});
    tokens[0]["single_word"] = true;
    QCOMPARE(encode(document, "abc bc"), (Ids{0, 1, 2, 5, 3}));
    document["normalizer"] = {{"type", "Lowercase"}};
    tokens = json::array({added("BC", 6)});
    QCOMPARE(encode(document, "Abc BC"), (Ids{0, 1, 2, 5, 6}));
    tokens[0]["normalized"] = true; // then it is "bc" that is looked for
    QCOMPARE(encode(document, "Abc BC"), (Ids{0, 6, 5, 6}));
}

void TokenizerTest::templateAndSkippedTokens()
{
    json document = tiny();
    document["added_tokens"] = json::array({added("<s>", 5), added("</s>", 6)});
    document["added_tokens"][0]["special"] = true;
    const auto special = [](const char* id) {
        return json{{"SpecialToken", {{"id", id}, {"type_id", 0}}}};
    };
    const json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
    document["post_processor"] = {
        {"type", "TemplateProcessing"},
        {"single", {special("<s>"), text, special("</s>")}},
        {"pair", json::array()},
        {"special_tokens",
         {{"<s>", {{"id", "<s>"}, {"ids", {5}}, {"tokens", {"<s>"}}}},
          {"</s>", {{"id", "</s>"}, {"ids", {6, 6}}, {"tokens", {"</s>", "</s>"}}}}}}};
    document["decoder"] = {{"type", "Fuse"}};
    const auto tokenizer = open(document);
    QVERIFY2(tokenizer.ok(), tokenizer ? "" : tokenizer.error().text().c_str());
    QCOMPARE(tokenizer->encode("ab"), (Ids{5, 0, 1, 6, 6}));
    QCOMPARE(tokenizer->encode("ab", false), (Ids{0, 1}));
    QCOMPARE(tokenizer->encode(""), (Ids{5, 6, 6}));
    QCOMPARE(tokenizer->decode({5, 0, 1, 6}).value(), std::string("<s>ab</s>"));
    QCOMPARE(tokenizer->decode({5, 0, 1, 6}, true).value(), std::string("ab</s>"));
    QVERIFY(tokenizer->isSpecial(5) && !tokenizer->isSpecial(6) && !tokenizer->isSpecial(0));
}

void TokenizerTest::decodeRefusesForeignIds()
{
    const auto tokenizer = open(tiny());
    QCOMPARE(tokenizer->decode({0, 3}).value(),
             std::string("a bc")); // no decoder: joined by spaces
    for (const int id : {5, -1, 1 << 30}) {
        const auto decoded = tokenizer->decode({0, id});
        QVERIFY(!decoded);
        QVERIFY(decoded.error().message.find(std::to_string(id)) != std::string::npos);
    }
}

void TokenizerTest::tableAccess()
{
    json document = tiny();
    document["model"]["vocab"]["far"] = 9;
    document["added_tokens"] =
        json::array({added("<x>", 6)}); // the next id is the number of entries
    const auto tokenizer = open(document);
    QVERIFY2(tokenizer.ok(), tokenizer ? "" : tokenizer.error().text().c_str());
    QCOMPARE(tokenizer->size(), 10);
    QCOMPARE(tokenizer->tokenOf(3).value(), std::string("bc"));
    QCOMPARE(tokenizer->tokenOf(6).value(), std::string("<x>"));
    QVERIFY(!tokenizer->tokenOf(7) && !tokenizer->tokenOf(-1) && !tokenizer->tokenOf(10));
    QCOMPARE(tokenizer->idOf("<x>").value(), 6);
    QCOMPARE(tokenizer->idOf("abc").value(), 4);
    QVERIFY(!tokenizer->idOf("no"));
}

void TokenizerTest::opensADirectory()
{
    const QTemporaryDir directory;
    const auto missing = Tokenizer::open(directory.path().toStdString());
    QVERIFY(!missing);
    QVERIFY(missing.error().text().find("tokenizer.json") != std::string::npos);
    std::ofstream(directory.filePath("tokenizer.json").toStdString()) << tiny();
    QVERIFY(Tokenizer::open(directory.path().toStdString()).ok());
}

void TokenizerTest::invalidUtf8IsReplaced()
{
    json document = tiny();
    document["model"]["vocab"]["\uFFFD"] = 5;
    QCOMPARE(encode(document, "a\xFF"
                              "b"),
             (Ids{0, 5, 1}));
    QCOMPARE(encode(document, "\xE2\x82"
                              "a"),
             (Ids{5, 0})); // one maximal part
    QCOMPARE(encode(document, "\xED\xA0\x80"
                              "a"),
             (Ids{5, 5, 5, 0})); // a surrogate is three
    QCOMPARE(encode(document, "a\xF0\x9F"), (Ids{0, 5}));
}

void TokenizerTest::regexClasses_data()
{
    QTest::addColumn<QString>("pattern");
    QTest::addColumn<QString>("removed");
    QTest::newRow("letter of Unicode 16") << "\\p{L}" << QString::fromUcs4(U"a\u1C89\U000105C0");
    QTest::newRow("number of Unicode 16") << "\\p{N}" << QString::fromUcs4(U"1\u00BD\U0001CCF0");
    QTest::newRow("white space") << "\\s" << QString::fromUcs4(U" \t\u0085\u00A0\u3000\u2028");
    QTest::newRow("no white space") << "\\S" << QString::fromUcs4(U"a\u180E\u200B");
    QTest::newRow("\\S in a class") << "[\\S]" << QString::fromUcs4(U"a\u180E");
    QTest::newRow("word") << "\\w" << QString::fromUcs4(U"a_1\u0301\u00B2\u216B");
    QTest::newRow("caseless") << "(?i:[sk])" << QString::fromUcs4(U"sSkK\u017F\u212A");
    QTest::newRow("Han") << "\\p{Han}" << QString::fromUcs4(U"\u4E00\u3005\U00031350");
    QTest::newRow("code points") << "\\u0041|\\x42|\\x{43}" << QStringLiteral("ABC");
    QTest::newRow("vertical tab") << "\\v" << QStringLiteral("\v");
}

void TokenizerTest::regexClasses()
{
    QFETCH(const QString, pattern);
    QFETCH(const QString, removed);
    json document = tiny();
    document["normalizer"] = {
        {"type", "Replace"}, {"pattern", {{"Regex", pattern.toStdString()}}}, {"content", "b"}};
    const auto count = static_cast<std::size_t>(removed.toUcs4().size());
    QCOMPARE(encode(document, removed.toStdString()), Ids(count, 1));
}

void TokenizerTest::longRepeatsAreFast()
{
    json document = tiny();
    json& vocab = document["model"]["vocab"];
    json& merges = document["model"]["merges"];
    std::string token = "a";
    for (int id = 5; id < 12; ++id) { // aa, aaaa, … 128 times a
        merges.push_back(token + " " + token);
        token += token;
        vocab[token] = id;
    }
    const auto tokenizer = open(document);
    const std::clock_t start = std::clock(); // processor time: other tests may run beside this one
    const Ids ids = tokenizer->encode(std::string(160000, 'a'));
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    QCOMPARE(ids, Ids(1250, 11));
    QVERIFY2(seconds < 5, "merging is not n log n"); // 0.05 s; a quadratic merge takes minutes
}

QTEST_APPLESS_MAIN(TokenizerTest)
#include "tst_tokenizer.moc"
