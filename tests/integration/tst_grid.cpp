// SPDX-License-Identifier: GPL-3.0-or-later
// A grid on the embedded model: whole, killed and resumed, and with rows that cannot be measured.
#include "core/store/study.h"

#include <algorithm>

#include <QDir>
#include <QElapsedTimer>
#include <QFileInfo>
#include <QTemporaryDir>

#include "tests/support/cli_program.h"

using namespace mla::test;

namespace
{

/// What must be the same however a study came about: everything but times.
QByteArray results(const mla::StudyData& study)
{
    std::vector<std::string> lines;
    const auto digits = [](double value) { return QString::number(value, 'g', 17).toStdString(); };
    for (const mla::AcceptanceRecord& row : study.acceptance) {
        std::string line = row.id + " " + row.run + " " + std::to_string(row.tokens);
        for (std::size_t i = 0; i < row.drafted.size(); ++i)
            line += " " + std::to_string(row.prompt[i]) + ":" + std::to_string(row.drafted[i]) +
                    "/" + std::to_string(row.accepted[i]);
        lines.push_back(std::move(line));
    }
    for (const mla::RunRecord& run : study.runs) {
        std::string line = run.id;
        for (const mla::LayerRecord& layer : run.layers)
            line += " " + digits(layer.lossAfter.value_or(0)) + "/" +
                    digits(layer.after ? layer.after->relativeError : 0);
        for (const auto& [stage, score] : run.stages)
            line += " " + stage + " " + digits(score.perplexity);
        lines.push_back(std::move(line));
    }
    std::ranges::sort(lines);
    QByteArray text;
    for (const std::string& line : lines)
        text += QByteArray::fromStdString(line) + "\n";
    return text;
}

QByteArray resultsOf(const QString& study)
{
    const auto loaded = mla::loadStudy(study.toStdString());
    return loaded.ok() ? results(*loaded) : QByteArray::fromStdString(loaded.error().text());
}

} // namespace

class TestGrid : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase();
    void paperDryRun();
    void completes();
    void resumedWhenComplete();
    void killed_data();
    void killed();
    void failedRowsStay();
    void oneBadTask();
    void refusals();

private:
    [[nodiscard]] QString path(const QString& name) const { return m_folder.filePath(name); }
    [[nodiscard]] QStringList grid(const QString& name, const QString& file = "grid.json") const
    {
        return {"grid", path(file), "-o", path(name), "--device", "cpu", "--json"};
    }
    bool writeGrid(const QString& file, const QByteArray& backends, const QByteArray& tasks) const;
    QTemporaryDir m_folder;
    QByteArray m_expected;
    qint64 m_duration = 0;
};

bool TestGrid::writeGrid(const QString& file, const QByteArray& backends,
                         const QByteArray& tasks) const
{
    return writeText(path(file), R"({
        "models": ")" MLA_RESOURCES R"(/demo", "tasks_folder": ")" +
                                     path("tasks").toUtf8() + R"(",
        "pairs": [{"name": "stories", "family": "llama", "target": "stories260K",
                   "draft": "stories260K"}],
        "converters": [{"converter": "transmla", "kv_lora_rank": 28, "qk_rope_head_dim": 4,
                        "freqfold": 2},
                       {"converter": "mha2mla", "kv_lora_rank": 16, "qk_rope_head_dim": 4}],
        "variants": ["original", "converted", "partial-rope", "functional"],
        "backends": )" + backends + R"(, "tasks": )" +
                                     tasks + R"(,
        "calibration": {"source": "self:)" MLA_RESOURCES R"(/prompts/stories.txt",
                        "sequences": 24, "length": 64},
        "refine": {"steps": 30},
        "accept": {"max_new_tokens": 24, "min_new_tokens": 8, "limit": 4}})");
}

void TestGrid::initTestCase()
{
    QVERIFY(QDir(m_folder.path()).mkdir("tasks"));
    for (const char* task : {"animals", "weather"})
        QVERIFY(QFile::copy(QStringLiteral(MLA_RESOURCES "/demo/tasks/%1.jsonl").arg(task),
                            path(QStringLiteral("tasks/%1.jsonl").arg(task))));
    // 700 words are more than the model's context of 512 tokens.
    QVERIFY(writeText(path("tasks/endless.jsonl"),
                      "{\"prompt\": \"" + QByteArray("the cat ").repeated(700) + "\"}\n"));
    QVERIFY(writeGrid("grid.json", R"(["native"])", R"(["animals", "weather"])"));
    QVERIFY(writeGrid("failing.json", R"(["hf", "native"])", R"(["animals", "weather"])"));
    QVERIFY(writeGrid("endless.json", R"(["native"])", R"(["animals", "endless", "absent"])"));
}

void TestGrid::paperDryRun()
{
    const CliResult result = runCli({"grid", QStringLiteral(MLA_RESOURCES "/grids/paper.json"),
                                     "--models", path("none"), "--dry-run", "--json"});
    QVERIFY2(result.exitCode == 0, result.text());
    QCOMPARE(result.json().value("configurations").toInt(), 192);
    QCOMPARE(result.json().value("matched_cells").toInt(), 64);
    QCOMPARE(result.json().value("rows").toArray().size(), 192);
    QStringList missing;
    for (const QJsonValue lack : result.json().value("missing").toArray())
        missing << QFileInfo(lack.toObject().value("name").toString()).fileName();
    for (const char* checkpoint : {"Llama-3.1-8B", "Llama-3.2-1B", "Llama-3.2-3B", "Qwen2.5-7B",
                                   "Qwen2.5-1.5B", "Qwen2.5-3B"})
        QVERIFY2(missing.contains(checkpoint), checkpoint);
    QCOMPARE(result.json().value("ready").toInt(), 0);
}

void TestGrid::completes()
{
    QElapsedTimer timer;
    timer.start();
    const CliResult result = runCli(grid("whole"));
    m_duration = timer.elapsed();
    qInfo("the grid takes %lld ms", static_cast<long long>(m_duration));
    QVERIFY2(result.exitCode == 0, result.text());
    QCOMPARE(result.json().value("configurations").toInt(), 16);
    QCOMPARE(result.json().value("done").toInt(), 16);
    QCOMPARE(result.json().value("failed").toInt(), 0);
    const QJsonArray cells = result.json().value("cells").toArray();
    QCOMPARE(cells.size(), 4); // 2 converters x 2 tasks
    for (const QJsonValue value : cells) {
        const QJsonObject cell = value.toObject();
        QCOMPARE(cell.value("original").toDouble(), 1.0); // the target drafts for itself
        const double delta =
            100 * (cell.value("functional").toDouble() - cell.value("partial_rope").toDouble());
        QVERIFY(std::abs(delta - cell.value("delta_pp").toDouble()) < 1e-9);
        QCOMPARE(cell.value("verdict").toString(), delta > 0.5    ? "gain"
                                                   : delta < -0.5 ? "decline"
                                                                  : "unchanged");
    }
    QCOMPARE(result.json().value("paper").toObject().value("gain").toInt(), 37);
    const auto study = mla::loadStudy(path("whole/grid.h5").toStdString());
    QVERIFY(study.ok());
    QCOMPARE(study->runs.size(), std::size_t{6});        // 2 x (converted + 2)
    QCOMPARE(study->acceptance.size(), std::size_t{14}); // (1 + 2 x 3) x 2: original once
    QCOMPARE(study->tokenTexts.size(), std::size_t{1});  // one target
    for (const mla::ContinuationRecord& text : study->continuations)
        for (const std::int32_t id : text.ids)
            QVERIFY(study->tokenTexts.front().find(id));
    QCOMPARE(study->calibrations.size(), std::size_t{1});
    QCOMPARE(study->continuations.size(), std::size_t{2});
    m_expected = results(*study);
}

void TestGrid::resumedWhenComplete()
{
    const QFileInfo draft(path("whole/drafts/stories260K~transmla~functional/model.safetensors"));
    QVERIFY2(draft.exists(), qPrintable(draft.filePath()));
    QCOMPARE(runCli(grid("whole")).exitCode, 2); // not without --resume
    QElapsedTimer timer;
    timer.start();
    const CliResult again = runCli(grid("whole") << "--resume");
    QVERIFY2(again.exitCode == 0, again.text());
    QVERIFY(timer.elapsed() < m_duration / 2);
    QCOMPARE(resultsOf(path("whole/grid.h5")), m_expected);
    QCOMPARE(QFileInfo(draft.filePath()).lastModified(), draft.lastModified());
}

void TestGrid::killed_data()
{
    QTest::addColumn<double>("moment"); // share of the whole run
    for (const double moment : {0.15, 0.4, 0.6, 0.85})
        QTest::newRow(qPrintable(QString::number(moment))) << moment;
}

void TestGrid::killed()
{
    QFETCH(double, moment);
    const QString name = QString("killed%1").arg(moment);
    auto delay = static_cast<int>(moment * static_cast<double>(m_duration));
    for (bool caught = false; !caught; delay = delay * 4 / 5) { // a faster run than the first
        QDir(path(name)).removeRecursively();
        QProcess process;
        process.start(programPath(), grid(name));
        QVERIFY(process.waitForStarted());
        caught = !process.waitForFinished(std::max(1, delay));
        process.kill(); // SIGKILL
        process.waitForFinished();
        caught = caught && process.exitStatus() == QProcess::CrashExit;
    }
    const CliResult resumed = runCli(grid(name) << "--resume");
    QVERIFY2(resumed.exitCode == 0, resumed.text());
    QCOMPARE(resumed.json().value("done").toInt(), 16);
    QCOMPARE(resultsOf(path(name + "/grid.h5")), m_expected);
}

void TestGrid::failedRowsStay()
{
    const QStringList arguments = grid("failing", "failing.json")
                                  << "--python" << path("no-python");
    const CliResult result = runCli(arguments);
    QVERIFY2(result.exitCode == 0, result.text());
    QCOMPARE(result.json().value("done").toInt(), 16);
    QCOMPARE(result.json().value("failed").toInt(), 16);
    for (const QJsonValue value : result.json().value("rows").toArray()) {
        const QJsonObject row = value.toObject();
        const bool hf = row.value("backend").toString() == "hf";
        QCOMPARE(row.value("state").toString(), hf ? "failed" : "done");
        QCOMPARE(row.value("error").toString().contains("no-python"), hf);
    }
    QCOMPARE(resultsOf(path("failing/grid.h5")), m_expected);
    const CliResult text =
        runCli({"grid", path("failing.json"), "-o", path("failing"), "--collect"});
    QVERIFY2(text.exitCode == 0, text.text());
    QVERIFY(text.out.contains("Failed rows:"));
    QVERIFY(text.out.contains("16 of 32 configurations are measured, 16 failed"));
}

/// A task that cannot be measured, and one that is not there, leave the third alone.
void TestGrid::oneBadTask()
{
    const CliResult result = runCli(grid("endless", "endless.json"));
    QVERIFY2(result.exitCode == 0, result.text());
    QCOMPARE(result.json().value("done").toInt(), 8);
    QCOMPARE(result.json().value("failed").toInt(), 16);
    for (const QJsonValue value : result.json().value("rows").toArray()) {
        const QJsonObject row = value.toObject();
        const QString task = row.value("task").toString(), error = row.value("error").toString();
        QVERIFY(task != "endless" || error.contains("exceeds the context"));
        QVERIFY(task != "absent" || error.contains("absent.jsonl is not there"));
        QCOMPARE(task == "animals", row.value("state").toString() == "done");
    }
    // The cause is removed: only what failed is measured.
    QVERIFY(QFile::copy(path("tasks/weather.jsonl"), path("tasks/absent.jsonl")));
    const CliResult again = runCli(grid("endless", "endless.json") << "--resume");
    QVERIFY2(again.exitCode == 0, again.text());
    QCOMPARE(again.json().value("done").toInt(), 16);
}

void TestGrid::refusals()
{
    QCOMPARE(runCli({"grid", path("grid.json"), "--json"}).exitCode, 2); // no -o
    QCOMPARE(runCli({"grid", path("none.json"), "--dry-run", "--json"}).exitCode, 3);
    QVERIFY(writeText(path("typo.json"), "{\"pairs\": [{\"nme\": \"x\"}]}"));
    const CliResult typo = runCli({"grid", path("typo.json"), "--dry-run", "--json"});
    QCOMPARE(typo.exitCode, 3);
    QVERIFY(typo.error().value("message").toString().contains("'pairs[0].nme'"));
    QVERIFY(writeGrid("other.json", R"(["native"])", R"(["animals", "weather"])"));
    const CliResult seed = runCli(grid("whole", "other.json") << "--resume");
    QCOMPARE(seed.exitCode, 2);
    QVERIFY(seed.error().value("message").toString().contains("'name'"));
    QCOMPARE(runCli(grid("whole") << "--task"
                                  << "99")
                 .exitCode,
             2);
}

QTEST_GUILESS_MAIN(TestGrid)
#include "tst_grid.moc"
