// SPDX-License-Identifier: GPL-3.0-or-later
// Conversions that keep everything change no logit (design section 4): on the demo checkpoint.
#include "tests/support/exact_conversion.h"

#include <QTest>

using namespace mla;
using namespace mla::test;

class TestExactness : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void logitsStay_data();
    void logitsStay();
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

QTEST_GUILESS_MAIN(TestExactness)
#include "tst_exactness.moc"
