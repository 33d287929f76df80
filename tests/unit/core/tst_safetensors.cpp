// SPDX-License-Identifier: GPL-3.0-or-later
// What loads and what is refused follows the reference reader (Python package safetensors 0.8),
// with the deliberate differences named below.
#include "core/checkpoint/safetensors.h"

#include <cstring>
#include <fstream>

#include <sys/stat.h>

#include <QTemporaryDir>
#include <QtTest>

namespace fs = std::filesystem;
using namespace mla;

namespace
{

/// Length prefix + header + `zeros` bytes of data.
QByteArray file(const QByteArray& header, qsizetype zeros)
{
    const auto length = static_cast<quint64>(header.size());
    QByteArray bytes(reinterpret_cast<const char*>(&length), sizeof length);
    return bytes + header + QByteArray(zeros, '\0');
}

QByteArray tensor(const char* dtype, const char* shape, const char* offsets)
{
    return QByteArray("{\"dtype\":\"") + dtype + "\",\"shape\":" + shape +
           ",\"data_offsets\":" + offsets + "}";
}

QByteArray one(const char* dtype, const char* shape, const char* offsets)
{
    return "{\"w\":" + tensor(dtype, shape, offsets) + "}";
}

QByteArray two(const char* offsetsA, const char* offsetsB)
{
    return "{\"a\":" + tensor("F32", "[1]", offsetsA) + ",\"b\":" + tensor("F32", "[1]", offsetsB) +
           "}";
}

std::span<const std::byte> bytesOf(const QByteArray& data)
{
    return std::as_bytes(std::span(data.constData(), static_cast<std::size_t>(data.size())));
}

} // namespace

class TestSafetensors : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase() { m_path = (m_temporary.path() + "/x.safetensors").toStdString(); }

    void refuses_data()
    {
        QTest::addColumn<QByteArray>("bytes");
        QTest::addColumn<QString>("says");
        const auto row = [](const char* name, const QByteArray& bytes, const char* says) {
            QTest::newRow(name) << bytes << says;
        };
        row("empty file", "", "0 bytes");
        row("seven bytes", "1234567", "7 bytes");
        row("length near 2^64", QByteArray("\xfc\xff\xff\xff\xff\xff\xff\xff", 8) + "{}",
            "exceeds the limit");
        row("length beyond the file", file("{}", 0).replace(0, 1, "\x40"), "beyond the file");
        row("no header", file("", 0), "begin");
        row("not JSON", file("{\"w\":", 0), "not valid JSON");
        row("not UTF-8", file("{\"\xff\":" + tensor("U8", "[1]", "[0,1]") + "}", 1),
            "not valid JSON");
        row("byte order mark", file("\xEF\xBB\xBF{}", 0), "begin");
        row("NUL padding", file(QByteArray("{}\0\0", 4), 0), "NUL");
        row("text after the object", file("{}{}", 0), "not valid JSON");
        row("a list", file("[]", 0), "JSON object");
        row("a number", file("5", 0), "JSON object");
        row("deep nesting", file(QByteArray(1'000'000, '['), 0), "JSON object");
        row("deep nesting below a key", file("{\"w\":{\"x\":" + QByteArray(1'000'000, '['), 0),
            "nested too deeply");
        row("tensor is a number", file("{\"w\":1}", 0), "'w'");
        row("tensor is null", file("{\"w\":null}", 0), "'w'");
        row("no dtype", file("{\"w\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4), "no dtype");
        row("no shape", file("{\"w\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4), "no shape");
        row("no offsets", file("{\"w\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4), "no data_offsets");
        row("unknown dtype", file(one("F4", "[2]", "[0,1]"), 1), "dtype 'F4'");
        row("dtype is a number", file("{\"w\":{\"dtype\":1}}", 0), "dtype must be a string");
        row("negative dimension", file(one("F32", "[-1]", "[0,4]"), 4), "shape");
        row("fractional dimension", file(one("F32", "[1.0]", "[0,4]"), 4), "shape");
        row("dimension beyond 64 bits", file(one("F32", "[18446744073709551616]", "[0,4]"), 4),
            "shape");
        row("dimension beyond 63 bits", file(one("F32", "[9223372036854775808]", "[0,4]"), 4),
            "too large");
        row("product overflows to zero", file(one("U8", "[4294967296,4294967296]", "[0,0]"), 0),
            "overflows");
        row("overflow before a zero",
            file(one("U8", "[4611686018427387904,4611686018427387904,0]", "[0,0]"), 0),
            "overflows");
        row("bytes overflow", file(one("F64", "[2305843009213693952]", "[0,0]"), 0), "overflows");
        row("nested shape", file(one("F32", "[[1]]", "[0,4]"), 4), "shape");
        row("shape is a number", file(one("F32", "1", "[0,4]"), 4), "shape");
        row("one offset", file(one("F32", "[1]", "[0]"), 4), "two integers");
        row("three offsets", file(one("F32", "[1]", "[0,4,4]"), 4), "two integers");
        row("negative offset", file(one("F32", "[1]", "[-4,0]"), 4), "data_offsets");
        row("reversed offsets", file(one("F32", "[1]", "[8,4]"), 8), "reversed");
        row("offsets beyond the file", file(one("F32", "[32,8]", "[0,65536]"), 1024), "beyond");
        row("size mismatch", file(one("F32", "[32,8]", "[0,512]"), 512), "need 1024 bytes");
        row("hole at the start", file(one("F32", "[1]", "[4,8]"), 8), "no tensor");
        row("hole", file(two("[0,4]", "[8,12]"), 12), "no tensor");
        row("overlap", file(two("[0,4]", "[2,6]"), 6), "overlaps");
        row("same place", file(two("[0,4]", "[0,4]"), 4), "overlaps");
        row("trailing bytes", file(one("F32", "[1]", "[0,4]"), 5), "data section of 5 bytes");
        row("empty tensor in the middle of another",
            file("{\"a\":" + tensor("F32", "[2]", "[0,8]") +
                     ",\"b\":" + tensor("F32", "[0]", "[4,4]") + "}",
                 8),
            "overlaps");
        row("metadata with a number", file("{\"__metadata__\":{\"a\":1}}", 0), "__metadata__");
        row("metadata with an object", file("{\"__metadata__\":{\"a\":{}}}", 0), "__metadata__");
        row("metadata twice", file("{\"__metadata__\":{},\"__metadata__\":{}}", 0), "twice");
        row("key of a tensor twice",
            file("{\"w\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}"
                 "}",
                 4),
            "twice");
        // Stricter than the reference, which silently keeps the last of two.
        row("tensor twice",
            file("{\"w\":" + tensor("U8", "[1]", "[0,1]") +
                     ",\"w\":" + tensor("U8", "[1]", "[0,1]") + "}",
                 1),
            "twice");
    }
    void refuses()
    {
        QFETCH(QByteArray, bytes);
        QFETCH(QString, says);
        write(bytes);
        const auto opened = SafetensorsFile::open(m_path);
        QVERIFY(!opened);
        QCOMPARE(opened.error().code, ErrorCode::BadInput);
        QCOMPARE(opened.error().context, m_path.string());
        QVERIFY2(opened.error().message.find(says.toStdString()) != std::string::npos,
                 opened.error().message.c_str());
    }

    void loads_data()
    {
        QTest::addColumn<QByteArray>("bytes");
        QTest::addColumn<int>("tensors");
        const QByteArray plain = one("F32", "[1]", "[0,4]");
        QTest::newRow("plain") << file(plain, 4) << 1;
        QTest::newRow("padded with spaces") << file(plain.leftJustified(100'000), 4) << 1;
        QTest::newRow("leading and trailing white space") << file("  " + plain + "\n\t\r ", 4) << 1;
        QTest::newRow("no tensors") << file("{}", 0) << 0;
        QTest::newRow("scalar") << file(one("F32", "[]", "[0,4]"), 4) << 1;
        QTest::newRow("empty tensor") << file(one("F32", "[0,5]", "[0,0]"), 0) << 1;
        QTest::newRow("unaligned") << file("{\"a\":" + tensor("U8", "[1]", "[0,1]") +
                                               ",\"b\":" + tensor("F32", "[1]", "[1,5]") + "}",
                                           5)
                                   << 2;
        QTest::newRow("any order") << file(two("[4,8]", "[0,4]"), 8) << 2;
        QTest::newRow("unknown key of a tensor")
            << file("{\"w\":{\"x\":[1,{\"dtype\":[]}],\"y\":{\"z\":null},\"v\":2,\"dtype\":\"F32\","
                    "\"shape\":[1],\"data_offsets\":[0,4]}}",
                    4)
            << 1;
        QTest::newRow("metadata is null") << file("{\"__metadata__\":null}", 0) << 0;
        for (const char* dtype : {"F64", "I64", "U64"})
            QTest::newRow(dtype) << file(one(dtype, "[2]", "[0,16]"), 16) << 1;
        for (const char* dtype : {"F32", "I32", "U32"})
            QTest::newRow(dtype) << file(one(dtype, "[2]", "[0,8]"), 8) << 1;
        for (const char* dtype : {"F16", "BF16", "I16", "U16"})
            QTest::newRow(dtype) << file(one(dtype, "[2]", "[0,4]"), 4) << 1;
        for (const char* dtype : {"F8_E4M3", "F8_E5M2", "I8", "U8", "BOOL"})
            QTest::newRow(dtype) << file(one(dtype, "[2]", "[0,2]"), 2) << 1;
    }
    void loads()
    {
        QFETCH(QByteArray, bytes);
        QFETCH(int, tensors);
        write(bytes);
        const auto opened = SafetensorsFile::open(m_path);
        QVERIFY2(opened.ok(), opened.ok() ? "" : opened.error().text().c_str());
        QCOMPARE(static_cast<int>(opened.value().tensors().size()), tensors);
    }

    void onlyRegularFiles()
    {
        QVERIFY(!SafetensorsFile::open(m_path.parent_path()));
        QVERIFY(!SafetensorsFile::open(m_path.parent_path() / "missing"));
        const fs::path pipe = m_path.parent_path() / "pipe";
        QCOMPARE(::mkfifo(pipe.c_str(), 0600), 0);
        QVERIFY(!SafetensorsFile::open(pipe)); // and does not wait for a writer
    }

    void everyTruncationIsRefused()
    {
        const QByteArray whole = file(two("[0,4]", "[4,8]"), 8);
        for (qsizetype size = 0; size < whole.size(); ++size) {
            write(whole.left(size));
            QVERIFY(!SafetensorsFile::open(m_path));
        }
    }

    void writesWhatItReads()
    {
        const QByteArray bytes8("\x01", 1);
        const QByteArray bytes32("abcdefghijkl", 12);
        const QByteArray bytes16("wxyz", 4);
        const std::vector<TensorView> tensors = {
            {"bytes", DType::U8, {1}, bytesOf(bytes8)},
            {"model.é\"\\", DType::BF16, {2, 1}, bytesOf(bytes16)},
            {"floats", DType::F32, {3}, bytesOf(bytes32)},
            {"empty", DType::F64, {0, 4}, {}},
        };
        QVERIFY(writeSafetensors(m_path, tensors, {{"format", "pt"}, {"made", "by"}}).ok());
        auto opened = SafetensorsFile::open(m_path);
        QVERIFY2(opened.ok(), opened.ok() ? "" : opened.error().text().c_str());
        QCOMPARE(opened->metadata().at("made"), std::string("by"));
        QCOMPARE(opened->tensors().size(), tensors.size());
        for (const TensorView& tensor : tensors) {
            const TensorInfo& info = opened->tensors().at(tensor.name);
            QCOMPARE(info.dtype, tensor.dtype);
            QCOMPARE(info.shape, tensor.shape);
            QCOMPARE(info.begin % bytesPerElement(info.dtype), std::uint64_t{0}); // aligned
            const auto read = opened->bytes(tensor.name);
            QVERIFY(std::ranges::equal(read.value(), tensor.data));
        }
        QVERIFY(!opened->bytes("absent"));
        std::ifstream in(m_path, std::ios::binary);
        quint64 length = 0;
        in.read(reinterpret_cast<char*>(&length), sizeof length);
        QCOMPARE(length % 8, quint64{0}); // so that the data section is aligned too
    }

    void mappingOutlivesTheFile()
    {
        write(file(one("U8", "[3]", "[0,3]"), 0) + "xyz");
        auto opened = std::make_unique<SafetensorsFile>(SafetensorsFile::open(m_path).value());
        const SafetensorsFile copy = *opened;
        const auto bytes = copy.bytes("w").value();
        opened.reset();
        fs::remove(m_path);
        QCOMPARE(std::memcmp(bytes.data(), "xyz", 3), 0);
    }

    void writerChecksItsDeclarations()
    {
        fs::remove(m_path);
        const QByteArray four("abcd", 4);
        using Declared = std::vector<SafetensorsWriter::Declared>;
        const auto create = [&](Declared declared) {
            return SafetensorsWriter::create(m_path, std::move(declared));
        };
        QVERIFY(!create({{"a", DType::F32, {1}}, {"a", DType::F32, {1}}}));
        QVERIFY(!create({{"__metadata__", DType::F32, {1}}}));
        QVERIFY(!create({{"a", DType::F32, {-1}}}));
        QVERIFY(!create({{"\xff", DType::F32, {1}}}));
        {
            auto writer = create({{"a", DType::F32, {1}}, {"b", DType::F32, {1}}});
            QVERIFY(writer.ok());
            QVERIFY(!writer->append(bytesOf(four.left(3))));
            QVERIFY(writer->append(bytesOf(four)).ok());
            QVERIFY(!writer->commit()); // b is missing
            QVERIFY(!fs::exists(m_path));
            QVERIFY(writer->append(bytesOf(four)).ok());
            QVERIFY(!writer->append(bytesOf(four)));
        }
        QVERIFY(!fs::exists(m_path));
        for (const auto& entry : fs::directory_iterator(m_path.parent_path()))
            QVERIFY2(entry.path().string().find(".tmp-") == std::string::npos,
                     entry.path().c_str());
    }

private:
    void write(const QByteArray& bytes) const
    {
        std::ofstream(m_path, std::ios::binary).write(bytes.constData(), bytes.size());
    }
    QTemporaryDir m_temporary;
    fs::path m_path;
};

QTEST_APPLESS_MAIN(TestSafetensors)
#include "tst_safetensors.moc"
