// SPDX-License-Identifier: GPL-3.0-or-later
// Conversions that keep everything change no logit (design section 4): on the demo checkpoint, and
// on TOY with large biases, QK-norm, windows and YaRN.
#include "tests/support/exact_conversion.h"
#include "tests/support/toy_checkpoint.h"

#include <QTest>

using namespace mla;
using namespace mla::test;

class TestExactness : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void logitsStay_data();
    void logitsStay();
    void familiesStay_data();
    void familiesStay();
};

void TestExactness::logitsStay_data()
{
    QTest::addColumn<QString>("converter");
    QTest::newRow("mha2mla, d_r = h") << "mha2mla";
    QTest::newRow("transmla, all heads rotary") << "transmla";
}

void TestExactness::logitsStay()
{
    QFETCH(QString, converter);
    const Goldens golden("model_stories260K.safetensors");
    const double worst = exactConversionDifference(stories(), converter.toStdString(),
                                                   golden("input_ids", torch::kInt64));
    qInfo("max |logit difference| = %.2g", worst);
    QVERIFY(worst < 1e-3);
}

void TestExactness::familiesStay_data()
{
    QTest::addColumn<QString>("kind");
    QTest::addColumn<QString>("converter");
    for (const char* kind : {"qwen2", "qwen2-window", "mistral", "yarn", "qwen3"})
        for (const char* converter : {"mha2mla", "transmla"})
            if (qstrcmp(kind, "qwen3") != 0 || qstrcmp(converter, "mha2mla") == 0)
                QTest::newRow(qPrintable(QString("%1, %2").arg(kind, converter)))
                    << kind << converter;
}

void TestExactness::familiesStay()
{
    QFETCH(QString, kind);
    QFETCH(QString, converter);
    const QTemporaryDir folder;
    const std::filesystem::path toy = std::filesystem::path(folder.path().toStdString()) / "toy";
    writeToy(kind.toStdString(), toy);
    // Beyond every window and beyond the original length of YaRN.
    torch::Generator generator = seededGenerator(12, 0);
    const torch::Tensor ids = torch::randint(3, 512, {2, 96}, generator, torch::kInt64);
    const torch::NoGradGuard noGrad;
    const double spread = openModel(toy).logits(ids).std().item<double>();
    const double worst = exactConversionDifference(toy, converter.toStdString(), ids) / spread;
    qInfo("max |logit difference| / spread = %.2g", worst);
    QVERIFY(worst < 1e-3);
}

QTEST_GUILESS_MAIN(TestExactness)
#include "tst_exactness.moc"
