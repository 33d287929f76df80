// SPDX-License-Identifier: GPL-3.0-or-later
// Stored weights of every encoding against the gguf package and PyTorch (make_storage_goldens.py).
#include "core/checkpoint/checkpoint.h"

#include <bit>
#include <cmath>
#include <cstring>

#include <QtTest>

#include <nlohmann/json.hpp>

#include "core/checkpoint/ggml_types.h"
#include "core/checkpoint/tensor_decode.h"

namespace fs = std::filesystem;
using namespace mla;

namespace
{

fs::path stored(const std::string& name)
{
    return fs::path(MLA_TEST_DATA) / "golden/data/storage" / name;
}

Checkpoint opened(const fs::path& path)
{
    auto checkpoint = Checkpoint::open(path);
    if (!checkpoint)
        qFatal("%s", checkpoint.error().text().c_str());
    return std::move(checkpoint).value();
}

std::vector<float> numbersOf(const SafetensorsFile& file, const std::string& name)
{
    std::vector<float> numbers(static_cast<std::size_t>(file.tensors().at(name).elements()));
    decodeNumbers(file.tensors().at(name).dtype, file.bytes(name).value(), numbers);
    return numbers;
}

std::vector<float> numbersOf(const Checkpoint& checkpoint, const std::string& name)
{
    std::vector<float> numbers(static_cast<std::size_t>(checkpoint.info(name)->elements()));
    if (const Status read = checkpoint.readFloat32(name, numbers); !read)
        qFatal("%s", read.error().text().c_str());
    return numbers;
}

/// Equal bit for bit, but for the sign of zero.
bool equal(const std::vector<float>& a, const std::vector<float>& b)
{
    return a == b;
}

} // namespace

class TestStorage : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void ggmlBlocks_data()
    {
        QTest::addColumn<int>("type");
        for (const int type : {0, 1, 2, 3, 6, 7, 8, 10, 11, 12, 13, 14, 30})
            QTest::newRow(ggmlTypeText(static_cast<std::uint32_t>(type)).c_str()) << type;
    }
    void ggmlBlocks()
    {
        QFETCH(int, type);
        const GgmlTraits& traits = traitsOf(*ggmlTypeFromNumber(static_cast<std::uint32_t>(type)));
        const auto file = SafetensorsFile::open(stored("blocks.safetensors")).value();
        const std::string name(traits.name);
        const std::vector<float> expected = numbersOf(file, name + ".values");
        const auto raw = file.bytes(name + ".raw").value();
        QCOMPARE(raw.size() / traits.blockBytes * traits.blockElements, expected.size());
        std::vector<float> got(expected.size());
        decodeGgml(traits.type, raw, got);
        QVERIFY(equal(got, expected));
    }

    void everyHalf()
    {
        // By the definition of binary16.
        for (unsigned bits = 0; bits < 0x10000; ++bits) {
            const unsigned exponent = (bits >> 10U) & 31U;
            const double mantissa = bits & 1023U;
            double expected = exponent == 0
                                  ? std::ldexp(mantissa, -24)
                                  : std::ldexp(1024 + mantissa, static_cast<int>(exponent) - 25);
            if (exponent == 31)
                expected = mantissa == 0 ? INFINITY : NAN;
            if (bits & 0x8000U)
                expected = -expected;
            const float got = halfToFloat(static_cast<std::uint16_t>(bits));
            QVERIFY(std::isnan(expected) ? std::isnan(got) : got == static_cast<float>(expected));
            QCOMPARE(std::signbit(got), (bits & 0x8000U) != 0);
        }
    }

    void ggufHoldsTheSameModel_data()
    {
        QTest::addColumn<QString>("name");
        QTest::newRow("llama3") << "llama3"; // llama3 rope, tied
        QTest::newRow("biased") << "biased"; // biases of q and k are reordered too
    }
    void ggufHoldsTheSameModel()
    {
        QFETCH(QString, name);
        const std::string tiny = name.toStdString();
        const Checkpoint hf = opened(fs::path(MLA_TEST_DATA) / "golden/data/tiny" / tiny);
        const Checkpoint gguf = opened(stored(tiny + ".gguf"));
        QVERIFY2(gguf.warnings().empty(),
                 gguf.warnings().empty() ? "" : gguf.warnings()[0].c_str());
        for (const ExpectedTensor& expected : expectedTensors(hf.config())) {
            QCOMPARE(gguf.info(expected.name)->shape, expected.shape);
            QVERIFY2(equal(numbersOf(gguf, expected.name), numbersOf(hf, expected.name)),
                     expected.name.c_str());
        }
        ModelConfig same = gguf.config();
        same.dtype = hf.config().dtype;
        // The file keeps what llama3 rope does to the frequencies, not its parameters.
        const auto frequencies = inverseFrequencies(same.rope, same.headDim);
        const auto wanted = inverseFrequencies(hf.config().rope, same.headDim);
        for (std::size_t i = 0; i < wanted.size(); ++i)
            QVERIFY(std::abs(frequencies[i] / wanted[i] - 1) < 1e-5);
        QCOMPARE(same.rope.type, hf.config().rope.type);
        same.rope = hf.config().rope;
        QVERIFY(same == hf.config());
        QCOMPARE(gguf.parameterCount(), hf.parameterCount());
        QVERIFY(gguf.tiedHead());
    }

    void quantisedTensorsAreDecoded()
    {
        const Checkpoint gguf = opened(stored("quantised.gguf"));
        const auto expected = SafetensorsFile::open(stored("quantised.safetensors")).value();
        const std::string layer = "model.layers.1.";
        QCOMPARE(gguf.storage(layer + "self_attn.q_proj.weight").value(), std::string("Q4_1"));
        QCOMPARE(gguf.storage(layer + "mlp.down_proj.weight").value(), std::string("F16"));
        QCOMPARE(gguf.info(layer + "self_attn.q_proj.weight")->dtype, DType::F32);
        QCOMPARE(gguf.info(layer + "mlp.down_proj.weight")->dtype, DType::F16);
        QVERIFY(!gguf.bytes(layer + "self_attn.q_proj.weight"));
        QVERIFY(gguf.bytes(layer + "mlp.down_proj.weight").ok());
        for (const auto& [name, info] : expected.tensors())
            QVERIFY2(equal(numbersOf(gguf, name), numbersOf(expected, name)), name.c_str());
    }

    void qwen2Metadata()
    {
        // Its rows are not reordered, and YaRN comes with it; the model itself is incomplete.
        const auto refused = Checkpoint::open(stored("qwen2.gguf"));
        QVERIFY(!refused);
        QVERIFY(refused.error().text().find("qwen2.gguf") != std::string::npos);
    }

    void fp8_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("storage");
        QTest::newRow("blocks") << "fp8"
                                << "F8_E4M3, 16x12 scales";
        QTest::newRow("rows") << "fp8-channel"
                              << "F8_E4M3, a scale each row";
    }
    void fp8()
    {
        QFETCH(QString, name);
        QFETCH(QString, storage);
        const Checkpoint checkpoint = opened(stored(name.toStdString()));
        QVERIFY(checkpoint.warnings().empty());
        const std::string query = "model.layers.0.self_attn.q_proj.weight";
        QCOMPARE(checkpoint.storage(query).value(), storage.toStdString());
        QCOMPARE(checkpoint.info(query)->dtype, DType::F32);
        QVERIFY(!checkpoint.bytes(query));
        QVERIFY(checkpoint.bytes("model.layers.0.self_attn.o_proj.weight").ok());
        const auto expected =
            SafetensorsFile::open(stored(name.toStdString() + ".safetensors")).value();
        for (const auto& [tensor, info] : expected.tensors())
            QVERIFY2(equal(numbersOf(checkpoint, tensor), numbersOf(expected, tensor)),
                     tensor.c_str());
    }

    void realModel()
    {
        const fs::path directory = qEnvironmentVariable("MLA_SMOLLM2_DIR").toStdString();
        if (directory.empty())
            QSKIP("MLA_SMOLLM2_DIR is not set (installer/test.sh sets it)");
        fs::path gguf;
        for (const auto& entry : fs::directory_iterator(directory))
            if (entry.path().extension() == ".gguf")
                gguf = entry.path();
        if (gguf.empty())
            QSKIP("no .gguf file in MLA_SMOLLM2_DIR (installer/write_smollm2.py leaves one there)");
        // The directory is the same model as Transformers reads it, rounded to bfloat16.
        const Checkpoint ours = opened(gguf);
        const Checkpoint theirs = opened(directory);
        for (const ExpectedTensor& expected : expectedTensors(theirs.config())) {
            std::vector<float> got = numbersOf(ours, expected.name);
            for (float& value : got) { // to the nearest, ties to even
                const auto bits = std::bit_cast<std::uint32_t>(value);
                const std::uint32_t rounded = bits + 0x7FFFU + ((bits >> 16U) & 1U);
                value = std::bit_cast<float>(rounded & 0xFFFF0000U);
            }
            QVERIFY2(equal(got, numbersOf(theirs, expected.name)), expected.name.c_str());
        }
        QVERIFY(ours.config().rope == theirs.config().rope);
        // Transformers keeps the fp32 number's digits; both are the same fp32 number.
        QVERIFY(static_cast<float>(ours.config().rmsNormEps) ==
                static_cast<float>(theirs.config().rmsNormEps));
        QCOMPARE(ours.config().eosTokenIds, theirs.config().eosTokenIds);
    }
};

QTEST_APPLESS_MAIN(TestStorage)
#include "tst_storage.moc"
