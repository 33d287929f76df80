// SPDX-License-Identifier: GPL-3.0-or-later
// Acceptance in the stacks that people serve with, run for real on the CPU: Transformers' assisted
// generation, and vLLM where it is installed. Texts and counts must be those of our own engine.
#include <QDir>
#include <QFileInfo>
#include <QTemporaryDir>

#include <cmath>

#include "tests/support/cli_program.h"
#include "tests/support/python_stack.h"

using namespace mla::test;

namespace
{

constexpr int k = 4;

QJsonObject pooled(const CliResult& result)
{
    return result.json().value("pooled").toObject();
}

} // namespace

class TestBackends : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase();
    void targetAsDraft_data() { backends(); }
    void targetAsDraft();
    void draftCountsLikeTheEngine_data() { backends(); }
    void draftCountsLikeTheEngine();
    void sampledTextsAreCounted();
    void refusals();

private:
    static void backends();
    /// Why this backend cannot be tried here; empty if it can.
    static QString missing(const QString& backend);
    /// vLLM's attention on CPUs takes no heads as small as the demo's.
    static QString target(const QString& backend)
    {
        return backend == "vllm" ? qEnvironmentVariable("MLA_SMOLLM2_DIR") : demoCheckpoint();
    }
    QString convertedDraft(const QString& backend);
    static CliResult accept(const QString& target, const QString& draft,
                            const QStringList& options);
    QTemporaryDir m_dir;
};

void TestBackends::backends()
{
    QTest::addColumn<QString>("backend");
    QTest::newRow("hf") << "hf";
    QTest::newRow("vllm") << "vllm";
}

void TestBackends::initTestCase()
{
    if (!canImport("transformers"))
        QSKIP("MLA_PYTHON names no Python with Transformers");
}

QString TestBackends::missing(const QString& backend)
{
    if (backend != "vllm")
        return {};
    if (!canImport("vllm"))
        return "vLLM is not installed in MLA_PYTHON";
    return target(backend).isEmpty() ? "MLA_SMOLLM2_DIR names no checkpoint" : QString();
}

QString TestBackends::convertedDraft(const QString& backend)
{
    const bool demo = backend != "vllm";
    const QString draft = m_dir.filePath(demo ? "draft" : "smollm2-draft");
    if (QFileInfo::exists(draft))
        return draft;
    QStringList texts;
    for (const char* task : {"animals", "friends", "lost_and_found", "weather"})
        texts << QStringLiteral(MLA_RESOURCES "/demo/tasks/%1.jsonl").arg(QLatin1String(task));
    const CliResult converted =
        runCli({"convert", target(backend), "-o", draft, "--converter", "transmla",
                "--kv-lora-rank", demo ? "44" : "152", "--qk-rope-head-dim", demo ? "8" : "64",
                "--calibration", demo ? "self" : texts.join(','), "--sequences", demo ? "16" : "8",
                "--length", "64", "--json"});
    return converted.exitCode == 0 ? draft : QString();
}

CliResult TestBackends::accept(const QString& target, const QString& draft,
                               const QStringList& options)
{
    const QString tasks = QStringLiteral(MLA_RESOURCES "/demo/tasks/");
    return runCli(QStringList{"accept", "--target", target, "--draft", draft, "--tasks",
                              tasks + "animals.jsonl," + tasks + "weather.jsonl", "--limit", "3",
                              "-k", QString::number(k), "--max-new-tokens", "40", "--json"} +
                  options);
}

void TestBackends::targetAsDraft()
{
    QFETCH(QString, backend);
    if (const QString reason = missing(backend); !reason.isEmpty())
        QSKIP(qPrintable(reason));
    const CliResult result = accept(target(backend), target(backend), {"--backend", backend});
    QVERIFY2(result.exitCode == 0, result.text());
    QCOMPARE(pooled(result).value("acceptance_rate").toDouble(), 1.0);
    QVERIFY(pooled(result).value("identical_to_greedy").toBool());
    QVERIFY(pooled(result).value("tokens_per_second").toDouble() > 0);
}

/// Transformers drafts from the first token on, as our engine does: the same steps exactly. vLLM
/// takes its first token from the prefill: its steps may fall elsewhere, the texts may not.
void TestBackends::draftCountsLikeTheEngine()
{
    QFETCH(QString, backend);
    if (const QString reason = missing(backend); !reason.isEmpty())
        QSKIP(qPrintable(reason));
    const QString draft = convertedDraft(backend);
    QVERIFY(!draft.isEmpty());
    const CliResult native = accept(target(backend), draft, {"--method", "speculative"});
    QVERIFY2(native.exitCode == 0, native.text());
    const CliResult served = accept(target(backend), draft, {"--backend", backend});
    QVERIFY2(served.exitCode == 0, served.text());
    QVERIFY(pooled(native).value("acceptance_rate").toDouble() < 1);
    QVERIFY(pooled(native).value("acceptance_rate").toDouble() > 0);
    QVERIFY(pooled(served).value("identical_to_greedy").toBool());
    if (backend == "hf")
        for (const char* key : {"steps", "draft_tokens", "accepted_tokens", "histogram"})
            QCOMPARE(pooled(served).value(key), pooled(native).value(key));
    const double difference = pooled(served).value("acceptance_rate").toDouble() -
                              pooled(native).value("acceptance_rate").toDouble();
    qInfo("%s: %+.4f", qPrintable(backend), difference);
    QVERIFY(std::abs(difference) <= 0.02 + (backend == "vllm" ? 0.03 : 0)); // few, short texts
}

void TestBackends::sampledTextsAreCounted()
{
    const QStringList options = {"--backend", "hf", "--temperature", "0.8", "--seed", "3"};
    const QString demo = demoCheckpoint(), draft = convertedDraft("hf");
    QVERIFY(!draft.isEmpty());
    const CliResult first = accept(demo, draft, options), again = accept(demo, draft, options);
    QVERIFY2(first.exitCode == 0, first.text());
    QCOMPARE(pooled(first).value("accepted_tokens"), pooled(again).value("accepted_tokens"));
    QVERIFY(pooled(first).value("identical_to_greedy").isNull());
    const double rate = pooled(first).value("acceptance_rate").toDouble();
    QVERIFY(rate > 0 && rate < 1);
    const CliResult self = accept(
        demo, demo, {"--method", "speculative", "--temperature", "0.8", "--backend", "native"});
    QVERIFY2(self.exitCode == 0, self.text());
    QCOMPARE(pooled(self).value("acceptance_rate").toDouble(), 1.0);
    // Replayed: both passes compute the same distribution but for rounding.
    const CliResult replayed = accept(
        demo, demo, {"--method", "replay", "--temperature", "0.8", "--backend", "native"});
    QVERIFY2(replayed.exitCode == 0, replayed.text());
    QVERIFY(std::abs(pooled(replayed).value("acceptance_rate").toDouble() - 1) < 1e-4);
    QVERIFY(pooled(replayed).value("expected").toBool());
}

void TestBackends::refusals()
{
    const QString demo = demoCheckpoint();
    const CliResult replay = accept(demo, demo, {"--backend", "hf", "--method", "replay"});
    QCOMPARE(replay.exitCode, 2);
    const CliResult unknown = accept(demo, demo, {"--backend", "sglang"});
    QCOMPARE(unknown.exitCode, 2);
    QVERIFY(unknown.text().contains("vllm"));
    const CliResult timed = accept(demo, demo, {"--method", "replay", "--repeats", "2"});
    QCOMPARE(timed.exitCode, 2);
    const CliResult greedy = accept(demo, demo, {"--top-k", "5"});
    QCOMPARE(greedy.exitCode, 2);
}

QTEST_GUILESS_MAIN(TestBackends)
#include "tst_backends.moc"
