// SPDX-License-Identifier: GPL-3.0-or-later
// Durable files and directories, JSON reading and SHA-256 (core/base).
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/sha256.h"

#include <fstream>

#include <sys/stat.h>

#include <QTemporaryDir>
#include <QtTest>

namespace fs = std::filesystem;
using namespace mla;

namespace
{

void put(const fs::path& path, const std::string& text)
{
    std::ofstream(path, std::ios::binary) << text;
}
std::string get(const fs::path& path)
{
    return readFile(path).value();
}

std::size_t entries(const fs::path& directory)
{
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

} // namespace

class TestFile : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void init()
    {
        m_temporary = std::make_unique<QTemporaryDir>();
        m_dir = m_temporary->path().toStdString();
    }

    void readsWholeFiles()
    {
        std::string text(200'000, 'x');
        text[7] = '\0';
        put(m_dir / "a", text);
        QCOMPARE(get(m_dir / "a"), text);
        put(m_dir / "empty", "");
        QCOMPARE(get(m_dir / "empty"), std::string());
    }

    void namesWhatCannotBeRead()
    {
        const Result<std::string> missing = readFile(m_dir / "none");
        QVERIFY(!missing);
        QCOMPARE(missing.error().code, ErrorCode::BadInput);
        QVERIFY(missing.error().text().find("none") != std::string::npos);
        QVERIFY(!readFile(m_dir));
    }

    void replacesAtomically()
    {
        put(m_dir / "a", "old");
        QVERIFY(writeFileAtomically(m_dir / "a", "new content").ok());
        QCOMPARE(get(m_dir / "a"), std::string("new content"));
        QCOMPARE(entries(m_dir), std::size_t{1}); // no temporary file stays
        const std::string longest(255, 'n');      // the longest name of Linux file systems
        QVERIFY(writeFileAtomically(m_dir / longest, "x").ok());
    }

    void failedWriteLeavesTheOldFile()
    {
        QVERIFY(!writeFileAtomically(m_dir / "missing" / "a", "x"));
        fs::create_directory(m_dir / "folder");
        put(m_dir / "folder" / "inside", "1");
        const Status status = writeFileAtomically(m_dir / "folder", "x");
        QVERIFY(!status);
        QCOMPARE(status.error().code, ErrorCode::ComputeFailed);
        QCOMPARE(get(m_dir / "folder" / "inside"), std::string("1"));
        QCOMPARE(entries(m_dir), std::size_t{1});
    }

    void uncommittedFileVanishes()
    {
        put(m_dir / "a", "old");
        {
            auto file = AtomicFile::create(m_dir / "a");
            QVERIFY(file.ok());
            const std::byte one{1};
            QVERIFY(file->writeAt(3, std::span(&one, 1)).ok());
            const AtomicFile moved = std::move(file).value();
            QCOMPARE(entries(m_dir), std::size_t{2});
        }
        QCOMPARE(entries(m_dir), std::size_t{1});
        QCOMPARE(get(m_dir / "a"), std::string("old"));
    }

    void stagedDirectoryAppearsWhole()
    {
        const fs::path target = m_dir / "deep" / "out";
        auto staged = StagedDirectory::create(target, false);
        QVERIFY(staged.ok());
        put(staged->path() / "a", "1");
        fs::create_directory(staged->path() / "sub");
        put(staged->path() / "sub" / "b", "2");
        QVERIFY(!fs::exists(target));
        QVERIFY(staged->commit().ok());
        QCOMPARE(get(target / "sub" / "b"), std::string("2"));
        QCOMPARE(entries(target.parent_path()), std::size_t{1});
    }

    void stagedDirectoryWithoutCommitVanishes()
    {
        {
            auto staged = StagedDirectory::create(m_dir / "out", false);
            put(staged->path() / "a", "1");
            const StagedDirectory moved = std::move(staged).value();
            QVERIFY(fs::exists(moved.path() / "a"));
        }
        QCOMPARE(entries(m_dir), std::size_t{0});
    }

    void existingTargetNeedsOverwrite()
    {
        fs::create_directory(m_dir / "out");
        put(m_dir / "out" / "mine", "kept");
        for (const fs::path& name : {m_dir / "out", m_dir / "out" / ""}) {
            const auto refused = StagedDirectory::create(name, false);
            QVERIFY(!refused);
            QCOMPARE(refused.error().code, ErrorCode::Usage);
        }
        QCOMPARE(entries(m_dir), std::size_t{1});

        auto staged = StagedDirectory::create(m_dir / "out", true);
        QVERIFY(staged.ok());
        put(staged->path() / "new", "1");
        QCOMPARE(get(m_dir / "out" / "mine"), std::string("kept")); // until commit
        QVERIFY(staged->commit().ok());
        QVERIFY(!fs::exists(m_dir / "out" / "mine"));
        QCOMPARE(get(m_dir / "out" / "new"), std::string("1"));
        QCOMPARE(entries(m_dir), std::size_t{1});
    }

    void targetThatAppearsMeanwhileStays()
    {
        auto staged = StagedDirectory::create(m_dir / "out", false);
        put(staged->path() / "a", "1");
        fs::create_directory(m_dir / "out"); // even an empty one
        const Status status = staged->commit();
        QVERIFY(!status);
        QCOMPARE(status.error().code, ErrorCode::Usage);
        QCOMPARE(entries(m_dir / "out"), std::size_t{0});
    }

    void refusesWhatIsNotAPlainDirectory()
    {
        put(m_dir / "file", "x");
        QVERIFY(!StagedDirectory::create(m_dir / "file", true));
        QCOMPARE(get(m_dir / "file"), std::string("x"));
        fs::create_directory(m_dir / "real");
        fs::create_directory_symlink(m_dir / "real", m_dir / "link");
        QVERIFY(!StagedDirectory::create(m_dir / "link", true));
        QVERIFY(!StagedDirectory::create("", true));
        QVERIFY(!StagedDirectory::create("/", true));
        QVERIFY(!StagedDirectory::create(".", true));
        QVERIFY(!StagedDirectory::create("..", true)); // holds the current directory
    }

    void sha256Vectors()
    {
        // FIPS 180-4 examples (csrc.nist.gov), one block, two blocks, and a million letters.
        QCOMPARE(sha256Hex("abc"), std::string("ba7816bf8f01cfea414140de5dae2223"
                                               "b00361a396177a9cb410ff61f20015ad"));
        QCOMPARE(sha256Hex(""), std::string("e3b0c44298fc1c149afbf4c8996fb924"
                                            "27ae41e4649b934ca495991b7852b855"));
        QCOMPARE(sha256Hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
                 std::string("248d6a61d20638b8e5c026930c3e6039"
                             "a33ce45964ff2167f6ecedd419db06c1"));
        Sha256 million;
        for (int i = 0; i < 1000; ++i)
            million.update(std::string(1000, 'a'));
        QCOMPARE(million.hexDigest(), std::string("cdc76e5c9914fb9281a1c7e284d73e67"
                                                  "f1809a48a497200e046d39ccc7112cd0"));
    }

    void refusesHostileJson_data()
    {
        QTest::addColumn<QByteArray>("text");
        QTest::newRow("empty") << QByteArray();
        QTest::newRow("deep") << QByteArray(1'000'000, '[');
        QTest::newRow("deep objects") << QByteArray("{\"a\":").repeated(100'000);
        QTest::newRow("not UTF-8") << QByteArray("{\"\xff\": 1}");
        QTest::newRow("after NUL") << QByteArray("{}\0{", 4);
        QTest::newRow("trailing") << QByteArray("{} x");
    }
    void refusesHostileJson()
    {
        QFETCH(QByteArray, text);
        const auto parsed = parseJson(text.toStdString(), "some.json");
        QVERIFY(!parsed);
        QCOMPARE(parsed.error().context, std::string("some.json"));
    }

    void bracketsInStringsAreNoDepth()
    {
        const std::string text =
            "\"" + std::string(1000, '[') + "\\\"" + std::string(1000, '{') + "\"";
        QVERIFY(parseJson(text, "x").ok());
    }

    void jsonReaderKeepsTheFirstError()
    {
        const nlohmann::json object = {{"a", 3}, {"b", "x"}, {"c", -1}, {"big", 4'000'000'000U}};
        JsonReader reader(object, "file.json", "part");
        QCOMPARE(reader.positive("a", 1), 3);
        QCOMPARE(reader.positive("absent", 7), 7);
        QVERIFY(reader.status().ok());
        reader.positive("b", 1);
        reader.positive("c", 1);
        QVERIFY(!reader.status());
        QVERIFY(reader.status().error().message.starts_with("'part.b' must be an integer"));
        JsonReader large(object, "file.json");
        large.positive("big", 1);
        QVERIFY(!large.status());
    }

private:
    std::unique_ptr<QTemporaryDir> m_temporary;
    fs::path m_dir;
};

QTEST_APPLESS_MAIN(TestFile)
#include "tst_file.moc"
