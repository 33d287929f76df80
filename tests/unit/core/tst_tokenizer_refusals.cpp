// SPDX-License-Identifier: GPL-3.0-or-later
// What a tokenizer.json asks for and we do not do, and files that are not what they must be:
// both are refused with the file and the key named.
#include "core/checkpoint/tokenizer.h"

#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include <QTemporaryDir>
#include <QtTest>

using mla::ErrorCode;
using mla::Tokenizer;
using nlohmann::json;

namespace
{

json tiny()
{
    return json::parse(R"({"version": "1.0", "added_tokens": [], "model": {"type": "BPE",
        "vocab": {"a": 0, "b": 1, "c": 2, "bc": 3, "abc": 4}, "merges": [["b", "c"]]}})");
}

} // namespace

class TokenizerRefusalsTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void refusals_data();
    void refusals();
    void malformed_data();
    void malformed();
    void everyTruncationIsRefused();

private:
    std::string write(const std::string& text)
    {
        const std::string path =
            m_directory.filePath(QString("t%1.json").arg(m_files++)).toStdString();
        std::ofstream(path, std::ios::binary) << text;
        return path;
    }

    QTemporaryDir m_directory;
    int m_files = 0;
};

void TokenizerRefusalsTest::refusals_data()
{
    QTest::addColumn<QString>("patch");
    QTest::addColumn<QString>("named");
    const auto row = [](const char* name, const char* patch, const char* named) {
        QTest::newRow(name) << patch << named;
    };
    row("model", R"({"model": {"type": "Unigram"}})", "Unigram");
    row("dropout", R"({"model": {"dropout": 0.1}})", "dropout");
    row("prefix", R"({"model": {"continuing_subword_prefix": "##"}})", "continuing_subword_prefix");
    row("suffix", R"({"model": {"end_of_word_suffix": "</w>"}})", "end_of_word_suffix");
    row("unk", R"({"model": {"unk_token": "<none>"}})", "<none>");
    row("normalizer", R"({"normalizer": {"type": "Nmt"}})", "Nmt");
    row("nested",
        R"({"normalizer": {"type": "Sequence", "normalizers": [{"type": "Precompiled"}]}})",
        "normalizer.normalizers[0]");
    row("pre-tokenizer", R"({"pre_tokenizer": {"type": "UnicodeScripts"}})", "UnicodeScripts");
    row("post-processor", R"({"post_processor": {"type": "BertProcessing"}})", "BertProcessing");
    row("decoder", R"({"decoder": {"type": "WordPiece"}})", "WordPiece");
    row("truncation", R"({"truncation": {"max_length": 5}})", "truncation");
    row("padding", R"({"padding": {}})", "padding");
    row("version", R"({"version": "2.0"})", "2.0");
    row("scheme", R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "_",
        "add_prefix_space": false}})",
        "prepend_scheme");
    row("template", R"({"post_processor": {"type": "TemplateProcessing",
        "single": [{"Sequence": {"id": "B", "type_id": 0}}], "special_tokens": {}}})",
        "'B'");
    for (const char* pattern :
         {"\\bx",       "a\\1",      "[[:alpha:]]", "[a&&b]", "(?<n>a)", "a{2}+", "\\h",
          "\\R",        "(?i:stop)", "(?i:\\p{L})", "[\\W]",  "a(?i)b",  "(a+)+", "\\p{Cn}",
          "\\p{Greek}", "(",         "a)",          "[a",     "*a",      "a**",   "\\",
          "x{",         "\\x80",     "(?#c)",       "[z-a]",  "(?<=a+)b"}) {
        const json patch = {
            {"normalizer",
             {{"type", "Replace"}, {"pattern", {{"Regex", pattern}}}, {"content", ""}}}};
        QTest::newRow(pattern) << QString::fromStdString(patch.dump())
                               << QString("normalizer.pattern.Regex");
    }
}

void TokenizerRefusalsTest::refusals()
{
    QFETCH(const QString, patch);
    QFETCH(const QString, named);
    json document = tiny();
    document.merge_patch(json::parse(patch.toStdString()));
    const std::string path = write(document.dump());
    const auto tokenizer = Tokenizer::open(path);
    QVERIFY(!tokenizer);
    QCOMPARE(tokenizer.error().code, ErrorCode::BadInput);
    const std::string text = tokenizer.error().text();
    QVERIFY2(text.find(named.toStdString()) != std::string::npos, text.c_str());
    QVERIFY2(text.find(path) != std::string::npos, text.c_str());
}

void TokenizerRefusalsTest::malformed_data()
{
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("named");
    const auto row = [](const char* name, const QByteArray& text, const char* named) {
        QTest::newRow(name) << text << named;
    };
    const auto model = [](const char* vocab, const char* merges) {
        return QByteArray("{\"model\": {\"vocab\": ") + vocab + ", \"merges\": " + merges + "}}";
    };
    row("empty", "", "JSON");
    row("array", "[]", "object");
    row("no model", "{}", "model");
    row("model is a list", R"({"model": []})", "model");
    row("no vocab", R"({"model": {"merges": []}})", "model.vocab");
    row("no merges", R"({"model": {"vocab": {}}})", "model.merges");
    row("vocab is a list", model("[]", "[]"), "model.vocab");
    row("id is a string", model(R"({"a": "0"})", "[]"), "'a'");
    row("id is negative", model(R"({"a": -1})", "[]"), "'a'");
    row("id is a fraction", model(R"({"a": 0.5})", "[]"), "'a'");
    row("id is huge", model(R"({"a": 99999999999999999999})", "[]"), "'a'");
    row("id is too large", model(R"({"a": 2147483647})", "[]"), "2147483647");
    row("id twice", model(R"({"a": 0, "b": 0})", "[]"), "'b'");
    row("merge of strangers", model(R"({"a": 0})", R"([["a", "z"]])"), "'z'");
    row("merge result missing", model(R"({"a": 0, "b": 1})", R"(["a b"])"), "'ab'");
    row("merge of one", model(R"({"a": 0})", R"([["a"]])"), "model.merges[0]");
    row("merge of three", model(R"({"a": 0})", R"([["a", "a", "a"]])"), "model.merges[0]");
    row("merge line", model(R"({"a": 0})", R"(["a"])"), "model.merges[0]");
    row("merge number", model(R"({"a": 0})", "[5]"), "model.merges[0]");
    row("merge nested", model(R"({"a": 0})", R"([[["a"]]])"), "model.merges[0]");
    row("bad UTF-8", "{\"model\": {\"vocab\": {\"\xFF\": 0}, \"merges\": []}}", "JSON");
    row("lone surrogate", model(R"({"\ud800": 0})", "[]"), "JSON");
    row("trailing text", model("{}", "[]") + "x", "JSON");
    row("trailing NUL", model("{}", "[]") + QByteArray("\0x", 2), "JSON");
    row("deep", QByteArray(100000, '['), "deeper");
    row("flag", R"({"model": {"vocab": {}, "merges": [], "fuse_unk": 1}})", "model.fuse_unk");
    const QByteArray tail = R"(, "model": {"vocab": {"a": 0}, "merges": []}})";
    row("added tokens", R"({"added_tokens": 5)" + tail, "added_tokens");
    row("added token", R"({"added_tokens": ["x"])" + tail, "added_tokens[0]");
    row("added token flag", R"({"added_tokens": [{"id": 1, "content": "x"}])" + tail,
        "added_tokens[0].single_word");
    row("added token id",
        R"({"added_tokens": [{"id": 7, "content": "x", "single_word": false, "lstrip": false,
            "rstrip": false, "normalized": false, "special": true}])" +
            tail,
        "added_tokens[0].id");
    row("pre-tokenizer type", R"({"pre_tokenizer": {"type": 3})" + tail, "pre_tokenizer.type");
    row("pre-tokenizer", R"({"pre_tokenizer": "ByteLevel")" + tail, "pre_tokenizer");
    row("behavior",
        R"({"pre_tokenizer": {"type": "Split", "pattern": {"String": "a"},
        "behavior": "Odd", "invert": false})" +
            tail,
        "Odd");
    row("pattern",
        R"({"pre_tokenizer": {"type": "Split", "pattern": "a",
        "behavior": "Removed", "invert": false})" +
            tail,
        "pre_tokenizer.pattern");
    row("empty pattern", R"({"normalizer": {"type": "Replace", "pattern": {"String": ""},
        "content": ""})" + tail,
        "normalizer.pattern");
    row("replacement", R"({"decoder": {"type": "Metaspace", "replacement": "ab"})" + tail,
        "decoder.replacement");
    row("template id",
        R"({"post_processor": {"type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "x", "type_id": 0}}],
        "special_tokens": {"x": {"id": "x", "ids": [9], "tokens": ["x"]}}})" +
            tail,
        "9");
    row("template token",
        R"({"post_processor": {"type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "x", "type_id": 0}}], "special_tokens": {}})" +
            tail,
        "post_processor.special_tokens.x");
}

void TokenizerRefusalsTest::malformed()
{
    QFETCH(const QByteArray, text);
    QFETCH(const QString, named);
    const std::string path = write(text.toStdString());
    const auto tokenizer = Tokenizer::open(path);
    QVERIFY(!tokenizer);
    QCOMPARE(tokenizer.error().code, ErrorCode::BadInput);
    const std::string message = tokenizer.error().text();
    QVERIFY2(message.find(named.toStdString()) != std::string::npos, message.c_str());
    QVERIFY2(message.find(path) != std::string::npos, message.c_str());
}

/// Whatever a cut-off download leaves is an error, not a tokenizer and not a crash.
void TokenizerRefusalsTest::everyTruncationIsRefused()
{
    std::ifstream file(MLA_RESOURCES "/demo/stories260K/tokenizer.json");
    std::stringstream whole;
    whole << file.rdbuf();
    const std::string text = QByteArray::fromStdString(whole.str()).trimmed().toStdString();
    QVERIFY(text.size() > 1000);
    for (std::size_t length = 0; length < text.size(); length += 23)
        QVERIFY(!Tokenizer::open(write(text.substr(0, length))));
}

QTEST_APPLESS_MAIN(TokenizerRefusalsTest)
#include "tst_tokenizer_refusals.moc"
