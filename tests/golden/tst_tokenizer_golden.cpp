// SPDX-License-Identifier: GPL-3.0-or-later
// Ids and decoded texts equal those of the `tokenizers` library (make_tokenizer_goldens.py).
#include "core/checkpoint/tokenizer.h"
#include "tests/support/tokenizer_goldens.h"

#include <QtTest>

#include <QTemporaryDir>

using mla::test::compareWithGolden;
using mla::test::goldenPath;
using mla::test::readJson;
using nlohmann::json;

namespace
{

/// The base tokenizer with the keys of `change` in place of its own.
json changed(json document, const json& change)
{
    for (const auto& [key, value] : change.items()) {
        if (key == "model")
            document["model"].update(value);
        else
            document[key] = value;
    }
    return document;
}

} // namespace

class TokenizerGoldenTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void byteFallback()
    {
        compareCorpus(MLA_RESOURCES "/demo/stories260K/tokenizer.json", "stories260K.json");
    }

    void byteLevel() { compareCorpus(goldenPath("byte_level.json"), "byte_level_ids.json"); }

    void features_data()
    {
        QTest::addColumn<int>("index");
        m_features = readJson(goldenPath("features.json"));
        for (std::size_t i = 0; i < m_features["features"].size(); ++i)
            QTest::newRow(m_features["features"][i]["name"].get<std::string>().c_str())
                << static_cast<int>(i);
    }

    void features()
    {
        QFETCH(const int, index);
        const json& feature = m_features["features"][static_cast<std::size_t>(index)];
        const QTemporaryDir directory;
        const std::string path = directory.filePath("tokenizer.json").toStdString();
        std::ofstream(path) << changed(m_features["base"], feature["change"]).dump();
        const auto tokenizer = mla::Tokenizer::open(path);
        QVERIFY2(tokenizer.ok(), tokenizer ? "" : tokenizer.error().text().c_str());
        const std::string difference = compareWithGolden(
            *tokenizer, feature.value("cases", m_features["cases"]), feature["answers"]);
        QVERIFY2(difference.empty(), difference.c_str());
    }

private:
    void compareCorpus(const std::string& path, const std::string& golden)
    {
        const auto tokenizer = mla::Tokenizer::open(path);
        QVERIFY2(tokenizer.ok(), tokenizer ? "" : tokenizer.error().text().c_str());
        const std::string difference =
            compareWithGolden(*tokenizer, readJson(goldenPath("corpus.json"))["cases"],
                              readJson(goldenPath(golden))["answers"]);
        QVERIFY2(difference.empty(), difference.c_str());
    }

    json m_features;
};

QTEST_APPLESS_MAIN(TokenizerGoldenTest)
#include "tst_tokenizer_golden.moc"
