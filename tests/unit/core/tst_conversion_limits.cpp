// SPDX-License-Identifier: GPL-3.0-or-later
// Bounds of design section 4 and cache sizes of section 3, against formulas written out here.
#include "core/convert/conversion_limits.h"
#include "tests/support/smol_config.h"

#include <QTest>

using namespace mla;
using mla::test::smolConfig;

namespace
{

ConvertSettings settings(const char* converter, int rank, int ropeDim)
{
    ConvertSettings s;
    s.converter = converter;
    s.kvLoraRank = rank;
    s.qkRopeHeadDim = ropeDim;
    return s;
}

/// Settings with blocking issues, in order.
QList<ConversionSetting> blocked(const ModelConfig& config, const ConvertSettings& s)
{
    QList<ConversionSetting> list;
    for (const ConversionIssue& issue : conversionIssues(config, s))
        if (issue.blocking)
            list << issue.setting;
    return list;
}

} // namespace

class TestConversionLimits : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void transmlaBounds();
    void mha2mlaBounds();
    void savings();
    void modelsThatAConverterRefuses();
    void elementsOfTheCache();
    void rankOfABudget();
    void budgetsAsText_data();
    void budgetsAsText();
    void bytesOfTheCache();
    void windowsBoundTheCache();
};

void TestConversionLimits::transmlaBounds()
{
    const ConversionLimits limits = conversionLimits(smolConfig(), settings("transmla", 76, 32));
    // even divisors of 64, then whole heads up to all three
    QCOMPARE(limits.ropeDims, std::vector<int>({2, 4, 8, 16, 32, 64, 128, 192}));
    QCOMPARE(limits.freqfolds, std::vector<int>({2, 4, 8, 16, 32})); // k * 64/32 that divide 32
    QCOMPARE(limits.largestRank, 2 * 3 * 64 - 32);
    QVERIFY(checkConversion(smolConfig(), settings("transmla", 352, 32)).ok());
    QCOMPARE(blocked(smolConfig(), settings("transmla", 353, 32)),
             QList{ConversionSetting::KvLoraRank});
    QCOMPARE(blocked(smolConfig(), settings("transmla", 0, 32)),
             QList{ConversionSetting::KvLoraRank});
    QCOMPARE(blocked(smolConfig(), settings("transmla", 76, 24)),
             QList{ConversionSetting::QkRopeHeadDim});
    ConvertSettings fold = settings("transmla", 353, 32);
    fold.freqfold = 6;
    fold.svd = "split";
    QCOMPARE(blocked(smolConfig(), fold),
             QList({ConversionSetting::Svd, ConversionSetting::Freqfold,
                    ConversionSetting::KvLoraRank}));
}

void TestConversionLimits::mha2mlaBounds()
{
    ConvertSettings s = settings("mha2mla", 84, 8);
    ConversionLimits limits = conversionLimits(smolConfig(), s);
    QCOMPARE(limits.ropeDims.size(), std::size_t(32)); // every even number to 64
    QVERIFY(limits.freqfolds.empty());
    QCOMPARE(limits.largestRank, 3 * (128 - 8)); // below d = 576
    s.ropeSelect = "uniform";
    QCOMPARE(conversionLimits(smolConfig(), s).ropeDims, std::vector<int>({2, 4, 8, 16, 32, 64}));
    ModelConfig narrow = smolConfig();
    narrow.hiddenSize = 100;
    QCOMPARE(conversionLimits(narrow, s).largestRank, 100);
    s.kvLoraRank = 101;
    const Status status = checkConversion(narrow, s);
    QVERIFY(!status.ok());
    QCOMPARE(status.error().code, ErrorCode::BadInput);
    QVERIFY(status.error().message.find("100 at most") != std::string::npos);
    QCOMPARE(blocked(smolConfig(), settings("mha2mla", 84, 66)),
             QList{ConversionSetting::QkRopeHeadDim});
}

void TestConversionLimits::savings()
{
    const auto warnings = [](const ConvertSettings& s) {
        std::vector<std::string> hints;
        for (const ConversionIssue& issue : conversionIssues(smolConfig(), s))
            if (!issue.blocking)
                hints.push_back(issue.error.hint);
        return hints;
    };
    QCOMPARE(conversionLimits(smolConfig(), settings("transmla", 1, 32)).largestSavingRank, 351);
    QVERIFY(warnings(settings("transmla", 351, 32)).empty()); // 351 + 32 < 384
    QCOMPARE(warnings(settings("transmla", 352, 32)),
             std::vector<std::string>({"a kv_lora_rank of 351 is the largest that saves"}));
    // All heads rotary and full rank: 192 + 192.
    QCOMPARE(conversionLimits(smolConfig(), settings("transmla", 1, 192)).largestRank, 192);
    QCOMPARE(conversionLimits(smolConfig(), settings("transmla", 1, 192)).largestSavingRank, 191);
}

void TestConversionLimits::modelsThatAConverterRefuses()
{
    ModelConfig normed = smolConfig();
    normed.qkNorm = true;
    QCOMPARE(blocked(normed, settings("transmla", 76, 32)), QList{ConversionSetting::Model});
    QVERIFY(checkConversion(normed, settings("mha2mla", 84, 8)).ok());
    ModelConfig dynamic = smolConfig();
    dynamic.rope.type = RopeType::Dynamic;
    for (const char* converter : {"transmla", "mha2mla"})
        QCOMPARE(blocked(dynamic, settings(converter, 76, 8)), QList{ConversionSetting::Model});
    dynamic.rope.type = RopeType::Yarn; // fixed frequencies
    QVERIFY(checkConversion(dynamic, settings("transmla", 76, 8)).ok());
    ModelConfig draft = smolConfig();
    draft.mla = MlaConfig();
    QCOMPARE(blocked(draft, settings("mha2mla", 84, 8)), QList{ConversionSetting::Model});
    QCOMPARE(blocked(smolConfig(), settings("magic", 84, 8)), QList{ConversionSetting::Model});
}

void TestConversionLimits::elementsOfTheCache()
{
    QCOMPARE(originalCacheElements(smolConfig()), std::int64_t(384));
    // The 28 % rows of design section 15.
    QCOMPARE(plannedCacheElements(smolConfig(), settings("transmla", 76, 32)), std::int64_t(108));
    QCOMPARE(plannedCacheElements(smolConfig(), settings("mha2mla", 84, 8)),
             std::int64_t(84 + 3 * 8));
    ModelConfig normed = smolConfig();
    normed.qkNorm = true; // one RMS scalar per KV head
    QCOMPARE(plannedCacheElements(normed, settings("mha2mla", 84, 8)),
             std::int64_t(84 + 3 * 8 + 3));
}

void TestConversionLimits::rankOfABudget()
{
    const auto rank = [](const ConvertSettings& s, double elements) {
        const Result<int> result = rankForBudget(smolConfig(), s, elements);
        return result ? *result : -1;
    };
    QCOMPARE(rank(settings("transmla", 0, 32), 108), 76);
    QCOMPARE(rank(settings("transmla", 0, 32), 108.9), 76);
    QCOMPARE(rank(settings("mha2mla", 0, 8), 108), 84);
    QCOMPARE(rank(settings("transmla", 0, 32), 33), 1);
    QCOMPARE(rank(settings("transmla", 0, 32), 32), -1);
    QCOMPARE(rank(settings("transmla", 0, 32), 1e9), 352); // no more than the largest
    QCOMPARE(rank(settings("transmla", 0, 24), 108), -1);  // 24 does not divide 64
}

void TestConversionLimits::budgetsAsText_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<double>("elements");
    QTest::newRow("elements") << "108" << 108.0;
    QTest::newRow("percent") << "50%" << 192.0;
    QTest::newRow("exact fraction") << "28.125%" << 108.0;
    QTest::newRow("zero") << "0" << -1.0;
    QTest::newRow("negative") << "-3%" << -1.0;
    QTest::newRow("word") << "half" << -1.0;
    QTest::newRow("empty") << "" << -1.0;
    QTest::newRow("sign alone") << "%" << -1.0;
    QTest::newRow("nan") << "nan" << -1.0;
    QTest::newRow("rest") << "12 elements" << -1.0;
}

void TestConversionLimits::budgetsAsText()
{
    QFETCH(QString, text);
    QFETCH(double, elements);
    const Result<double> budget =
        parseCacheBudget(smolConfig(), text.toStdString(), "--cache-elements");
    if (elements < 0) {
        QVERIFY(!budget.ok());
        QCOMPARE(budget.error().code, ErrorCode::Usage);
        QVERIFY(budget.error().message.starts_with("--cache-elements"));
        return;
    }
    QVERIFY(budget.ok());
    QVERIFY(std::abs(*budget - elements) < 1e-6);
    QCOMPARE(std::floor(*budget), elements);
}

void TestConversionLimits::bytesOfTheCache()
{
    // 8192 tokens x 30 layers x 384 elements x 2 bytes x 4 sequences
    QCOMPARE(cacheBytes(smolConfig(), 384, {8192, 4, 2}), 8192LL * 30 * 384 * 2 * 4);
    QCOMPARE(ownCacheBytes(smolConfig(), {8192, 4, 2}), 8192LL * 30 * 384 * 2 * 4);
    ModelConfig draft = smolConfig(); // ranks may differ from layer to layer
    draft.numHiddenLayers = 2;
    draft.mla = MlaConfig();
    draft.mla->latentRank = {76, 100};
    draft.mla->qkRopeHeadDim = 32;
    draft.mla->ropeKeyHeads = 1;
    QCOMPARE(ownCacheBytes(draft, {10, 1, 4}), 10LL * (108 + 132) * 4);
}

void TestConversionLimits::windowsBoundTheCache()
{
    ModelConfig config = smolConfig();
    config.slidingWindow.assign(30, 0);
    std::fill_n(config.slidingWindow.begin(), 20, 1024);
    QCOMPARE(cacheBytes(config, 384, {4096, 1, 2}), (10LL * 4096 + 20 * 1024) * 384 * 2);
    QCOMPARE(cacheBytes(config, 384, {512, 1, 2}), 30LL * 512 * 384 * 2);
}

QTEST_APPLESS_MAIN(TestConversionLimits)
#include "tst_conversion_limits.moc"
