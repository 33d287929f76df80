// SPDX-License-Identifier: GPL-3.0-or-later
// Directories with a tokenizer.model: ids and texts equal those of Transformers 4's LlamaTokenizer
// on the sentencepiece library (make_sentencepiece_goldens.py).
#include "core/checkpoint/tokenizer.h"
#include "tests/support/tokenizer_goldens.h"

#include <filesystem>

#include <QTemporaryDir>
#include <QtTest>

using mla::Tokenizer;
using mla::test::compareWithGolden;
using mla::test::goldenPath;
using mla::test::readJson;
using nlohmann::json;

class SentencePieceGoldenTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase()
    {
        m_goldens = readJson(goldenPath("sp_goldens.json"));
        m_corpus = readJson(goldenPath("corpus.json"))["cases"];
    }

    void directories_data()
    {
        QTest::addColumn<int>("index");
        for (std::size_t i = 0; i < m_goldens["directories"].size(); ++i)
            QTest::newRow(m_goldens["directories"][i]["name"].get<std::string>().c_str())
                << static_cast<int>(i);
    }

    void directories()
    {
        QFETCH(const int, index);
        const json& golden = m_goldens["directories"][static_cast<std::size_t>(index)];
        const QTemporaryDir directory;
        const std::filesystem::path path = directory.path().toStdString();
        std::filesystem::copy_file(goldenPath(golden["model"].get<std::string>() + ".model"),
                                   path / "tokenizer.model");
        for (const auto& [name, content] : golden["files"].items())
            std::ofstream(path / name) << content.dump();
        const auto tokenizer = Tokenizer::open(path);
        QVERIFY2(tokenizer.ok(), tokenizer ? "" : tokenizer.error().text().c_str());
        QCOMPARE(tokenizer->size(), golden["size"].get<int>());
        json cases = m_goldens["cases"];
        if (golden["whole_corpus"].get<bool>()) {
            cases = m_corpus;
            cases.insert(cases.end(), m_goldens["cases"].begin(), m_goldens["cases"].end());
        }
        const std::string difference = compareWithGolden(*tokenizer, cases, golden["answers"]);
        QVERIFY2(difference.empty(), difference.c_str());
        for (int id = 0; id < tokenizer->size(); ++id)
            QCOMPARE(tokenizer->idOf(tokenizer->tokenOf(id).value()).value(), id);
    }

private:
    json m_goldens, m_corpus;
};

QTEST_APPLESS_MAIN(SentencePieceGoldenTest)
#include "tst_sentencepiece_golden.moc"
