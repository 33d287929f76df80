// SPDX-License-Identifier: GPL-3.0-or-later
// Draft directories load in Hugging Face Transformers and compute there what mla-draft computes.
#include <cmath>
#include <cstring>
#include <vector>

#include "core/checkpoint/safetensors.h"

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>

namespace
{

const QString kProgram = QStringLiteral(MLA_BIN "/mla-draft");
const QString kCheckpoint = QStringLiteral(MLA_RESOURCES "/demo/stories260K");
constexpr int kNewTokens = 32;
constexpr double kLogitTolerance = 2e-3; ///< of the logits' standard deviation

/// Runs a program; its JSON object from stdout, or an empty one after recording the failure.
QJsonObject runJson(const QString& program, const QStringList& arguments, const QString& home = {})
{
    QProcess process;
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    if (!home.isEmpty())
        environment.insert("HF_HOME", home); // the directory's code is copied there
    process.setProcessEnvironment(environment);
    process.start(program, arguments);
    const bool finished = process.waitForFinished(600000);
    const QByteArray out = process.readAllStandardOutput();
    if (!finished || process.exitCode() != 0) {
        const QByteArray told =
            out + process.readAllStandardError() + process.errorString().toUtf8();
        qCritical("%s %s: %s", qPrintable(program), qPrintable(arguments.join(' ')),
                  told.constData());
        return {};
    }
    return QJsonDocument::fromJson(out).object();
}

/// The tensor `logits` [T, vocab] of a safetensors file; empty on any fault.
std::vector<float> readLogits(const QString& path)
{
    const auto file = mla::SafetensorsFile::open(path.toStdString());
    if (!file)
        return {};
    const auto found = file->tensors().find("logits");
    const auto bytes = file->bytes("logits");
    if (found == file->tensors().end() || found->second.dtype != mla::DType::F32 || !bytes)
        return {};
    std::vector<float> values(bytes->size() / sizeof(float));
    std::memcpy(values.data(), bytes->data(), bytes->size());
    return values;
}

double largestDifference(const std::vector<float>& a, const std::vector<float>& b)
{
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        worst = std::max(worst, std::abs(double(a[i]) - double(b[i])));
    return worst;
}

QString joined(const QJsonArray& ids)
{
    QStringList words;
    for (const QJsonValue& id : ids)
        words << QString::number(id.toInt());
    return words.join(',');
}

} // namespace

class TestHfParity : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void sameLogitsTokensAndCache_data();
    void sameLogitsTokensAndCache();

private:
    QString m_python;
    QString m_text;   ///< ids of a story, prompt and continuation
    QString m_prompt; ///< ids of its beginning
    QTemporaryDir m_work;
};

void TestHfParity::initTestCase()
{
    m_python = qEnvironmentVariable("MLA_PYTHON");
    if (m_python.isEmpty())
        QSKIP("ALL-SKIPPED: MLA_PYTHON does not name a Python with transformers "
              "(installer/setup.sh --backends)");
    QVERIFY2(QFile::exists(kProgram), qPrintable(kProgram + " is not built"));
    QFile golden(QStringLiteral(MLA_TEST_DATA "/golden/data/models.json"));
    QVERIFY(golden.open(QIODevice::ReadOnly));
    const QJsonObject models =
        QJsonDocument::fromJson(golden.readAll()).object()["models"].toObject();
    const QJsonObject story =
        models["stories260K"].toObject()["greedy"].toArray().first().toObject();
    m_prompt = joined(story["prompt_ids"].toArray());
    m_text = m_prompt + ',' + joined(story["ids"].toArray());
    QVERIFY(!m_prompt.isEmpty());
}

void TestHfParity::sameLogitsTokensAndCache_data()
{
    QTest::addColumn<QStringList>("conversion");
    QTest::addColumn<int>("cacheElements"); // r + n_r d_r; the original: 2 G h
    QTest::newRow("original") << QStringList{} << 2 * 4 * 8;
    const auto convert = [](const char* converter, int rank, int ropeDim, QStringList more) {
        return QStringList{"--converter",        converter,
                           "--kv-lora-rank",     QString::number(rank),
                           "--qk-rope-head-dim", QString::number(ropeDim)} +
               more;
    };
    QTest::newRow("transmla") << convert("transmla", 28, 4, {"--freqfold", "2"}) << 28 + 4;
    QTest::newRow("transmla, freqfold 4")
        << convert("transmla", 22, 2, {"--freqfold", "4"}) << 22 + 2;
    QTest::newRow("mha2mla") << convert("mha2mla", 16, 4, {}) << 16 + 4 * 4;
    QTest::newRow("mha2mla, activation-aware")
        << convert("mha2mla", 16, 4,
                   {"--rope-select", "distance-weighted", "--svd", "activation-aware"})
        << 16 + 4 * 4;
    QTest::newRow("mha2mla, split")
        << convert("mha2mla", 21, 4, {"--rope-select", "high", "--svd", "split"}) << 21 + 4 * 4;
    QTest::newRow("mha2mla, no position-free dims") << convert("mha2mla", 32, 8, {}) << 32 + 4 * 8;
}

void TestHfParity::sameLogitsTokensAndCache()
{
    QFETCH(QStringList, conversion);
    QFETCH(int, cacheElements);
    QString model = kCheckpoint;
    if (!conversion.isEmpty()) {
        model = m_work.filePath(
            QString(QTest::currentDataTag()).remove(QRegularExpression("[^a-z0-9]")));
        const QJsonObject done =
            runJson(kProgram, QStringList{"convert", kCheckpoint, "-o", model, "--calibration",
                                          "self", "--sequences", "16", "--length", "64", "--json"} +
                                  conversion);
        QVERIFY(done.contains("output"));
    }

    const QString ours = m_work.filePath("ours.safetensors");
    const QString theirs = m_work.filePath("theirs.safetensors");
    QVERIFY(runJson(kProgram, {"forward", model, "--ids", m_text, "--out", ours, "--json"})
                .contains("argmax"));
    const QString script = QStringLiteral(MLA_TEST_DATA "/support/hf_logits.py");
    const QJsonObject hf =
        runJson(m_python, {script, model, "--ids", m_text, "--out", theirs}, m_work.path());
    QVERIFY(hf.contains("spread"));
    QCOMPARE(hf["model_class"].toString(), conversion.isEmpty()
                                               ? QStringLiteral("LlamaForCausalLM")
                                               : QStringLiteral("MlaDraftForCausalLM"));

    const std::vector<float> a = readLogits(ours);
    const std::vector<float> b = readLogits(theirs);
    QVERIFY(!b.empty());
    QCOMPARE(a.size(), b.size());
    const double relative = largestDifference(a, b) / hf["spread"].toDouble();
    QVERIFY2(relative <= kLogitTolerance, qPrintable(QString::number(relative)));

    for (const QJsonValue& elements : hf["cache_elements"].toArray())
        QCOMPARE(elements.toInt(), cacheElements);

    const QJsonObject greedy = runJson(kProgram, {"generate", model, "--ids", m_prompt, "-n",
                                                  QString::number(kNewTokens), "--json"});
    const QJsonObject hfGreedy = runJson(
        m_python, {script, model, "--ids", m_prompt, "--greedy", QString::number(kNewTokens)},
        m_work.path());
    QVERIFY(!hfGreedy["greedy"].toArray().isEmpty());
    QCOMPARE(greedy["ids"].toArray(), hfGreedy["greedy"].toArray());
}

QTEST_GUILESS_MAIN(TestHfParity)
#include "tst_hf_parity.moc"
