// SPDX-License-Identifier: GPL-3.0-or-later
// Every stored type against values worked out by hand, and sums against closed formulas.
#include "core/checkpoint/tensor_statistics.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>

#include <QTemporaryDir>
#include <QTest>

#include "core/checkpoint/checkpoint.h"
#include "core/pipeline/pipeline.h"
#include <nlohmann/json.hpp>

using namespace mla;

namespace
{

const nlohmann::json config = {{"architectures", {"LlamaForCausalLM"}},
                               {"model_type", "llama"},
                               {"hidden_size", 8},
                               {"intermediate_size", 8},
                               {"num_hidden_layers", 1},
                               {"num_attention_heads", 2},
                               {"num_key_value_heads", 1},
                               {"vocab_size", 16},
                               {"tie_word_embeddings", true}};

struct Stored {
    DType dtype = DType::F32;
    std::vector<std::int64_t> shape;
    std::vector<std::byte> data;
};

template <typename T>
Stored stored(DType dtype, std::vector<std::int64_t> shape, const std::vector<T>& values)
{
    Stored tensor{dtype, std::move(shape), std::vector<std::byte>(values.size() * sizeof(T))};
    std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
    return tensor;
}

/// A checkpoint of zeros and ones with `extra` tensors beside it.
Status writeCheckpoint(const QString& folder, const std::map<std::string, Stored>& extra)
{
    std::map<std::string, Stored> all = extra;
    MLA_TRY(parsed, parseModelConfig(config, "config.json"));
    for (const ExpectedTensor& expected : expectedTensors(parsed)) {
        std::size_t count = 1;
        for (const std::int64_t size : expected.shape)
            count *= static_cast<std::size_t>(size);
        all.try_emplace(expected.name,
                        stored(DType::F32, expected.shape, std::vector<float>(count, 1.0F)));
    }
    std::vector<TensorView> views;
    for (const auto& [name, tensor] : all)
        views.push_back({name, tensor.dtype, tensor.shape, tensor.data});
    std::ofstream(folder.toStdString() + "/config.json") << config.dump();
    return writeSafetensors(folder.toStdString() + "/model.safetensors", views);
}

} // namespace

class TestTensorStatistics : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void everyTypeIsDecoded_data();
    void everyTypeIsDecoded();
    void aRampAcrossBlocks();
    void deviationSurvivesALargeMean();
    void rowsOfAMatrix();
    void nonFiniteValuesAreCountedAndLocated();
    void nothingFiniteHasNoRange();
    void emptyTensor();
    void stopsWhenAsked();
    void measuresNamedTensorsInOrder();
    void unknownTensorIsNamedBeforeAnyIsRead();

private:
    [[nodiscard]] TensorStatistics of(const std::string& name) const
    {
        const Result<Checkpoint> checkpoint = Checkpoint::open(m_folder.path().toStdString());
        if (!checkpoint)
            return {};
        Result<TensorStatistics> result = tensorStatistics(*checkpoint, name);
        return result ? std::move(*result) : TensorStatistics();
    }
    QTemporaryDir m_folder;
};

void TestTensorStatistics::initTestCase()
{
    using U8 = std::uint8_t;
    using U16 = std::uint16_t;
    std::map<std::string, Stored> extra;
    // Least positive subnormal, one, most, and minus one of each small format.
    extra["f16"] = stored<U16>(DType::F16, {4}, {0x0001, 0x3C00, 0x7BFF, 0xBC00});
    extra["bf16"] = stored<U16>(DType::BF16, {4}, {0x0001, 0x3F80, 0x7F7F, 0xBF80});
    extra["e4m3"] = stored<U8>(DType::F8E4M3, {4}, {0x01, 0x38, 0x7E, 0xB8});
    extra["e5m2"] = stored<U8>(DType::F8E5M2, {4}, {0x01, 0x3C, 0x7B, 0xBC});
    extra["f64"] = stored<double>(DType::F64, {4}, {0.25, 1, 1e300, -1});
    extra["i64"] = stored<std::int64_t>(DType::I64, {4}, {2, 1, 1LL << 40, -1});
    extra["i8"] = stored<std::int8_t>(DType::I8, {4}, {2, 1, 127, -1});
    // 0 .. n - 1 in rows that fit no block: mean (n - 1)/2, variance (n^2 - 1)/12.
    std::vector<float> ramp(400 * 1000);
    for (std::size_t i = 0; i < ramp.size(); ++i)
        ramp[i] = static_cast<float>(i);
    extra["ramp"] = stored(DType::F32, {400, 1000}, ramp);
    std::vector<double> offset(200000);
    for (std::size_t i = 0; i < offset.size(); ++i)
        offset[i] = 1e9 + (i % 2 == 0 ? 1 : -1);
    extra["offset"] = stored(DType::F64, {200000}, offset);
    extra["rows"] = stored<float>(DType::F32, {3, 2}, {3, 4, 0, 0, -5, 12});
    const float inf = std::numeric_limits<float>::infinity();
    extra["holes"] = stored<float>(DType::F32, {2, 3}, {1, 2, 3, 4, -inf, std::nanf("")});
    extra["e4m3-nan"] = stored<U8>(DType::F8E4M3, {2}, {0x7F, 0xFF});
    extra["empty"] = stored<float>(DType::F32, {0, 4}, {});
    const Status written = writeCheckpoint(m_folder.path(), extra);
    QVERIFY2(written.ok(), written.ok() ? "" : written.error().text().c_str());
}

void TestTensorStatistics::everyTypeIsDecoded_data()
{
    QTest::addColumn<double>("least");
    QTest::addColumn<double>("most");
    QTest::newRow("f16") << std::ldexp(1.0, -24) << 65504.0;
    QTest::newRow("bf16") << std::ldexp(1.0, -133) << std::ldexp(255.0, 120);
    QTest::newRow("e4m3") << std::ldexp(1.0, -9) << 448.0;
    QTest::newRow("e5m2") << std::ldexp(1.0, -16) << 57344.0;
    QTest::newRow("f64") << 0.25 << 1e300;
    QTest::newRow("i64") << 2.0 << std::ldexp(1.0, 40);
    QTest::newRow("i8") << 2.0 << 127.0;
}

void TestTensorStatistics::everyTypeIsDecoded()
{
    QFETCH(double, least);
    QFETCH(double, most);
    const TensorStatistics found = of(QTest::currentDataTag());
    QCOMPARE(found.elements, std::int64_t(4));
    QCOMPARE(found.minimum.value(), -1.0);
    QCOMPARE(found.maximum.value(), most);
    QCOMPARE(found.absoluteMaximum.value(), most);
    QVERIFY(std::abs(found.mean.value() - (least + most) / 4) <= 1e-15 * most);
    QVERIFY(!found.rowNormMinimum); // no matrix
}

void TestTensorStatistics::aRampAcrossBlocks()
{
    const TensorStatistics found = of("ramp");
    const double n = 400000;
    QCOMPARE(found.elements, std::int64_t(400000));
    QCOMPARE(found.zeros, std::int64_t(1));
    QCOMPARE(found.maximum.value(), n - 1);
    QCOMPARE(found.mean.value(), (n - 1) / 2);
    QCOMPARE(found.deviation.value(), std::sqrt((n * n - 1) / 12));
    // Rows a .. a + 999: sum of squares 1000 a^2 + 999000 a + 332833500.
    QCOMPARE(found.rowNormMinimum.value(), std::sqrt(332833500.0));
    const double a = 399000;
    QCOMPARE(found.rowNormMaximum.value(), std::sqrt(1000 * a * a + 999000 * a + 332833500.0));
}

void TestTensorStatistics::deviationSurvivesALargeMean()
{
    const TensorStatistics found = of("offset");
    QCOMPARE(found.mean.value(), 1e9);
    QCOMPARE(found.deviation.value(), 1.0);
}

void TestTensorStatistics::rowsOfAMatrix()
{
    const TensorStatistics found = of("rows");
    QCOMPARE(found.rowNormMinimum.value(), 0.0);
    QCOMPARE(found.rowNormMaximum.value(), 13.0);
    QCOMPARE(found.zeros, std::int64_t(2));
    QCOMPARE(found.absoluteMaximum.value(), 12.0);
}

void TestTensorStatistics::nonFiniteValuesAreCountedAndLocated()
{
    const TensorStatistics found = of("holes");
    QCOMPARE(found.nans, std::int64_t(1));
    QCOMPARE(found.infinities, std::int64_t(1));
    QCOMPARE(found.firstNonFinite, std::vector<std::int64_t>({1, 1}));
    QCOMPARE(found.elements, std::int64_t(6));
    QCOMPARE(found.mean.value(), 2.5); // of 1, 2, 3, 4
    QCOMPARE(found.deviation.value(), std::sqrt(1.25));
    QCOMPARE(found.rowNormMaximum.value(), 4.0); // of what is finite
}

void TestTensorStatistics::nothingFiniteHasNoRange()
{
    const TensorStatistics found = of("e4m3-nan");
    QCOMPARE(found.nans, std::int64_t(2));
    QVERIFY(!found.minimum && !found.mean && !found.deviation && !found.absoluteMaximum);
}

void TestTensorStatistics::emptyTensor()
{
    const TensorStatistics found = of("empty");
    QCOMPARE(found.name, std::string("empty"));
    QCOMPARE(found.elements, std::int64_t(0));
    QVERIFY(!found.minimum && !found.rowNormMinimum);
}

void TestTensorStatistics::stopsWhenAsked()
{
    const Result<Checkpoint> checkpoint = Checkpoint::open(m_folder.path().toStdString());
    QVERIFY(checkpoint.ok());
    std::stop_source stop;
    stop.request_stop();
    const Result<TensorStatistics> result = tensorStatistics(*checkpoint, "ramp", stop.get_token());
    QVERIFY(!result.ok());
    QCOMPARE(result.error().code, ErrorCode::Cancelled);
}

void TestTensorStatistics::measuresNamedTensorsInOrder()
{
    JobContext job;
    std::vector<std::string> names;
    const auto take = [&](const TensorStatistics& one) { names.push_back(one.name); };
    const std::string model = m_folder.path().toStdString();
    QVERIFY(measureTensors(job, model, {"rows", "f16"}, take).ok());
    QCOMPARE(names, std::vector<std::string>({"rows", "f16"}));
    names.clear();
    QVERIFY(measureTensors(job, model, {}, take).ok());
    QCOMPARE(names, Checkpoint::open(model)->names());
}

void TestTensorStatistics::unknownTensorIsNamedBeforeAnyIsRead()
{
    JobContext job;
    int results = 0;
    const Status status = measureTensors(job, m_folder.path().toStdString(), {"rows", "gone"},
                                         [&](const TensorStatistics&) { ++results; });
    QVERIFY(!status.ok());
    QCOMPARE(status.error().code, ErrorCode::BadInput);
    QVERIFY(status.error().message.find("'gone'") != std::string::npos);
    QCOMPARE(results, 0);
}

QTEST_APPLESS_MAIN(TestTensorStatistics)
#include "tst_tensor_statistics.moc"
