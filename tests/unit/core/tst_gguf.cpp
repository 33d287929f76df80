// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/gguf.h"

#include <fstream>
#include <limits>

#include <QElapsedTimer>
#include <QTemporaryDir>
#include <QtTest>

#include <nlohmann/json.hpp>

#include "core/checkpoint/gguf_config.h"
#include "core/checkpoint/gguf_header.h"
#include "tests/support/gguf_bytes.h"

namespace fs = std::filesystem;
using namespace mla;
using mla::test::GgufBytes;

namespace
{

constexpr std::uint32_t f32 = 0, q4_0 = 2;
constexpr std::uint32_t uint32Type = 4, boolType = 7, stringType = 8, arrayType = 9;
constexpr std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();

Result<GgufHeader> parsed(const std::string& text)
{
    return parseGgufHeader(std::as_bytes(std::span(text.data(), text.size())), "x.gguf");
}

GgufBytes oneTensor(const std::vector<std::uint64_t>& dims, std::uint32_t type,
                    std::uint64_t offset, std::size_t dataBytes)
{
    GgufBytes bytes;
    bytes.start(1, 0).tensor("weight", dims, type, offset).data(dataBytes);
    return bytes;
}

/// A llama file's smallest metadata, for keys to be added to.
class LlamaFile
{
public:
    void integer(const std::string& name, std::uint32_t value)
    {
        m_body.key(name, uint32Type).number(value);
        ++m_keys;
    }
    void real(const std::string& name, float value)
    {
        m_body.key(name, 6).number(value);
        ++m_keys;
    }
    void word(const std::string& name, const std::string& value)
    {
        m_body.key(name, stringType).string(value);
        ++m_keys;
    }
    void sizes()
    {
        integer("llama.embedding_length", 64);
        integer("llama.feed_forward_length", 128);
        integer("llama.block_count", 2);
        integer("llama.attention.head_count", 4);
        integer("llama.context_length", 512);
        integer("llama.vocab_size", 256);
        real("llama.attention.layer_norm_rms_epsilon", 1e-5F);
    }
    void save(const fs::path& path)
    {
        GgufBytes whole;
        whole.start(0, m_keys);
        std::ofstream(path, std::ios::binary) << whole.text << m_body.text;
    }

private:
    GgufBytes m_body;
    std::uint64_t m_keys = 0;
};

} // namespace

class TestGguf : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void init() { m_dir = std::make_unique<QTemporaryDir>(); }

    void readsMetadataOfEveryType()
    {
        GgufBytes bytes;
        bytes.start(0, 14);
        bytes.key("u8", 0).number<std::uint8_t>(200).key("i8", 1).number<std::int8_t>(-3);
        bytes.key("u16", 2).number<std::uint16_t>(60000).key("i16", 3).number<std::int16_t>(-300);
        bytes.key("u32", 4).number<std::uint32_t>(4000000000U).key("i32", 5).number(-70000);
        bytes.key("f32", 6).number(0.5F).key("f64", 12).number(0.1);
        bytes.key("u64", 10).number(huge).key("i64", 11).number<std::int64_t>(-5000000000);
        bytes.key("yes", boolType).number<std::uint8_t>(1);
        bytes.key("name", stringType).string("Ġa");
        bytes.key("list", arrayType).number(uint32Type).number<std::uint64_t>(3);
        bytes.number<std::uint32_t>(7).number<std::uint32_t>(8).number<std::uint32_t>(9);
        bytes.key("words", arrayType).number(stringType).number<std::uint64_t>(2);
        bytes.string("a").string("");
        const auto header = parsed(bytes.text);
        QVERIFY2(header.ok(), header.ok() ? "" : header.error().text().c_str());
        const GgufMetadata& metadata = header.value().metadata;
        QCOMPARE(metadata.integer("u8").value(), std::int64_t{200});
        QCOMPARE(metadata.integer("i8").value(), std::int64_t{-3});
        QCOMPARE(metadata.integer("u16").value(), std::int64_t{60000});
        QCOMPARE(metadata.integer("i16").value(), std::int64_t{-300});
        QCOMPARE(metadata.integer("u32").value(), std::int64_t{4000000000});
        QCOMPARE(metadata.integer("i32").value(), std::int64_t{-70000});
        QCOMPARE(metadata.integer("i64").value(), std::int64_t{-5000000000});
        QCOMPARE(metadata.number("f32").value(), 0.5);
        QCOMPARE(metadata.number("f64").value(), 0.1);
        QCOMPARE(metadata.number("i32").value(), -70000.0);
        QVERIFY(metadata.boolean("yes").value());
        QCOMPARE(metadata.text("name").value(), std::string("Ġa"));
        QCOMPARE(metadata.integers("list").value(), (std::vector<std::int64_t>{7, 8, 9}));
        QCOMPARE(metadata.numbers("list").value(), (std::vector<double>{7, 8, 9}));
        QCOMPARE(metadata.texts("words").value(), (std::vector<std::string>{"a", ""}));
        QCOMPARE(metadata.integer("absent", 5).value(), std::int64_t{5});
        // Another kind is an error, with a fallback too, and so is a number beyond 63 bits.
        for (const auto& error :
             {metadata.integer("u64").error(), metadata.integer("name", 1).error(),
              metadata.integer("list").error(), metadata.integer("absent").error()})
            QVERIFY2(error.text().find("x.gguf: metadata key '") == 0, error.text().c_str());
        QVERIFY(!metadata.texts("list") && !metadata.integers("words") && !metadata.boolean("u8"));
        QVERIFY(!metadata.numbers("words") && !metadata.text("words") && !metadata.number("yes"));
    }

    void stringsMustBeUtf8()
    {
        GgufBytes bytes;
        bytes.start(0, 2).key("name", stringType).string("\xFF\xFE");
        bytes.key("words", arrayType).number(stringType).number<std::uint64_t>(2);
        bytes.string("fine").string("\xC0");
        const auto header = parsed(bytes.text);
        QVERIFY(header.ok());
        QVERIFY(!header.value().metadata.text("name"));
        QVERIFY(header.value().metadata.texts("words").error().text().find("element 1") !=
                std::string::npos);
    }

    void placesTensors()
    {
        GgufBytes bytes;
        bytes.start(2, 0, 2); // version 2 has the same layout
        bytes.tensor("a", {32, 3}, q4_0, 0).tensor("b", {5}, f32, 64).data(64 + 20);
        const auto header = parsed(bytes.text);
        QVERIFY2(header.ok(), header.ok() ? "" : header.error().text().c_str());
        const GgufTensor& a = header.value().tensors.at("a");
        QCOMPARE(a.shape, (std::vector<std::int64_t>{3, 32})); // slowest first
        QCOMPARE(a.end - a.begin, std::uint64_t{3 * 18});
        QCOMPARE(header.value().dataStart % 32, std::uint64_t{0});
        QCOMPARE(header.value().tensors.at("b").end, std::uint64_t{84});
    }

    void hostileHeadersAreRefused_data();
    void hostileHeadersAreRefused()
    {
        QFETCH(QByteArray, file);
        QFETCH(QString, named);
        QElapsedTimer timer;
        timer.start();
        const auto header = parsed(file.toStdString());
        QVERIFY(timer.elapsed() < 1000);
        QVERIFY(!header);
        QCOMPARE(header.error().code, ErrorCode::BadInput);
        const std::string text = header.error().text();
        QVERIFY2(text.starts_with("x.gguf: "), text.c_str());
        QVERIFY2(text.find(named.toStdString()) != std::string::npos, text.c_str());
    }

    void everyTruncationIsRefused()
    {
        std::ifstream in(fs::path(MLA_TEST_DATA) / "golden/data/storage/qwen2.gguf",
                         std::ios::binary);
        const std::string whole((std::istreambuf_iterator<char>(in)), {});
        QVERIFY(parsed(whole).ok());
        for (std::size_t size = 0; size < whole.size() - 32; ++size)
            QVERIFY2(!parsed(whole.substr(0, size)), std::to_string(size).c_str());
    }

    void findsTheOneFileOfADirectory()
    {
        const fs::path dir = m_dir->path().toStdString();
        QVERIFY(!findGguf(dir).value());
        QVERIFY(!findGguf(dir / "absent.gguf").value());
        std::ofstream(dir / "a.gguf") << "x";
        QCOMPARE(*findGguf(dir).value(), dir / "a.gguf");
        QCOMPARE(*findGguf(dir / "a.gguf").value(), dir / "a.gguf");
        std::ofstream(dir / "b.gguf") << "x";
        QVERIFY(findGguf(dir).error().text().find("a.gguf, b.gguf") != std::string::npos);
        QCOMPARE(*findGguf(dir / "b.gguf").value(), dir / "b.gguf");
        std::ofstream(dir / "config.json") << "{}";
        QVERIFY(!findGguf(dir).value()); // a Hugging Face directory
    }

    void configFollowsTheMetadata()
    {
        LlamaFile file;
        file.word("general.architecture", "llama");
        file.sizes();
        const nlohmann::json config = configOf(file);
        QCOMPARE(config.at("head_dim").get<int>(), 16);
        QCOMPARE(config.at("num_key_value_heads").get<int>(), 4); // absent: as many as heads
        QCOMPARE(config.at("rms_norm_eps").get<double>(), 1e-5);
        QCOMPARE(config.at("rope_parameters").at("rope_type").get<std::string>(),
                 std::string("default"));
        QVERIFY(config.at("eos_token_id").is_null());
    }

    void scalingOfOlderFilesIsLinear()
    {
        LlamaFile file;
        file.word("general.architecture", "llama");
        file.sizes();
        file.real("llama.rope.scale_linear", 2);
        const nlohmann::json rope = configOf(file).at("rope_parameters");
        QCOMPARE(rope.at("rope_type").get<std::string>(), std::string("linear"));
        QCOMPARE(rope.at("factor").get<double>(), 2.0);
    }

    void unsupportedKeysAreRefused_data()
    {
        QTest::addColumn<QString>("key");
        QTest::addColumn<double>("value");
        QTest::newRow("experts") << "llama.expert_count" << 8.0;
        QTest::newRow("window") << "llama.attention.sliding_window" << 4096.0;
        QTest::newRow("partial rotary") << "llama.rope.dimension_count" << 8.0;
        QTest::newRow("value heads") << "llama.attention.value_length" << 32.0;
        QTest::newRow("score scale") << "llama.attention.scale" << 0.5;
        QTest::newRow("split") << "split.count" << 3.0;
    }
    void unsupportedKeysAreRefused()
    {
        QFETCH(QString, key);
        QFETCH(double, value);
        LlamaFile file;
        file.word("general.architecture", "llama");
        file.sizes();
        if (value < 1)
            file.real(key.toStdString(), static_cast<float>(value));
        else
            file.integer(key.toStdString(), static_cast<std::uint32_t>(value));
        const std::string text = refusal(file);
        QVERIFY2(text.find("'" + key.toStdString() + "'") != std::string::npos, text.c_str());
    }

    void unknownNamesAreRefused()
    {
        LlamaFile rope;
        rope.word("general.architecture", "llama");
        rope.sizes();
        rope.word("llama.rope.scaling.type", "longrope");
        QVERIFY(refusal(rope).find("'longrope'") != std::string::npos);
        LlamaFile architecture;
        architecture.word("general.architecture", "gemma3");
        QVERIFY(refusal(architecture).find("'gemma3'") != std::string::npos);
        LlamaFile nothing;
        QVERIFY(refusal(nothing).find("'general.architecture' is missing") != std::string::npos);
    }

    void tensorNames()
    {
        QCOMPARE(hfTensorName("blk.12.attn_q.weight"),
                 std::string("model.layers.12.self_attn.q_proj.weight"));
        QCOMPARE(hfTensorName("blk.0.attn_q_norm.weight"),
                 std::string("model.layers.0.self_attn.q_norm.weight"));
        QCOMPARE(hfTensorName("output.weight"), std::string("lm_head.weight"));
        for (const char* name : {"", "blk", "blk.", "blk.1", "blk.1.", "blk..", "blk.1.x.weight",
                                 "rope_freqs.weight", "blk.attn_q.weight"})
            QCOMPARE(hfTensorName(name), std::string(name));
    }

private:
    nlohmann::json configOf(LlamaFile& file) const
    {
        const auto config = open(file);
        if (!config)
            qFatal("%s", config.error().text().c_str());
        return config.value();
    }
    std::string refusal(LlamaFile& file) const
    {
        const auto config = open(file);
        return config ? std::string() : config.error().text();
    }
    Result<nlohmann::json> open(LlamaFile& file) const
    {
        const fs::path path = fs::path(m_dir->path().toStdString()) / "x.gguf";
        file.save(path);
        MLA_TRY(opened, GgufFile::open(path));
        return ggufConfig(opened);
    }
    std::unique_ptr<QTemporaryDir> m_dir;
};

void TestGguf::hostileHeadersAreRefused_data()
{
    QTest::addColumn<QByteArray>("file");
    QTest::addColumn<QString>("named");
    const auto row = [](const char* name, const GgufBytes& bytes, const char* named) {
        QTest::newRow(name) << QByteArray::fromStdString(bytes.text) << named;
    };
    row("empty", {}, "reaches beyond the file");
    row("mark", GgufBytes{std::string("GGML") + std::string(20, '\0')}, "does not begin with");
    row("version 1", GgufBytes().start(0, 0, 1), "version 1");
    row("version 4", GgufBytes().start(0, 0, 4), "version 4");
    row("big-endian", GgufBytes().start(0, 0, 3U << 24U), "big-endian");
    row("tensor count", GgufBytes().start(huge, 0), "the number of tensors");
    row("key count", GgufBytes().start(0, huge / 2), "the number of metadata keys");
    row("key length", GgufBytes().start(0, 1).number(huge).number(1), "a metadata key");
    row("key beyond file", GgufBytes().start(0, 1).number<std::uint64_t>(60000).data(0),
        "reaches beyond the file");
    row("empty key", GgufBytes().start(0, 1).key("", boolType).number('\1'), "not valid text");
    row("key not UTF-8", GgufBytes().start(0, 1).key("\xFF", boolType).number('\1'),
        "not valid text");
    row("value type", GgufBytes().start(0, 1).key("a.b", 13).data(8), "'a.b' has the unknown type");
    row("repeated key",
        GgufBytes().start(0, 2).key("k", boolType).number('\1').key("k", boolType).number('\1'),
        "'k' stands there twice");
    row("string length", GgufBytes().start(0, 1).key("k", stringType).number(huge).data(8), "'k'");
    row("array count",
        GgufBytes().start(0, 1).key("k", arrayType).number(uint32Type).number(huge).data(8),
        "overflow 64 bits");
    row("array beyond file",
        GgufBytes()
            .start(0, 1)
            .key("k", arrayType)
            .number(uint32Type)
            .number<std::uint64_t>(1000)
            .data(8),
        "'k' of 4000 bytes");
    row("strings beyond file",
        GgufBytes().start(0, 1).key("k", arrayType).number(stringType).number(huge).data(64),
        "'k' holds");
    GgufBytes nested;
    nested.start(0, 1).key("k", arrayType);
    for (int depth = 0; depth < 100; ++depth)
        nested.number(arrayType).number<std::uint64_t>(1);
    row("nesting", nested, "nested too deeply");
    row("no dimensions", oneTensor({}, f32, 0, 4), "'weight' has 0 dimensions");
    row("five dimensions", oneTensor({1, 1, 1, 1, 1}, f32, 0, 4), "'weight' has 5 dimensions");
    row("negative size", oneTensor({huge}, f32, 0, 4), "'weight'");
    row("elements overflow", oneTensor({1U << 31U, 1U << 31U, 1U << 31U}, f32, 0, 4),
        "overflows 64 bits");
    row("bytes overflow", oneTensor({1ULL << 62U}, f32, 0, 4), "overflows 64 bits");
    row("end overflows", oneTensor({8}, f32, huge - 31, 32), "overflows 64 bits");
    row("partial block", oneTensor({40, 2}, q4_0, 0, 64), "no multiple of the 32");
    row("type by name", oneTensor({32}, 20, 0, 64), "IQ4_NL");
    row("unknown type", oneTensor({32}, 99, 0, 64), "type 99");
    row("unaligned", oneTensor({8}, f32, 4, 64), "no multiple of the alignment 32");
    row("beyond data", oneTensor({8}, f32, 32, 32), "reach beyond the data section");
    row("far beyond data", oneTensor({8}, f32, 1ULL << 60U, 32), "reach beyond the data section");
    row("overlap",
        GgufBytes().start(2, 0).tensor("a", {16}, f32, 0).tensor("b", {16}, f32, 32).data(96),
        "'b' overlaps tensor 'a'");
    row("repeated tensor",
        GgufBytes().start(2, 0).tensor("a", {8}, f32, 0).tensor("a", {8}, f32, 32).data(64),
        "'a' is named twice");
    row("long name", GgufBytes().start(1, 0).tensor(std::string(65, 'n'), {8}, f32, 0).data(32),
        "a tensor's name is 65 bytes");
    for (const std::uint32_t alignment : {0U, 24U})
        row(alignment == 0 ? "alignment 0" : "alignment 24",
            GgufBytes().start(0, 1).key("general.alignment", uint32Type).number(alignment).data(0),
            "a power of two is expected");
    row("alignment type",
        GgufBytes().start(0, 1).key("general.alignment", stringType).string("32").data(0),
        "must be a UINT32");
}

QTEST_APPLESS_MAIN(TestGguf)
#include "tst_gguf.moc"
