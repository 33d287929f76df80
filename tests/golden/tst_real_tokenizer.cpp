// SPDX-License-Identifier: GPL-3.0-or-later
// The tokenizer of SmolLM2-135M-Instruct: of the checkpoint (environment variable MLA_SMOLLM2_DIR)
// and of the GGUF file beside it, from which it was written.
#include "core/checkpoint/tokenizer.h"
#include "tests/support/tokenizer_goldens.h"

#include <QtTest>

#include <QDir>
#include <QFileInfo>

using mla::test::compareWithGolden;
using mla::test::goldenPath;
using mla::test::readJson;

class RealTokenizerTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void smollm2()
    {
        const QString directory = qEnvironmentVariable("MLA_SMOLLM2_DIR");
        if (directory.isEmpty())
            QSKIP("MLA_SMOLLM2_DIR is not set");
        if (!QFileInfo::exists(directory + "/tokenizer.json"))
            QSKIP("MLA_SMOLLM2_DIR holds no tokenizer.json");
        const auto tokenizer = mla::Tokenizer::open(directory.toStdString());
        QVERIFY2(tokenizer.ok(), tokenizer ? "" : tokenizer.error().text().c_str());
        QCOMPARE(tokenizer->size(), 49152);
        QVERIFY(tokenizer->isSpecial(2));
        const std::string difference =
            compareWithGolden(*tokenizer, readJson(goldenPath("corpus.json"))["cases"],
                              readJson(goldenPath("smollm2.json"))["answers"]);
        QVERIFY2(difference.empty(), difference.c_str());
    }

    void gguf()
    {
        const QString directory = qEnvironmentVariable("MLA_SMOLLM2_DIR");
        const QStringList files = QDir(directory).entryList({"*.gguf"}, QDir::Files);
        if (directory.isEmpty() || files.isEmpty())
            QSKIP("MLA_SMOLLM2_DIR holds no GGUF file");
        const QString file = QDir(directory).filePath(files.first());
        const auto tokenizer = mla::Tokenizer::open(file.toStdString());
        QVERIFY2(tokenizer.ok(), tokenizer ? "" : tokenizer.error().text().c_str());
        QCOMPARE(tokenizer->size(), 49152);
        const std::string difference =
            compareWithGolden(*tokenizer, readJson(goldenPath("corpus.json"))["cases"],
                              readJson(goldenPath("smollm2_gguf.json"))["answers"]);
        QVERIFY2(difference.empty(), difference.c_str());
    }
};

QTEST_APPLESS_MAIN(RealTokenizerTest)
#include "tst_real_tokenizer.moc"
