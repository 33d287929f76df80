// SPDX-License-Identifier: GPL-3.0-or-later
// What an export is for: a target that is served with it accepts in Transformers and in vLLM what
// our own engine says it accepts. Qwen2 with large biases, both converters, each layout.
#include <cmath>

#include "tests/support/toy_checkpoint.h"

#include <QFileInfo>
#include <QTemporaryDir>

#include "tests/support/cli_program.h"
#include "tests/support/python_stack.h"

using namespace mla::test;

namespace
{

constexpr double kRateTolerance = 0.01; ///< of the acceptance rate: one percentage point

QJsonObject pooled(const CliResult& result)
{
    return result.json().value("pooled").toObject();
}

} // namespace

class TestExportAcceptance : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase();
    void servedAsMeasured_data();
    void servedAsMeasured();

private:
    [[nodiscard]] QString path(const QString& name) const { return m_dir.filePath(name); }
    /// The export of a draft refined for that layout, made when it is first asked for.
    CliResult exported(const QString& converter, const QString& layout, QString& folder);
    CliResult accept(const QString& draft, const QString& backend, const char* tokens);
    QTemporaryDir m_dir;
};

void TestExportAcceptance::initTestCase()
{
    if (!canImport("transformers"))
        QSKIP("MLA_PYTHON names no Python with Transformers");
    qputenv("HF_HOME", path("hf").toUtf8());
    writeToy("qwen2-wide", path("target").toStdString());
}

CliResult TestExportAcceptance::exported(const QString& converter, const QString& layout,
                                         QString& folder)
{
    const bool stock = layout == "deepseek", transmla = converter == "transmla";
    const QString draft = path(converter), refined = path(converter + (stock ? "-stock" : "-own"));
    folder = path(converter + "-as-" + layout);
    if (!QFileInfo::exists(draft)) {
        // Heads of 32 + 32 and of 24 + 8 dims.
        const CliResult made =
            runCli({"convert", path("target"), "-o", draft, "--converter", converter,
                    "--kv-lora-rank", "72", "--qk-rope-head-dim", transmla ? "32" : "8",
                    "--calibration", "self", "--sequences", "24", "--length", "64", "--json"});
        if (made.exitCode != 0)
            return made;
    }
    if (!QFileInfo::exists(refined)) {
        QStringList options = {"refine",  draft,   "--original",  path("target"),
                               "-o",      refined, "--objective", "functional",
                               "--steps", "20",    "--json"};
        if (stock)
            options << "--layout"
                    << "deepseek";
        const CliResult made = runCli(options);
        if (made.exitCode != 0)
            return made;
    }
    return QFileInfo::exists(folder)
               ? CliResult{0, {}, {}}
               : runCli({"export", refined, "-o", folder, "--layout", layout, "--json"});
}

CliResult TestExportAcceptance::accept(const QString& draft, const QString& backend,
                                       const char* tokens)
{
    QStringList command = {"accept",
                           "--target",
                           path("target"),
                           "--draft",
                           draft,
                           "--tasks",
                           MLA_RESOURCES "/demo/tasks/animals.jsonl," MLA_RESOURCES
                                         "/demo/tasks/weather.jsonl",
                           "--limit",
                           "4",
                           "-k",
                           "4",
                           "--max-new-tokens",
                           tokens,
                           "--min-new-tokens",
                           tokens,
                           "--backend",
                           backend,
                           "--json"};
    if (backend == "native")
        command << "--method"
                << "speculative";
    return runCli(command);
}

void TestExportAcceptance::servedAsMeasured_data()
{
    QTest::addColumn<QString>("converter");
    QTest::addColumn<QString>("layout");
    QTest::addColumn<QString>("backend");
    const auto row = [](const char* converter, const char* layout, const char* backend) {
        QTest::addRow("%s %s %s", converter, layout, backend) << converter << layout << backend;
    };
    for (const char* backend : {"hf", "vllm"}) { // vLLM takes half a minute to start
        row("transmla", "huggingface", backend);
        row("mha2mla", "vllm-plugin", backend);
        row("transmla", "deepseek", backend);
    }
}

void TestExportAcceptance::servedAsMeasured()
{
    QFETCH(QString, converter);
    QFETCH(QString, layout);
    QFETCH(QString, backend);
    if (backend == "vllm" && !canImport("vllm"))
        QSKIP("vLLM is not installed in MLA_PYTHON");
    QString folder;
    const CliResult made = exported(converter, layout, folder);
    QVERIFY2(made.exitCode == 0, made.text());
    // vLLM draws the first token from the prompt, so its steps begin one later: other cuts of the
    // same text, whose rates come together on long ones.
    const char* tokens = backend == "hf" ? "64" : "240";
    const CliResult native = accept(folder, "native", tokens),
                    served = accept(folder, backend, tokens);
    QVERIFY2(native.exitCode == 0, native.text());
    QVERIFY2(served.exitCode == 0, served.text());
    const double ours = pooled(native).value("acceptance_rate").toDouble();
    const double theirs = pooled(served).value("acceptance_rate").toDouble();
    qInfo("%s: native %.4f, %s %.4f", QTest::currentDataTag(), ours, qPrintable(backend), theirs);
    QVERIFY(ours > 0 && ours < 1);
    QVERIFY(pooled(served).value("identical_to_greedy").toBool());
    if (backend == "hf")
        QCOMPARE(theirs, ours); // the same steps
    QVERIFY(std::abs(theirs - ours) <= kRateTolerance);
}

QTEST_GUILESS_MAIN(TestExportAcceptance)
#include "tst_export_acceptance.moc"
