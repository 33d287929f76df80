// SPDX-License-Identifier: GPL-3.0-or-later
// The command line's contract where drafts are made and measured, on the embedded checkpoint.
#include <cmath>

#include <QDir>
#include <QFileInfo>
#include <QTemporaryDir>

#include "tests/support/cli_program.h"

using namespace mla::test;

class TestCliDrafts : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase();
    void spectrumHasEveryLayer();
    void convertReportsLayers();
    void convertRefusesWhatExists();
    void convertRefusesImpossibleSizes();
    void fidelityOfTheConversion();
    void fidelityDiagnoses();
    void fidelityRefusesLooseOptions();
    void refineListsItsLayers();
    void refineIsInterrupted();
    void acceptMeasuresTasks();
    void acceptOfTheTargetItselfIsComplete();
    void speculativeEqualsGreedy();
    void exportIsVerified();
    void reportWritesTables();
    void stepsTravelAsSpecBench();
    void quietIsSilent();
    void demoIsInterruptedAndResumed();

private:
    QTemporaryDir m_dir;
    [[nodiscard]] QString path(const QString& name) const { return m_dir.filePath(name); }
    [[nodiscard]] QStringList convertArguments(const QString& output) const
    {
        return {"convert",
                demoCheckpoint(),
                "-o",
                output,
                "--converter",
                "transmla",
                "--kv-lora-rank",
                "28",
                "--qk-rope-head-dim",
                "4",
                "--freqfold",
                "2",
                "--sequences",
                "8",
                "--length",
                "32",
                "--study",
                path("study.h5"),
                "--json"};
    }
    [[nodiscard]] QStringList acceptArguments(const QString& draft) const
    {
        return {"accept",
                "--target",
                demoCheckpoint(),
                "--draft",
                draft,
                "--tasks",
                path("cats.jsonl") + "," + path("dogs.jsonl"),
                "-k",
                "3",
                "--max-new-tokens",
                "24",
                "--study",
                path("study.h5"),
                "--json"};
    }
    static void compareRunKeys(const QJsonObject& json, const QString& output);
};

void TestCliDrafts::initTestCase()
{
    QVERIFY2(QFile::exists(programPath()), qPrintable(programPath() + " is not built"));
    QVERIFY(writeText(path("cats.jsonl"),
                      "{\"question_id\": 1, \"turns\": [\"Once upon a time, a cat\"]}\n"
                      "{\"question_id\": 2, \"turns\": [\"The cat was\"]}\n"));
    QVERIFY(writeText(path("dogs.jsonl"),
                      "{\"question_id\": 3, \"turns\": [\"One day, a big dog\"]}\n"));
}

void TestCliDrafts::compareRunKeys(const QJsonObject& json, const QString& output)
{
    QCOMPARE(QFileInfo(json.value("output").toString()).absoluteFilePath(),
             QFileInfo(output).absoluteFilePath());
    QVERIFY(json.value("seconds").toDouble() > 0);
    QVERIFY(json.value("peak_rss_bytes").toDouble() > 1e6);
    for (const QJsonValue& value : json.value("layers").toArray()) {
        const QJsonObject layer = value.toObject();
        for (const char* key : {"layer", "loss_before", "loss_after", "relative_error_before",
                                "relative_error_after", "seconds"})
            QVERIFY2(layer.contains(key), key);
        QVERIFY(layer.value("relative_error_after").toDouble() > 0);
    }
}

void TestCliDrafts::spectrumHasEveryLayer()
{
    const CliResult result =
        runCli({"spectrum", demoCheckpoint(), "--sequences", "4", "--length", "32", "--json"});
    QVERIFY2(result.exitCode == 0, result.text().constData());
    const QJsonArray layers = result.json().value("layers").toArray();
    QCOMPARE(layers.size(), 5);
    for (const QJsonValue& layer : layers) {
        const QJsonArray weights = layer["weights"].toArray();
        QVERIFY(!weights.isEmpty());
        for (qsizetype i = 1; i < weights.size(); ++i)
            QVERIFY(weights.at(i).toDouble() <= weights.at(i - 1).toDouble());
    }
}

void TestCliDrafts::convertReportsLayers()
{
    const CliResult result = runCli(convertArguments(path("t")));
    QVERIFY2(result.exitCode == 0, result.text().constData());
    const QJsonObject json = result.json();
    compareRunKeys(json, path("t"));
    QCOMPARE(json.value("layers").toArray().size(), 5);
    for (const QJsonValue& layer : json.value("layers").toArray())
        QVERIFY(layer["loss_before"].isNull() && layer["relative_error_before"].isNull());
    const QJsonObject draft = runCli({"inspect", path("t"), "--json"}).json();
    QCOMPARE(draft.value("attention").toString(), QString("mla"));
    QCOMPARE(draft.value("cache_elements_per_token_per_layer").toInt(), 28 + 4);
    QVERIFY(QFile::exists(path("study.h5")));
}

void TestCliDrafts::convertRefusesWhatExists()
{
    const CliResult refused = runCli(convertArguments(path("t")));
    QVERIFY2(refused.exitCode == 2, refused.text().constData());
    QVERIFY(refused.err.contains("overwrite"));
    const CliResult replaced = runCli(convertArguments(path("t")) + QStringList{"--overwrite"});
    QVERIFY2(replaced.exitCode == 0, replaced.text().constData());
}

void TestCliDrafts::convertRefusesImpossibleSizes()
{
    // d_r must divide head_dim 8; r + d_r may not exceed 2 G h = 64.
    for (const QStringList& sizes :
         {QStringList{"--kv-lora-rank", "28", "--qk-rope-head-dim", "6"},
          QStringList{"--kv-lora-rank", "61", "--qk-rope-head-dim", "4"}}) {
        const CliResult result =
            runCli(QStringList{"convert", demoCheckpoint(), "-o", path("never"), "--converter",
                               "transmla", "--sequences", "4", "--length", "16", "--json"} +
                   sizes);
        QVERIFY2(result.exitCode == 2, result.text().constData());
        QVERIFY(!QFile::exists(path("never")));
    }
}

void TestCliDrafts::fidelityOfTheConversion()
{
    const CliResult result =
        runCli({"fidelity", path("t"), "--original", demoCheckpoint(), "--json"});
    QVERIFY2(result.exitCode == 0, result.text().constData());
    const QJsonArray layers = result.json().value("layers").toArray();
    QCOMPARE(layers.size(), 5);
    double sum = 0;
    for (qsizetype i = 0; i < layers.size(); ++i) {
        QCOMPARE(layers.at(i)["layer"].toInt(), static_cast<int>(i));
        QVERIFY(layers.at(i)["cosine"].toDouble() <= 1);
        QVERIFY(layers.at(i)["attention_kl"].toDouble() >= 0);
        sum += layers.at(i)["relative_error"].toDouble();
    }
    QCOMPARE(result.json().value("mean_relative_error").toDouble(), sum / 5);
}

void TestCliDrafts::fidelityDiagnoses()
{
    const CliResult result =
        runCli({"fidelity", path("t"), "--original", demoCheckpoint(), "--error-sources",
                "--positions", "--attention-map", "1:2", "--attention-map", "0:0", "--prompt",
                "Once upon a time", "--study", path("study.h5"), "--json"});
    QVERIFY2(result.exitCode == 0, result.text().constData());
    const QJsonObject json = result.json();
    const QJsonObject sources = json.value("error_sources").toObject();
    QCOMPARE(sources.value("layers").toArray().size(), 5);
    for (qsizetype i = 0; i < 5; ++i) {
        const QJsonValue row = sources.value("layers").toArray().at(i);
        QVERIFY(row["rope_only"].toDouble() > 0 && row["rank_only"].toDouble() > 0);
        const double whole = json.value("layers").toArray().at(i)["relative_error"].toDouble();
        QVERIFY(std::abs(row["both"].toDouble() - whole) < 1e-6);
        QVERIFY(row["refined"].isNull());
    }
    QCOMPARE(sources.value("absent").toObject().keys(), QStringList{"refined"});
    const QJsonObject positions = json.value("positions").toObject();
    QCOMPARE(positions.value("buckets").toArray().size(), 1); // 32 tokens
    QCOMPARE(positions.value("kl").toDouble(),
             positions.value("buckets").toArray().at(0)["kl"].toDouble());
    const QJsonArray maps = json.value("attention_maps").toArray();
    QCOMPARE(maps.size(), 2);
    QCOMPARE(maps.at(0)["layer"].toInt(), 1);
    QCOMPARE(maps.at(0)["head"].toInt(), 2);
    const qsizetype length = maps.at(0)["tokens"].toArray().size();
    for (const char* part : {"original", "draft", "difference"}) {
        QCOMPARE(maps.at(0)[part].toArray().size(), length);
        QCOMPARE(maps.at(0)[part].toArray().at(0).toArray().size(), length);
    }
    QCOMPARE(maps.at(1)["draft"].toArray().at(0).toArray().at(0).toDouble(), 1.0);
    const CliResult text =
        runCli({"fidelity", path("t"), "--original", demoCheckpoint(), "--error-sources"});
    QVERIFY2(text.out.contains("Low rank alone") && text.out.contains("not been refined"),
             text.text().constData());
}

void TestCliDrafts::fidelityRefusesLooseOptions()
{
    const QStringList base = {"fidelity", path("t"), "--original", demoCheckpoint()};
    for (const QStringList& options : {QStringList{"--attention-map", "1:2"},
                                       {"--prompt", "x"},
                                       {"--text", "x.txt"},
                                       {"--attention-map", "1", "--prompt", "x"},
                                       {"--attention-map", "a:b", "--prompt", "x"},
                                       {"--study", path("study.h5")}}) {
        const CliResult result = runCli(base + options);
        QVERIFY2(result.exitCode == 2, result.text().constData());
    }
}

void TestCliDrafts::refineListsItsLayers()
{
    const CliResult result =
        runCli({"refine", path("t"), "--original", demoCheckpoint(), "-o", path("t12"),
                "--objective", "functional", "--steps", "20", "--layers", "1-2", "--json"});
    QVERIFY2(result.exitCode == 0, result.text().constData());
    compareRunKeys(result.json(), path("t12"));
    const QJsonArray layers = result.json().value("layers").toArray();
    QCOMPARE(layers.size(), 2);
    QCOMPARE(layers.at(0)["layer"].toInt(), 1);
    QCOMPARE(layers.at(1)["layer"].toInt(), 2);
    for (const QJsonValue& layer : layers)
        QVERIFY(layer["loss_after"].toDouble() <= layer["loss_before"].toDouble());
}

void TestCliDrafts::refineIsInterrupted()
{
    const QStringList arguments = {"refine",  path("t"),     "--original", demoCheckpoint(), "-o",
                                   path("f"), "--objective", "functional", "--json"};
    const QStringList endless = arguments + QStringList{"--steps", "2000000"};
    const CliResult stopped = interruptCli(endless, "refine");
    QVERIFY2(stopped.exitCode == 130, stopped.text().constData());
    QCOMPARE(stopped.error().value("code").toString(), QString("cancelled"));
    QVERIFY(!QFile::exists(path("f")));

    const CliResult whole = runCli(arguments + QStringList{"--steps", "20"});
    QVERIFY2(whole.exitCode == 0, whole.text().constData());
    QCOMPARE(whole.json().value("layers").toArray().size(), 5);
}

void TestCliDrafts::acceptMeasuresTasks()
{
    const CliResult result = runCli(acceptArguments(path("f")));
    QVERIFY2(result.exitCode == 0, result.text().constData());
    const QJsonArray rows = result.json().value("rows").toArray();
    QCOMPARE(rows.size(), 2);
    QCOMPARE(rows.at(0)["task"].toString(), QString("cats"));
    QCOMPARE(rows.at(1)["task"].toString(), QString("dogs"));
    const QJsonObject pooled = result.json().value("pooled").toObject();
    QList<QJsonObject> all = {rows.at(0).toObject(), rows.at(1).toObject(), pooled};
    for (const QJsonObject& row : all) {
        const double steps = row.value("steps").toDouble(),
                     drafted = row.value("draft_tokens").toDouble(),
                     accepted = row.value("accepted_tokens").toDouble();
        QVERIFY(steps > 0 && drafted >= accepted);
        QCOMPARE(row.value("acceptance_rate").toDouble(), accepted / drafted);
        QCOMPARE(row.value("mean_acceptance_length").toDouble(), 1 + accepted / steps);
        QCOMPARE(row.value("per_position").toArray().size(), 3);
        QVERIFY(row.value("tokens_per_second").isNull() &&
                row.value("identical_to_greedy").isNull());
    }
    QCOMPARE(pooled.value("steps").toInt(),
             all.at(0).value("steps").toInt() + all.at(1).value("steps").toInt());
}

void TestCliDrafts::acceptOfTheTargetItselfIsComplete()
{
    for (const QString method : {"replay", "speculative"}) {
        const CliResult result =
            runCli(acceptArguments(demoCheckpoint()) + QStringList{"--method", method});
        QVERIFY2(result.exitCode == 0, result.text().constData());
        QCOMPARE(result.json().value("pooled")["acceptance_rate"].toDouble(), 1.0);
    }
}

void TestCliDrafts::speculativeEqualsGreedy()
{
    const CliResult result =
        runCli(acceptArguments(path("f")) + QStringList{"--method", "speculative", "--limit", "1"});
    QVERIFY2(result.exitCode == 0, result.text().constData());
    for (const QJsonValue& row : result.json().value("rows").toArray()) {
        QVERIFY(row["identical_to_greedy"].toBool());
        QVERIFY(row["tokens_per_second"].toDouble() > 0);
    }
}

void TestCliDrafts::exportIsVerified()
{
    const QStringList arguments = {"export",      path("f"), "-o",   path("x"),  "--layout",
                                   "huggingface", "--dtype", "bf16", "--verify", "--json"};
    const CliResult result = runCli(arguments);
    QVERIFY2(result.exitCode == 0, result.text().constData());
    QVERIFY(QFile::exists(path("x/modeling_mla_draft.py")));
    // bf16 keeps 8 bits of the weights
    QVERIFY(result.json().value("max_logit_difference").toDouble() < 0.2);
    QCOMPARE(runCli(arguments).exitCode, 2);
}

void TestCliDrafts::reportWritesTables()
{
    const CliResult result = runCli(
        {"report", path("study.h5"), "-o", path("tables"), "--tables", "csv,latex,md", "--json"});
    QVERIFY2(result.exitCode == 0, result.text().constData());
    const QJsonArray files = result.json().value("files").toArray();
    QVERIFY(files.size() >= 9); // variants, acceptance, one run; three formats
    for (const QJsonValue& file : files)
        QVERIFY2(QFileInfo(path("tables/" + file.toString())).size() > 0,
                 qPrintable(file.toString()));
    QCOMPARE(runCli({"report", path("study.h5"), "-o", path("tables")}).exitCode, 2);
}

/// Written as Spec-Bench's answers and read back, a measurement has the same counts.
void TestCliDrafts::stepsTravelAsSpecBench()
{
    // A study of its own: other tests leave measurements of other methods in theirs.
    QStringList arguments = acceptArguments(demoCheckpoint());
    const QString study = path("steps.h5");
    arguments.replace(arguments.indexOf(path("study.h5")), study);
    const CliResult measured = runCli(arguments);
    QVERIFY2(measured.exitCode == 0, measured.text().constData());
    const CliResult report = runCli({"report", study, "-o", path("steps"), "--spec-bench"});
    QVERIFY2(report.exitCode == 0, report.text().constData());
    const QJsonObject row = measured.json().value("rows").toArray().first().toObject();
    const QStringList files = QDir(path("steps")).entryList({"original*cats*.jsonl"});
    QCOMPARE(files.size(), 1);
    const CliResult read =
        runCli({"import-results", path("steps/" + files.first()), "--study", path("imported.h5"),
                "-k", "3", "--target", "stories260K", "--json"});
    QVERIFY2(read.exitCode == 0, read.text().constData());
    const QJsonObject back = read.json().value("rows").toArray().first().toObject();
    for (const char* key : {"task", "steps", "draft_tokens", "accepted_tokens", "acceptance_rate"})
        QCOMPARE(back.value(key), row.value(key));
    QCOMPARE(runCli({"report", path("imported.h5"), "-o", path("imported")}).exitCode, 0);
}

void TestCliDrafts::quietIsSilent()
{
    const CliResult loud =
        runCli({"spectrum", demoCheckpoint(), "--sequences", "4", "--length", "32"});
    QVERIFY2(loud.exitCode == 0 && !loud.err.isEmpty(), loud.text().constData());
    QVERIFY2(!loud.err.contains('\r'), "no terminal, no rewritten lines");
    const CliResult quiet =
        runCli({"spectrum", demoCheckpoint(), "--sequences", "4", "--length", "32", "--quiet"});
    QCOMPARE(quiet.exitCode, 0);
    QVERIFY2(quiet.err.isEmpty(), quiet.err.constData());
    QCOMPARE(quiet.out, loud.out);
}

void TestCliDrafts::demoIsInterruptedAndResumed()
{
    const QString folder = path("demo");
    const CliResult stopped = interruptCli({"demo", "-o", folder, "--json"}, "done in");
    QVERIFY2(stopped.exitCode == 130, stopped.text().constData());
    QVERIFY(!QFile::exists(folder + "/summary.json"));

    const CliResult result = runCli({"demo", "-o", folder, "--json"}, 1200);
    QVERIFY2(result.exitCode == 0, result.text().constData());
    QVERIFY(QFile::exists(folder + "/demo.h5"));
    QVERIFY(!QDir(folder + "/drafts").isEmpty());
    QFile file(folder + "/summary.json");
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QJsonObject summary = QJsonDocument::fromJson(file.readAll()).object();
    const QJsonArray rows = summary.value("rows").toArray();
    QCOMPARE(rows.size(), 1 + 2 * 3);
    for (const QJsonValue& row : rows)
        for (const char* key : {"mean_relative_error", "perplexity", "acceptance_rate",
                                "mean_acceptance_length", "cache_elements_per_token_per_layer"})
            QVERIFY2(row[key].isDouble(), key);
    for (const char* converter : {"transmla", "mha2mla"})
        QVERIFY2(summary.value("functional_gain_pp")[converter].toDouble() > 0, converter);

    const CliResult again = runCli({"demo", "-o", folder}, 60);
    QVERIFY2(again.exitCode == 0 && again.out.contains("complete demo"), again.text().constData());
    QVERIFY(writeText(path("plain-file"), "x"));
    QCOMPARE(runCli({"demo", "-o", path("plain-file")}).exitCode, 2);
}

QTEST_GUILESS_MAIN(TestCliDrafts)
#include "tst_cli_drafts.moc"
