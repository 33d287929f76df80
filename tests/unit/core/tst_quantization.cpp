// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/quantization.h"

#include <QtTest>

#include <nlohmann/json.hpp>

using namespace mla;
using nlohmann::json;

namespace
{

Result<std::optional<Fp8Quantization>> parsed(const json& quantization)
{
    return parseQuantization({{"quantization_config", quantization}}, "config.json");
}

json compressed(const json& weights)
{
    return {{"quant_method", "compressed-tensors"},
            {"format", "float-quantized"},
            {"config_groups", {{"group_0", {{"weights", weights}}}}}};
}

} // namespace

class TestQuantization : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void absentIsNone()
    {
        QVERIFY(!parseQuantization(json::object(), "config.json").value());
        QVERIFY(!parsed(nullptr).value());
    }

    void fp8BlocksDefaultTo128()
    {
        const auto fp8 = parsed({{"quant_method", "fp8"}}).value();
        QVERIFY(fp8->block == std::pair(std::int64_t{128}, std::int64_t{128}));
        QCOMPARE(fp8->scaleSuffix, std::string("_scale_inv"));
        QVERIFY(!parsed({{"quant_method", "fp8"}, {"weight_block_size", nullptr}}).value()->block);
        const json named = {{"quant_method", "fp8"},
                            {"weight_block_size", {64, 32}},
                            {"modules_to_not_convert", {"lm_head"}}};
        QVERIFY(parsed(named).value()->block == std::pair(std::int64_t{64}, std::int64_t{32}));
        QCOMPARE(parsed(named).value()->notConverted, std::vector<std::string>{"lm_head"});
    }

    void compressedTensors()
    {
        const json channel = {{"num_bits", 8}, {"type", "float"}, {"strategy", "channel"}};
        QCOMPARE(parsed(compressed(channel)).value()->scaleSuffix, std::string("_scale"));
        QVERIFY(!parsed(compressed(channel)).value()->block);
        const json block = {
            {"num_bits", 8}, {"type", "float"}, {"strategy", "block"}, {"block_structure", {4, 8}}};
        QVERIFY(parsed(compressed(block)).value()->block ==
                std::pair(std::int64_t{4}, std::int64_t{8}));
    }

    void othersAreRefusedByName_data()
    {
        QTest::addColumn<QByteArray>("config");
        QTest::addColumn<QString>("named");
        const auto row = [](const char* named, const json& config) {
            QTest::newRow(named) << QByteArray::fromStdString(config.dump()) << named;
        };
        for (const char* method : {"gptq", "awq", "bitsandbytes", "mxfp4", "quark"})
            row(method, {{"quant_method", method}});
        row("quant_method", {{"quant_method", 8}});
        row("''", json::object());
        row("must be", json::array({1}));
        row("weight_block_size", {{"quant_method", "fp8"}, {"weight_block_size", {128}}});
        row("e5m2", {{"quant_method", "fp8"}, {"fmt", "e5m2"}});
        row("magic", {{"quant_method", "fp8"}, {"activation_scheme", "magic"}});
        row("modules_to_not_convert",
            {{"quant_method", "fp8"}, {"modules_to_not_convert", {1, 2}}});
        row("pack-quantized",
            {{"quant_method", "compressed-tensors"}, {"format", "pack-quantized"}});
        row("config_groups",
            {{"quant_method", "compressed-tensors"}, {"format", "float-quantized"}});
        row("num_bits", compressed({{"num_bits", 4}, {"type", "float"}}));
        row("'int'", compressed({{"num_bits", 8}, {"type", "int"}}));
        row("'group'", compressed({{"type", "float"}, {"strategy", "group"}}));
        row("block_structure", compressed({{"type", "float"}, {"strategy", "block"}}));
        row("weights", compressed(nullptr));
    }
    void othersAreRefusedByName()
    {
        QFETCH(QByteArray, config);
        QFETCH(QString, named);
        const auto refused = parsed(json::parse(config.toStdString()));
        QVERIFY(!refused);
        const std::string text = refused.error().text();
        QVERIFY2(text.find("config.json: 'quantization_config") == 0, text.c_str());
        QVERIFY2(text.find(named.toStdString()) != std::string::npos, text.c_str());
    }

    void gridsMustFitTheWeight()
    {
        Fp8Quantization fp8;
        fp8.block = {128, 128};
        // 300 rows and 200 columns: three and two scales, the last ones of partial blocks.
        const auto grid = scaleGrid(fp8, {300, 200}, {3, 2});
        QVERIFY(grid.has_value());
        QCOMPARE(grid->gridColumns, std::int64_t{2});
        for (const std::vector<std::int64_t>& shape :
             {std::vector<std::int64_t>{2, 2}, {3, 1}, {3}, {}, {3, 2, 1}})
            QVERIFY(!scaleGrid(fp8, {300, 200}, shape));
        QVERIFY(!scaleGrid(fp8, {300}, {3}));
        fp8.block.reset();
        QCOMPARE(scaleGrid(fp8, {300, 200}, {})->rowsPerScale, std::int64_t{300});
        QCOMPARE(scaleGrid(fp8, {300, 200}, {1})->rowsPerScale, std::int64_t{300});
        QCOMPARE(scaleGrid(fp8, {300, 200}, {300, 1})->rowsPerScale, std::int64_t{1});
        QVERIFY(!scaleGrid(fp8, {300, 200}, {200, 1}));
    }
};

QTEST_APPLESS_MAIN(TestQuantization)
#include "tst_quantization.moc"
