// SPDX-License-Identifier: GPL-3.0-or-later
// Ids and texts equal those of the `tokenizers` library, run beside this test (MLA_PYTHON), on more
// than 20,000 lines: this repository's text, prompts, all of Unicode, random bytes. Beside the
// tokenizers that ship with the sources, SmolLM2's is compared (MLA_SMOLLM2_DIR), and all below
// MLA_TOKENIZERS_DIR: NAME/tokenizer.json, or .xz.
#include "core/checkpoint/tokenizer.h"
#include "tests/support/tokenizer_goldens.h"

#include <cstring>

#include <QDirIterator>
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>

namespace
{

/// Reads what tokenizer_parity.py writes.
class Records
{
public:
    explicit Records(const QString& path)
    {
        QFile file(path);
        if (file.open(QIODevice::ReadOnly))
            m_bytes = file.readAll();
    }
    [[nodiscard]] bool atEnd() const { return m_at >= m_bytes.size(); }
    std::uint32_t number()
    {
        std::uint32_t value = 0;
        if (m_at + 4 <= m_bytes.size())
            std::memcpy(&value, m_bytes.constData() + m_at, 4);
        m_at += 4;
        return value;
    }
    std::string text()
    {
        const auto length = static_cast<qsizetype>(number());
        const QByteArray part = m_bytes.mid(m_at, length);
        m_at += length;
        return part.toStdString();
    }
    std::vector<int> ids()
    {
        std::vector<int> found(number());
        for (int& id : found)
            id = static_cast<int>(number());
        return found;
    }

private:
    QByteArray m_bytes;
    qsizetype m_at = 0;
};

QStringList tokenizerFiles()
{
    QStringList files = {QStringLiteral(MLA_RESOURCES "/demo/stories260K/tokenizer.json"),
                         QStringLiteral(MLA_TEST_DATA "/golden/tokenizer/byte_level.json")};
    const QString smol = qEnvironmentVariable("MLA_SMOLLM2_DIR");
    if (!smol.isEmpty() && QFile::exists(smol + "/tokenizer.json"))
        files << smol + "/tokenizer.json";
    const QString more = qEnvironmentVariable("MLA_TOKENIZERS_DIR");
    if (!more.isEmpty()) {
        QDirIterator found(more, {"tokenizer.json", "tokenizer.json.xz"}, QDir::Files,
                           QDirIterator::Subdirectories);
        while (found.hasNext())
            files << found.next();
    }
    return files;
}

} // namespace

class TokenizerParityTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase()
    {
        const QString python = qEnvironmentVariable("MLA_PYTHON");
        if (python.isEmpty())
            QSKIP("MLA_PYTHON does not name a Python with the tokenizers library");
        m_files = tokenizerFiles();
        QProcess process;
        process.setProcessChannelMode(QProcess::ForwardedErrorChannel);
        process.start(python, QStringList{MLA_TEST_DATA "/support/tokenizer_parity.py",
                                          MLA_TEST_DATA "/..", m_directory.path()} +
                                  m_files);
        QVERIFY(process.waitForFinished(1200000));
        QCOMPARE(process.exitCode(), 0);
        Records lines(m_directory.filePath("lines"));
        while (!lines.atEnd())
            m_lines.push_back(lines.text());
        QVERIFY(m_lines.size() >= 20000);
    }

    void library_data()
    {
        QTest::addColumn<int>("index");
        const QStringList files = tokenizerFiles();
        for (int i = 0; i < files.size(); ++i)
            QTest::newRow(qPrintable(files[i].section('/', -2))) << i;
    }

    void library()
    {
        QFETCH(const int, index);
        const QString name = m_directory.filePath(QString::number(index));
        const auto tokenizer = mla::Tokenizer::open((name + ".json").toStdString());
        QVERIFY2(tokenizer.ok(), tokenizer ? "" : tokenizer.error().text().c_str());
        Records answers(name + ".answers");
        std::size_t tokens = 0;
        for (const std::string& line : m_lines) {
            const std::vector<int> expected = answers.ids();
            const std::string text = answers.text();
            const auto shown = nlohmann::json{{"hex", QByteArray::fromStdString(line).toHex()}};
            const std::vector<int> ids = tokenizer->encode(line);
            QVERIFY2(ids == expected, mla::test::describe(shown, "ids", ids, expected).c_str());
            const auto decoded = tokenizer->decode(ids);
            QVERIFY(decoded.ok());
            QVERIFY2(*decoded == text,
                     mla::test::describe(shown, "decoded text", *decoded, text).c_str());
            tokens += ids.size();
        }
        QVERIFY(answers.atEnd());
        qInfo("%zu lines, %zu tokens, no difference", m_lines.size(), tokens);
    }

private:
    QTemporaryDir m_directory;
    QStringList m_files;
    std::vector<std::string> m_lines;
};

QTEST_APPLESS_MAIN(TokenizerParityTest)
#include "tst_parity_tokenizers.moc"
