// SPDX-License-Identifier: GPL-3.0-or-later
// Which tokens a pair shares: padded tables, tokens that one side lacks, contradictions.
#include <map>

#include <nlohmann/json.hpp>

#include "core/checkpoint/token_pair.h"

#include <QFile>
#include <QTemporaryDir>
#include <QTest>

using namespace mla;
using Ids = std::vector<int>;

class TestTokenPair : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void equalTables();
    void paddedRows();
    void tokensBeyondTheRows();
    void tokensOfOneSide();
    void holes();
    void firstDifferenceIsNamed();
    void nothingShared();

private:
    /// A tokenizer with these tokens; special ones are those in angle brackets.
    Tokenizer open(const std::map<int, std::string>& tokens);
    QTemporaryDir m_dir;
    int m_count = 0;
};

Tokenizer TestTokenPair::open(const std::map<int, std::string>& tokens)
{
    nlohmann::json document = {{"version", "1.0"},
                               {"added_tokens", nlohmann::json::array()},
                               {"pre_tokenizer",
                                {{"type", "ByteLevel"},
                                 {"add_prefix_space", false},
                                 {"trim_offsets", true},
                                 {"use_regex", false}}},
                               {"decoder",
                                {{"type", "ByteLevel"},
                                 {"add_prefix_space", false},
                                 {"trim_offsets", true},
                                 {"use_regex", false}}},
                               {"model",
                                {{"type", "BPE"},
                                 {"vocab", nlohmann::json::object()},
                                 {"merges", nlohmann::json::array()}}}};
    for (const auto& [id, token] : tokens) {
        document["model"]["vocab"][token] = id;
        if (token.front() == '<')
            document["added_tokens"].push_back({{"id", id},
                                                {"content", token},
                                                {"special", true},
                                                {"lstrip", false},
                                                {"rstrip", false},
                                                {"single_word", false},
                                                {"normalized", false}});
    }
    const QString path = m_dir.filePath(QString("%1.json").arg(m_count++));
    QFile file(path);
    if (!file.open(QIODevice::WriteOnly))
        throw std::runtime_error("cannot write the tokenizer");
    file.write(QByteArray::fromStdString(document.dump()));
    file.close();
    Result<Tokenizer> tokenizer = Tokenizer::open(path.toStdString());
    if (!tokenizer)
        throw std::runtime_error(tokenizer.error().text());
    return *tokenizer;
}

void TestTokenPair::equalTables()
{
    const Tokenizer tokenizer = open({{0, "a"}, {1, "b"}, {2, "<end>"}});
    const auto shared = sharedTokens({tokenizer, 3}, {tokenizer, 3});
    QVERIFY(shared.ok());
    QVERIFY(shared->whole);
    QCOMPARE(shared->size, 3);
    QVERIFY(shared->holes.empty() && shared->targetOnly.empty());
    QVERIFY(shared->contains(0) && shared->contains(2));
    QVERIFY(!shared->contains(3) && !shared->contains(-1));
}

/// Rows that no token has are padding, on whichever side they are.
void TestTokenPair::paddedRows()
{
    const Tokenizer tokenizer = open({{0, "a"}, {1, "b"}, {2, "<end>"}});
    for (const auto [target, draft] : {std::pair{3, 8}, {8, 3}, {8, 16}, {8, 8}}) {
        const auto shared = sharedTokens({tokenizer, target}, {tokenizer, draft});
        QVERIFY(shared.ok());
        QVERIFY(!shared->whole);
        QCOMPARE(shared->size, 3);
        QVERIFY(shared->holes.empty() && shared->targetOnly.empty());
    }
}

/// A token without a row in the model (Llama's added <pad>) cannot be chosen.
void TestTokenPair::tokensBeyondTheRows()
{
    const Tokenizer tokenizer = open({{0, "a"}, {1, "b"}, {2, "<pad>"}});
    const auto shared = sharedTokens({tokenizer, 2}, {tokenizer, 2});
    QVERIFY(shared.ok());
    QVERIFY(shared->whole);
    QCOMPARE(shared->size, 2);
    QVERIFY(!shared->contains(2));
}

void TestTokenPair::tokensOfOneSide()
{
    const Tokenizer small = open({{0, "a"}, {1, "b"}, {2, "<end>"}});
    const Tokenizer large = open({{0, "a"}, {1, "b"}, {2, "<end>"}, {3, "<tool>"}, {4, "<call>"}});
    const auto larger = sharedTokens({large, 8}, {small, 8});
    QVERIFY(larger.ok());
    QCOMPARE(larger->size, 3);
    QCOMPARE(larger->targetOnly, (Ids{3, 4}));
    const auto smaller = sharedTokens({small, 8}, {large, 8});
    QVERIFY(smaller.ok());
    QCOMPARE(smaller->size, 3);
    QVERIFY(smaller->targetOnly.empty()); // what only the draft has is never accepted anyway
}

void TestTokenPair::holes()
{
    const Tokenizer target = open({{0, "a"}, {1, "b"}, {3, "<tool>"}, {5, "<end>"}});
    const Tokenizer draft = open({{0, "a"}, {1, "b"}, {2, "<fill>"}, {5, "<end>"}});
    const auto shared = sharedTokens({target, 6}, {draft, 6});
    QVERIFY(shared.ok());
    QVERIFY(!shared->whole);
    QCOMPARE(shared->size, 6);
    QCOMPARE(shared->holes, (Ids{2, 3, 4}));
    QCOMPARE(shared->targetOnly, (Ids{3}));
    QVERIFY(shared->contains(5) && !shared->contains(3));
}

void TestTokenPair::firstDifferenceIsNamed()
{
    const Tokenizer target = open({{0, "a"}, {1, "b"}, {2, "c"}, {3, "<end>"}});
    const Tokenizer draft = open({{0, "a"}, {1, "b"}, {2, "d"}, {3, "<stop>"}});
    const auto shared = sharedTokens({target, 4}, {draft, 4});
    QVERIFY(!shared.ok());
    QCOMPARE(shared.error().code, ErrorCode::BadInput);
    for (const char* part : {"id 2", "'c' in the target", "'d' in the draft"})
        QVERIFY2(shared.error().message.find(part) != std::string::npos,
                 shared.error().message.c_str());
}

void TestTokenPair::nothingShared()
{
    const Tokenizer target = open({{0, "a"}}), draft = open({{1, "a"}});
    const auto shared = sharedTokens({target, 2}, {draft, 2});
    QVERIFY(!shared.ok());
    QCOMPARE(shared.error().code, ErrorCode::BadInput);
}

QTEST_APPLESS_MAIN(TestTokenPair)
#include "tst_token_pair.moc"
