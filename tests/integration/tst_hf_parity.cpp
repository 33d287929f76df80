// SPDX-License-Identifier: GPL-3.0-or-later
// Draft directories load in Hugging Face Transformers and compute there what mla-draft computes.
#include <cmath>
#include <cstring>
#include <vector>

#include "tests/support/toy_checkpoint.h"

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

struct Case {
    const char* name; ///< of the draft directory
    QString options;  ///< of `mla-draft convert`; empty: the original checkpoint
    int cacheElements;
    const char* toy = nullptr; ///< kind of the TOY checkpoint it is made from; else stories260K
};

/// stories260K: H = 8, G = 4, h = 8. TOY: H = 4, G = 2, h = 16. Cache: 2 G h originally, r + n_r
/// d_r after conversion, and n_r scalars with QK-norm.
const std::vector<Case>& cases()
{
    static const std::vector<Case> all = {
        {"stories260K", "", 2 * 4 * 8},
        {"transmla", "transmla --kv-lora-rank 28 --qk-rope-head-dim 4 --freqfold 2", 28 + 4},
        {"transmla-narrow", "transmla --kv-lora-rank 22 --qk-rope-head-dim 2 --freqfold 4", 22 + 2},
        {"mha2mla", "mha2mla --kv-lora-rank 16 --qk-rope-head-dim 4", 16 + 4 * 4},
        {"mha2mla-activation-aware",
         "mha2mla --kv-lora-rank 16 --qk-rope-head-dim 4 --rope-select distance-weighted "
         "--svd activation-aware",
         16 + 4 * 4},
        {"mha2mla-split",
         "mha2mla --kv-lora-rank 21 --qk-rope-head-dim 4 --rope-select high --svd split",
         21 + 4 * 4},
        {"mha2mla-all-rotary", "mha2mla --kv-lora-rank 32 --qk-rope-head-dim 8", 32 + 4 * 8},
        {"qwen2-transmla", "transmla --kv-lora-rank 40 --qk-rope-head-dim 8", 48, "qwen2"},
        {"qwen2-mha2mla", "mha2mla --kv-lora-rank 20 --qk-rope-head-dim 8", 20 + 2 * 8, "qwen2"},
        {"window-mha2mla", "mha2mla --kv-lora-rank 20 --qk-rope-head-dim 8", 20 + 2 * 8,
         "qwen2-window"},
        {"mistral-transmla", "transmla --kv-lora-rank 40 --qk-rope-head-dim 8", 48, "mistral"},
        {"qwen3-mha2mla", "mha2mla --kv-lora-rank 20 --qk-rope-head-dim 8", 20 + 2 * 9, "qwen3"},
        {"yarn-transmla", "transmla --kv-lora-rank 40 --qk-rope-head-dim 8", 48, "yarn"},
        {"yarn-mha2mla", "mha2mla --kv-lora-rank 20 --qk-rope-head-dim 8", 20 + 2 * 8, "yarn"},
    };
    return all;
}

/// Runs a program; its standard output, or nothing after telling what went wrong.
QByteArray run(const QString& program, const QStringList& arguments, const QString& home = {})
{
    QProcess process;
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    if (!home.isEmpty())
        environment.insert("HF_HOME", home); // Transformers copies the directories' code there
    process.setProcessEnvironment(environment);
    process.start(program, arguments);
    const bool finished = process.waitForFinished(280000);
    const QByteArray out = process.readAllStandardOutput();
    if (finished && process.exitStatus() == QProcess::NormalExit && process.exitCode() == 0)
        return out;
    qCritical("%s %s\n%s%s", qPrintable(program), qPrintable(arguments.join(' ')), out.constData(),
              process.readAllStandardError().constData());
    return {};
}

QJsonObject runJson(const QString& program, const QStringList& arguments)
{
    return QJsonDocument::fromJson(run(program, arguments)).object();
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
    void sameLogits_data() { rows(); }
    void sameLogits();
    void sameGreedyTokens_data() { rows(); }
    void sameGreedyTokens();
    void cacheHoldsTheLatent_data() { rows(); }
    void cacheHoldsTheLatent();

private:
    void readStory();
    void rows();
    [[nodiscard]] QString directory(const Case& which) const;
    /// The checkpoint that a case converts; a TOY is written when it is first asked for.
    [[nodiscard]] QString source(const Case& which) const;
    [[nodiscard]] QJsonObject theirs() const { return m_reports[QTest::currentDataTag()]; }
    [[nodiscard]] QString model() const;

    QTemporaryDir m_work;
    QString m_text;                       ///< ids of a story: prompt and continuation
    QString m_prompt;                     ///< ids of its beginning
    QMap<QString, QJsonObject> m_reports; ///< of hf_logits.py, by draft
};

QString TestHfParity::directory(const Case& which) const
{
    return which.options.isEmpty() ? kCheckpoint : m_work.filePath(which.name);
}

QString TestHfParity::source(const Case& which) const
{
    if (!which.toy)
        return kCheckpoint;
    const QString path = m_work.filePath(QString("toy-") + which.toy);
    if (!QFile::exists(path))
        mla::test::writeToy(which.toy, path.toStdString());
    return path;
}

QString TestHfParity::model() const
{
    for (const Case& which : cases())
        if (qstrcmp(which.name, QTest::currentDataTag()) == 0)
            return directory(which);
    return {};
}

void TestHfParity::rows()
{
    QTest::addColumn<int>("cacheElements");
    for (const Case& which : cases())
        QTest::newRow(which.name) << which.cacheElements;
}

void TestHfParity::readStory()
{
    QFile golden(QStringLiteral(MLA_TEST_DATA "/golden/data/models.json"));
    QVERIFY(golden.open(QIODevice::ReadOnly));
    const QJsonObject models = QJsonDocument::fromJson(golden.readAll())["models"].toObject();
    const QJsonArray greedy = models["stories260K"].toObject()["greedy"].toArray();
    m_prompt = joined(greedy.first().toObject()["prompt_ids"].toArray());
    m_text = m_prompt + ',' + joined(greedy.first().toObject()["ids"].toArray());
    QVERIFY(!m_prompt.isEmpty());
}

/// Converts every case, then asks Transformers once: importing it costs more than all models.
void TestHfParity::initTestCase()
{
    const QString python = qEnvironmentVariable("MLA_PYTHON");
    if (python.isEmpty())
        QSKIP("ALL-SKIPPED: MLA_PYTHON does not name a Python with transformers");
    QVERIFY2(QFile::exists(kProgram), qPrintable(kProgram + " is not built"));
    readStory();
    QStringList arguments = {MLA_TEST_DATA "/support/hf_logits.py"};
    for (const Case& which : cases()) {
        arguments << directory(which);
        if (which.options.isEmpty())
            continue;
        const QStringList convert = {"convert", source(which),   "-o",   directory(which),
                                     "--json",  "--calibration", "self", "--sequences",
                                     "16",      "--length",      "64",   "--converter"};
        QVERIFY(runJson(kProgram, convert + which.options.split(' ')).contains("output"));
    }
    arguments << "--ids" << m_text << "--out" << m_work.path();
    arguments << "--prompt" << m_prompt << "--greedy" << QString::number(kNewTokens);
    for (const QByteArray& line : run(python, arguments, m_work.path()).trimmed().split('\n')) {
        const QJsonObject report = QJsonDocument::fromJson(line).object();
        m_reports[report["name"].toString()] = report;
    }
    QCOMPARE(std::size_t(m_reports.size()), cases().size());
}

void TestHfParity::sameLogits()
{
    const QString file = m_work.filePath("ours.safetensors");
    const QJsonObject forward = runJson(
        kProgram, {"forward", model(), "--ids", m_text, "--out", file, "--overwrite", "--json"});
    QCOMPARE(forward["argmax"].toArray(), theirs()["argmax"].toArray());
    const std::vector<float> a = readLogits(file);
    const std::vector<float> b =
        readLogits(m_work.filePath(QString(QTest::currentDataTag()) + ".safetensors"));
    QVERIFY(!b.empty());
    QCOMPARE(a.size(), b.size());
    const double relative = largestDifference(a, b) / theirs()["spread"].toDouble();
    QVERIFY2(relative <= kLogitTolerance, qPrintable(QString::number(relative)));
}

void TestHfParity::sameGreedyTokens()
{
    const QJsonObject generated = runJson(kProgram, {"generate", model(), "--ids", m_prompt, "-n",
                                                     QString::number(kNewTokens), "--json"});
    QVERIFY(!theirs()["greedy"].toArray().isEmpty());
    QCOMPARE(generated["ids"].toArray(), theirs()["greedy"].toArray());
}

void TestHfParity::cacheHoldsTheLatent()
{
    QFETCH(int, cacheElements);
    const bool original = model() == kCheckpoint;
    QCOMPARE(theirs()["model_class"].toString(),
             QString(original ? "LlamaForCausalLM" : "MlaDraftForCausalLM"));
    const QJsonArray layers = theirs()["cache_elements"].toArray();
    QVERIFY(layers.size() == 5 || layers.size() == 2); // stories260K, TOY
    for (const QJsonValue& elements : layers)
        QCOMPARE(elements.toInt(), cacheElements);
}

QTEST_GUILESS_MAIN(TestHfParity)
#include "tst_hf_parity.moc"
