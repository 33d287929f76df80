// SPDX-License-Identifier: GPL-3.0-or-later
// Smaller drafts by leaving layers out (tests/support/drop_layers.py): they open here, and give
// Transformers' logits. On SmolLM2-135M ($MLA_SMOLLM2_DIR) such a draft is worth something.
#include <cmath>
#include <cstring>
#include <vector>

#include "core/checkpoint/safetensors.h"
#include "tests/support/cli_program.h"

#include <QDir>
#include <QTemporaryDir>

using namespace mla::test;

namespace
{

const QString kIds = "1,403,407,261,378,432,285,383";

QString python()
{
    return qEnvironmentVariable("MLA_PYTHON");
}

CliResult runPython(const QStringList& arguments)
{
    QProcess process;
    process.start(python(), arguments);
    return finished(process, 300);
}

CliResult dropLayers(const QString& source, const QString& destination, const QStringList& which)
{
    return runPython(QStringList{MLA_TEST_DATA "/support/drop_layers.py", source, destination} +
                     which);
}

/// The tensor `logits` of a safetensors file; empty on any fault.
std::vector<float> readLogits(const QString& path)
{
    const auto file = mla::SafetensorsFile::open(path.toStdString());
    const auto bytes = file ? file->bytes("logits") : mla::badInput("unreadable");
    if (!bytes)
        return {};
    std::vector<float> values(bytes->size() / sizeof(float));
    std::memcpy(values.data(), bytes->data(), bytes->size());
    return values;
}

} // namespace

class TestRealDropLayers : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase();
    void logitsAreTransformers_data();
    void logitsAreTransformers();
    void refusals();
    void targetAcceptsPartOfIt();

private:
    [[nodiscard]] QString path(const char* name) const { return m_dir.filePath(name); }
    QTemporaryDir m_dir;
};

void TestRealDropLayers::initTestCase()
{
    if (python().isEmpty())
        QSKIP("MLA_PYTHON names no Python with Transformers");
}

void TestRealDropLayers::logitsAreTransformers_data()
{
    QTest::addColumn<QString>("source");
    QTest::addColumn<QStringList>("which");
    QTest::addColumn<QList<int>>("layers");
    QTest::newRow("stories-layers")
        << demoCheckpoint() << QStringList{"--layers", "0,2,4"} << QList<int>{0, 2, 4};
    // 5 layers: the block that ends before layer 3, two thirds of the depth
    QTest::newRow("stories-keep") << demoCheckpoint() << QStringList{"--keep", "3"}
                                  << QList<int>{0, 3, 4};
    QList<int> kept;
    for (int layer = 0; layer < 30; ++layer)
        if (layer < 16 || layer > 19)
            kept << layer;
    QTest::newRow("smollm2-keep") << qEnvironmentVariable("MLA_SMOLLM2_DIR")
                                  << QStringList{"--keep", "26"} << kept;
}

void TestRealDropLayers::logitsAreTransformers()
{
    QFETCH(QString, source);
    QFETCH(QStringList, which);
    QFETCH(QList<int>, layers);
    if (source.isEmpty())
        QSKIP("MLA_SMOLLM2_DIR names no checkpoint");
    const QString draft = path(QTest::currentDataTag());
    const CliResult dropped = dropLayers(source, draft, which);
    QVERIFY2(dropped.exitCode == 0, dropped.text());
    QList<int> named;
    for (const QJsonValue& layer : dropped.json().value("layers").toArray())
        named << layer.toInt();
    QCOMPARE(named, layers);
    const CliResult inspected = runCli({"inspect", draft, "--json"});
    QCOMPARE(inspected.json().value("num_hidden_layers").toInt(), int(layers.size()));

    const CliResult theirs = runPython(
        {MLA_TEST_DATA "/support/hf_logits.py", draft, "--ids", kIds, "--out", m_dir.path()});
    QVERIFY2(theirs.exitCode == 0, theirs.text());
    const QString file = draft + "-ours.safetensors";
    const CliResult ours = runCli({"forward", draft, "--ids", kIds, "--out", file, "--json"});
    QVERIFY2(ours.exitCode == 0, ours.text());
    QCOMPARE(ours.json().value("argmax"), theirs.json().value("argmax"));
    const std::vector<float> a = readLogits(file), b = readLogits(draft + ".safetensors");
    QVERIFY(!a.empty());
    QCOMPARE(a.size(), b.size());
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        worst = std::max(worst, std::abs(double(a[i]) - double(b[i])));
    QVERIFY(worst <= 2e-3 * theirs.json().value("spread").toDouble());
}

void TestRealDropLayers::refusals()
{
    for (const QStringList& which : {QStringList{"--layers", "0,5"},
                                     {"--layers", "2,1"},
                                     {"--layers", "1,1"},
                                     {"--keep", "6"}}) {
        const CliResult refused = dropLayers(demoCheckpoint(), path("refused"), which);
        QVERIFY2(refused.err.contains("has 5 layers"), refused.text());
        QVERIFY(!QDir(path("refused")).exists());
    }
}

/// What makes recovery mean something: the unconverted draft is far from nothing and from perfect.
void TestRealDropLayers::targetAcceptsPartOfIt()
{
    if (!QDir(path("smollm2-keep")).exists())
        QSKIP("MLA_SMOLLM2_DIR names no checkpoint");
    const CliResult result =
        runCli({"accept", "--target", qEnvironmentVariable("MLA_SMOLLM2_DIR"), "--draft",
                path("smollm2-keep"), "--tasks", "human_eval,instructions", "--limit", "3",
                "--max-new-tokens", "48", "--min-new-tokens", "16", "--json"});
    QVERIFY2(result.exitCode == 0, result.text());
    const double rate =
        result.json().value("pooled").toObject().value("acceptance_rate").toDouble();
    qInfo("acceptance rate %.3f", rate);
    QVERIFY(rate > 0.2 && rate < 0.8);
}

QTEST_GUILESS_MAIN(TestRealDropLayers)
#include "tst_real_drop_layers.moc"
