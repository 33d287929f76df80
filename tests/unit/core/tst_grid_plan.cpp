// SPDX-License-Identifier: GPL-3.0-or-later
// A grid's file, its configurations, and what it lacks.
#include <nlohmann/json.hpp>

#include "core/pipeline/grid_plan.h"
#include "core/pipeline/grid_slurm.h"
#include "core/pipeline/grid_state.h"

#include <algorithm>
#include <set>

#include <QTemporaryDir>
#include <QTest>

#include "tests/support/cli_program.h"

using namespace mla;
using nlohmann::json;
namespace fs = std::filesystem;

namespace
{

json minimal()
{
    return json::parse(R"({
        "pairs": [{"name": "p", "family": "llama", "target": "big", "draft": "small"}],
        "converters": [{"converter": "transmla", "kv_lora_rank": 28, "qk_rope_head_dim": 4}],
        "variants": ["original", "partial-rope", "functional"],
        "backends": ["native"],
        "tasks": ["one", "two"]})");
}

Result<GridPlan> planned(const json& document)
{
    MLA_TRY(file, parseGrid(document, "/somewhere/grid.json"));
    return planGrid(std::move(file), "/models", "/tasks");
}

Result<GridPlan> shipped(const char* name, const fs::path& models)
{
    MLA_TRY(file, readGridFile(fs::path(MLA_RESOURCES) / "grids" / name));
    return planGrid(std::move(file), models, {});
}

std::size_t unitsOf(const GridPlan& plan, GridUnit::Kind kind)
{
    return static_cast<std::size_t>(std::ranges::count(plan.units, kind, &GridUnit::kind));
}

} // namespace

class TestGridPlan : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void shippedGrids_data();
    void shippedGrids();
    void everyRowHasItsUnits();
    void pairsShareADraft();
    void refused_data();
    void refused();
    void sharesBecomeSizes();
    void whatIsMissing();
    void foldersAreTheGridsOwn();
    void settingsAreCompared();
    void slurmScripts();
};

void TestGridPlan::shippedGrids_data()
{
    QTest::addColumn<int>("configurations");
    QTest::addColumn<int>("cells");
    QTest::addColumn<int>("drafts");
    QTest::addColumn<int>("measurements");
    // pairs x converters x variants x backends x tasks; one measurement a draft and backend, the
    // original's shared by both converters.
    QTest::newRow("paper.json") << 4 * 2 * 3 * 2 * 4 << 64 << 4 * 2 << 4 * 2 * (2 * 2 + 1);
    QTest::newRow("smollm2.json") << 2 * 4 * 3 * 4 << 24 << 2 << 3 * (2 * 3 + 1);
    QTest::newRow("demo.json") << 2 * 4 * 1 * 4 << 8 << 2 << 2 * 3 + 1;
}

void TestGridPlan::shippedGrids()
{
    QFETCH(int, configurations);
    QFETCH(int, cells);
    QFETCH(int, drafts);
    QFETCH(int, measurements);
    const auto plan = shipped(QTest::currentDataTag(), {});
    QVERIFY2(plan.ok(), plan.ok() ? "" : plan.error().text().c_str());
    QCOMPARE(plan->rows.size(), static_cast<std::size_t>(configurations));
    QCOMPARE(plan->matchedCells, cells);
    QCOMPARE(unitsOf(*plan, GridUnit::Kind::Draft), static_cast<std::size_t>(drafts));
    QCOMPARE(unitsOf(*plan, GridUnit::Kind::Measurement), static_cast<std::size_t>(measurements));
    std::set<std::string> names;
    for (const GridUnit& unit : plan->units)
        QVERIFY(names.insert(unit.name).second);
}

void TestGridPlan::everyRowHasItsUnits()
{
    const auto plan = shipped("paper.json", {});
    QVERIFY(plan.ok());
    for (const GridRow& row : plan->rows) {
        const GridUnit& unit = plan->measurementOf(row);
        QCOMPARE(unit.pair, row.pair);
        QCOMPARE(unit.variant, row.variant);
        QCOMPARE(unit.backend, row.backend);
        const GridUnit* draft = plan->draftOf(unit);
        if (row.variant == "original") {
            QVERIFY(!unit.converter && !draft);
            continue;
        }
        QVERIFY(draft);
        QCOMPARE(*draft->converter, row.converter);
        QCOMPARE(draft->checkpoint, plan->file.pairs[row.pair].draft);
        QVERIFY(std::ranges::find(draft->objectives, row.variant) != draft->objectives.end());
    }
}

void TestGridPlan::pairsShareADraft()
{
    json document = minimal();
    document["pairs"].push_back(
        {{"name", "q"}, {"family", "llama"}, {"target", "bigger"}, {"draft", "small"}});
    const auto plan = planned(document);
    QVERIFY(plan.ok());
    QCOMPARE(unitsOf(*plan, GridUnit::Kind::Draft), std::size_t{1});
    QCOMPARE(unitsOf(*plan, GridUnit::Kind::Measurement), std::size_t{6});
    document["variants"] = {"original"};
    const auto alone = planned(document);
    QVERIFY(alone.ok());
    QCOMPARE(unitsOf(*alone, GridUnit::Kind::Draft), std::size_t{0});
    QCOMPARE(alone->matchedCells, 0);
}

void TestGridPlan::refused_data()
{
    QTest::addColumn<QByteArray>("where"); // JSON pointer
    QTest::addColumn<QByteArray>("value"); // JSON
    QTest::addColumn<QByteArray>("named"); // in the message
    const auto row = [](const char* tag, const char* where, const char* value, const char* named) {
        QTest::newRow(tag) << QByteArray(where) << QByteArray(value) << QByteArray(named);
    };
    row("key", "/piars", "[]", "'piars'");
    row("key of a pair", "/pairs/0/tartget", "\"x\"", "'pairs[0].tartget'");
    row("key of a converter", "/converters/0/rank", "3", "'converters[0].rank'");
    row("key of settings", "/accept/kk", "3", "'accept.kk'");
    row("type", "/accept", "{\"k\": \"four\"}", "'accept.k'");
    row("value of settings", "/accept", "{\"k\": 0}", "'accept'");
    row("length", "/calibration", "{\"length\": 1}", "'calibration'");
    row("steps", "/refine", "{\"steps\": 0}", "'refine'");
    row("layers", "/refine", "{\"layers\": {\"first\": 0, \"last\": 1}}", "refine.layers");
    row("repeats of a replay", "/accept", "{\"repeats\": 2, \"method\": \"replay\"}",
        "'accept.repeats'");
    row("sweep without replay", "/accept", "{\"method\": \"speculative\", \"sweep_k\": 4}",
        "'accept.sweep_k'");
    row("budget", "/converters/0",
        "{\"converter\": \"transmla\", \"qk_rope_head_dim\": 4, \"cache_elements\": \"most\"}",
        "'converters[0].cache_elements'");
    row("objective", "/refine", "{\"objective\": \"functional\"}", "refine.objective");
    row("rate", "/refine", "{\"learning_rate\": 0.1}", "refine.learning_rate");
    row("backend twice over", "/accept", "{\"backend\": \"hf\"}", "accept.backend");
    row("variant", "/variants/1", "\"functionall\"", "'variants[1]'");
    row("backend", "/backends/0", "\"sglang\"", "'backends[0]'");
    row("repeated", "/tasks/1", "\"one\"", "'tasks[1]'");
    row("path", "/tasks/1", "\"../one\"", "'tasks[1]'");
    row("none", "/tasks", "[]", "'tasks'");
    row("no pairs", "/pairs", "[]", "'pairs'");
    row("no target", "/pairs/0/target", "\"\"", "'pairs[0].target'");
    row("no family", "/pairs/0/family", "\"\"", "'pairs[0].family'");
    row("two of a name", "/pairs/0/draft", "\"elsewhere/big\"", "'pairs[0].draft'");
    row("converter", "/converters/0/converter", "\"mla\"", "'converters[0]'");
    row("svd", "/converters/0/svd", "\"split\"", "'converters[0]'");
    row("both sizes", "/converters/0/cache_elements", "\"28%\"", "'converters[0].kv_lora_rank'");
    row("share", "/converters/0/qk_rope_head_dim", "\"half\"", "'converters[0].qk_rope_head_dim'");
    row("rate of a converter", "/converters/0/learning_rate", "-1", "'converters[0]'");
}

void TestGridPlan::refused()
{
    QFETCH(QByteArray, where);
    QFETCH(QByteArray, value);
    QFETCH(QByteArray, named);
    QVERIFY(planned(minimal()).ok());
    json document = minimal();
    document[json::json_pointer(where.toStdString())] = json::parse(value.toStdString());
    const auto plan = planned(document);
    QVERIFY(!plan.ok());
    QVERIFY2(plan.error().code == ErrorCode::BadInput, plan.error().text().c_str());
    QVERIFY2(plan.error().text().find(named.toStdString()) != std::string::npos,
             plan.error().text().c_str());
    QVERIFY2(plan.error().text().find("/somewhere/grid.json") == 0, plan.error().text().c_str());
}

/// 56 % of 2 x 8 x 64 is 573 elements: 64 rotary and 509 latent, or 8 heads of 16 and 445.
void TestGridPlan::sharesBecomeSizes()
{
    ModelConfig model;
    model.hiddenSize = 2048;
    model.numAttentionHeads = 32;
    model.numKeyValueHeads = 8;
    model.headDim = 64;
    model.numHiddenLayers = 16;
    const auto plan = shipped("paper.json", {});
    QVERIFY(plan.ok());
    const auto transmla = converterFor(plan->file.converters[0], model);
    QVERIFY2(transmla.ok(), transmla.ok() ? "" : transmla.error().text().c_str());
    QCOMPARE(transmla->qkRopeHeadDim, 64);
    QCOMPARE(transmla->kvLoraRank, 573 - 64);
    const auto mha2mla = converterFor(plan->file.converters[1], model);
    QVERIFY2(mha2mla.ok(), mha2mla.ok() ? "" : mha2mla.error().text().c_str());
    QCOMPARE(mha2mla->qkRopeHeadDim, 16);
    QCOMPARE(mha2mla->kvLoraRank, 573 - 8 * 16);
    GridConverter odd = plan->file.converters[1];
    odd.ropePercent = 10; // 6.4 dims
    QVERIFY(!converterFor(odd, model).ok());
}

void TestGridPlan::whatIsMissing()
{
    QTemporaryDir folder;
    QVERIFY(QDir(folder.path()).mkdir("tasks"));
    QVERIFY(test::writeText(folder.filePath("tasks/one.jsonl"), "{\"prompt\": \"a\"}\n"));
    json document = minimal();
    document["backends"] = {"native", "hf"};
    document["pairs"][0]["target"] = MLA_RESOURCES "/demo/stories260K";
    auto file = parseGrid(document, "/somewhere/grid.json");
    QVERIFY(file.ok());
    const auto plan = planGrid(*std::move(file), folder.path().toStdString(),
                               folder.filePath("tasks").toStdString());
    QVERIFY(plan.ok());
    JobContext job;
    const std::vector<GridLack> lacks = gridLacks(job, *plan, "/no/such/python");
    QCOMPARE(lacks.size(), std::size_t{3});
    QCOMPARE(lacks[0].what, std::string("checkpoint"));
    QCOMPARE(lacks[0].name, folder.filePath("small").toStdString());
    QCOMPARE(lacks[1].what, std::string("task"));
    QCOMPARE(lacks[1].name, std::string("two"));
    QCOMPARE(lacks[2].what, std::string("backend"));
    QVERIFY(lacks[2].problem.find("/no/such/python") != std::string::npos);
    const GridRow both{0, 0, "original", "hf", "two"}, least{0, 0, "original", "native", "one"};
    QCOMPARE(lacksOf(*plan, both, lacks), (std::vector<std::size_t>{0, 1, 2}));
    QCOMPARE(lacksOf(*plan, least, lacks), (std::vector<std::size_t>{0}));
}

void TestGridPlan::foldersAreTheGridsOwn()
{
    const auto plan = shipped("demo.json", {});
    QVERIFY(plan.ok());
    QVERIFY(fs::is_regular_file(plan->file.pairs[0].draft / "config.json"));
    QVERIFY(fs::is_regular_file(taskFile(*plan, "animals")));
    QVERIFY(fs::is_regular_file(plan->file.calibration.source.substr(5)));
    JobContext job;
    QVERIFY(gridLacks(job, *plan, {}).empty());
    const auto moved = shipped("demo.json", "/elsewhere");
    QVERIFY(moved.ok());
    QCOMPARE(moved->file.pairs[0].draft, fs::path("/elsewhere/stories260K"));
}

void TestGridPlan::settingsAreCompared()
{
    QTemporaryDir folder;
    const GridFolder out{folder.filePath("out").toStdString(),
                         folder.filePath("out/grid.h5").toStdString()};
    const auto settings = [](const json& document) {
        return gridSettings(parseGrid(document, "/somewhere/grid.json").value());
    };
    const json first = settings(minimal());
    QVERIFY(openGridFolder(out, first, false).ok());
    QVERIFY(!openGridFolder(out, first, false).ok()); // not without resume
    QVERIFY(openGridFolder(out, first, true).ok());
    json more = minimal();
    more["tasks"].push_back("three");
    more["backends"].push_back("vllm");
    QVERIFY(openGridFolder(out, settings(more), true).ok());
    more["refine"] = {{"steps", 7}};
    const Status other = openGridFolder(out, settings(more), true);
    QVERIFY(!other.ok());
    QVERIFY2(other.error().text().find("'refine.steps'") != std::string::npos,
             other.error().text().c_str());
    const GridFolder foreign{folder.path().toStdString(), folder.filePath("grid.h5").toStdString()};
    QVERIFY(!openGridFolder(foreign, first, true).ok()); // holds other things
}

void TestGridPlan::slurmScripts()
{
    const auto plan = shipped("paper.json", {});
    QVERIFY(plan.ok());
    const SlurmSettings settings{
        "big", {"--time=2:00:00"}, true, "/out/slurm", {"/bin/mla-draft", "grid", "it's.json"}};
    const std::vector<SlurmJob> jobs = slurmJobs(*plan, settings);
    QCOMPARE(jobs.size(), std::size_t{3});
    const auto has = [](const SlurmJob& job, const char* text) {
        return job.script.find(text) != std::string::npos;
    };
    QVERIFY(has(jobs[0], "#SBATCH --array=0-7\n"));
    QVERIFY(has(jobs[1], "#SBATCH --array=8-47\n"));
    QVERIFY(!has(jobs[2], "--array"));
    for (const SlurmJob& job : jobs) {
        QVERIFY(job.script.starts_with("#!/bin/bash\n#SBATCH "));
        QVERIFY(has(job, "#SBATCH --partition=big\n"));
        QVERIFY(has(job, "#SBATCH --time=2:00:00\n"));
        QVERIFY(has(job, "exec '/bin/mla-draft' 'grid' 'it'\\''s.json' --"));
    }
    QVERIFY(has(jobs[0], "#SBATCH --gres=gpu:1\n") && !has(jobs[2], "--gres"));
    QVERIFY(has(jobs[1], " --task \"$SLURM_ARRAY_TASK_ID\"\n") && has(jobs[2], " --collect\n"));
}

QTEST_APPLESS_MAIN(TestGridPlan)
#include "tst_grid_plan.moc"
