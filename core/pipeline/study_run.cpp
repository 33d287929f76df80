// SPDX-License-Identifier: GPL-3.0-or-later
// A whole study: convert, refine per objective, accept. Each stage stores its own results, so a
// study that was ended at any moment is taken up where it was.
#include <nlohmann/json.hpp>

#include <algorithm>

#include "core/backends/python_packages.h"
#include "core/base/file.h"
#include "core/checkpoint/tokenizer.h"
#include "core/model/tensors.h"
#include "core/pipeline/accept_pair.h"
#include "core/pipeline/accept_prompts.h"
#include "core/pipeline/internal.h"
#include "core/pipeline/run_support.h"
#include "core/report/acceptance_groups.h"
#include "core/store/study.h"

namespace mla
{
namespace
{

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kPerplexityWindow = 512, kPerplexityWindows = 16;

/// Directory name of a run's draft within plan.drafts: its id without the checkpoint.
fs::path draftPath(const StudyPlan& plan, const std::string& label, const std::string& variant)
{
    return plan.drafts / (label + "-" + variant);
}

class StudyRun
{
public:
    StudyRun(JobContext& job, const StudyPlan& plan) : m_job(job), m_plan(plan) {}
    Result<StudyOutcome> run();

private:
    Status prepare();
    Status perplexityWindows();
    Result<std::optional<AcceptPair>> openAcceptance();
    Status readPrompts(const AcceptPair& pair);
    [[nodiscard]] fs::path target() const
    {
        return m_plan.target.empty() ? m_plan.checkpoint : m_plan.target;
    }
    [[nodiscard]] AcceptRequest acceptRequest(const fs::path& draft) const
    {
        return {target(), draft, m_plan.accept, m_plan.compute, m_plan.study};
    }
    /// Whether the study holds this run, with these settings, and its draft is there.
    Result<bool> finished(const std::string& runId, const std::string& settingsKey,
                          const json& settings, const fs::path& draft) const;
    Status convert(const ConvertSettings& settings, const std::string& label);
    Status refine(const std::string& label, const std::string& objective);
    Status accept(const fs::path& draft);
    Result<StudyOutcome> summary() const;

    JobContext& m_job;
    const StudyPlan& m_plan;
    ModelConfig m_config;
    TokenWindows m_windows;
};

Status StudyRun::perplexityWindows()
{
    if (m_plan.perplexityText.empty())
        return {};
    MLA_TRY(tokenizer, Tokenizer::open(m_plan.checkpoint));
    MLA_TRY(text, readFile(m_plan.perplexityText));
    m_windows = disjointWindows(tokenizer.encode(text),
                                std::min(kPerplexityWindow, m_config.contextLength()));
    if (m_windows.empty())
        return badInput("encodes to fewer than two tokens", m_plan.perplexityText.string());
    if (m_windows.size() > kPerplexityWindows)
        m_windows.resize(kPerplexityWindows);
    return {};
}

Status StudyRun::prepare()
{
    if (m_plan.conversions.empty())
        return usageError("the plan names no conversion");
    if (m_plan.study.empty() || m_plan.drafts.empty())
        return usageError("the plan names no study file or no drafts folder");
    MLA_CHECK(validate(m_plan.calibration));
    for (const ConvertSettings& conversion : m_plan.conversions)
        MLA_CHECK(validate(conversion));
    for (const std::string& objective : m_plan.objectives) {
        RefineSettings refine = m_plan.refine;
        refine.objective = objective;
        MLA_CHECK(validate(refine));
    }
    MLA_CHECK(validate(m_plan.accept));
    MLA_TRY(source, openSource(m_plan.checkpoint));
    m_config = source.config();
    if (fs::exists(m_plan.study) && !m_plan.resume)
        return usageError(m_plan.study.string() + " exists",
                          "resume it, or give another study file");
    MLA_CHECK(perplexityWindows());
    MLA_TRY(pair, openAcceptance());
    const bool rendered = m_plan.accept.chatTemplate; // then the study keeps them, beside its plan
    if (pair && !rendered)
        MLA_CHECK(readPrompts(*pair));
    std::error_code error;
    fs::create_directories(partsRoot(m_plan.study), error);
    if (error)
        return computeFailed("cannot create: " + error.message(), partsRoot(m_plan.study).string());
    StudyPlan resumed = m_plan;
    resumed.resume = true;
    MLA_CHECK(
        writeFileAtomically(partsRoot(m_plan.study) / "plan.json", toJson(resumed).dump(2) + "\n"));
    return pair && rendered ? readPrompts(*pair) : Status();
}

/// What would refuse to measure says so before the work, not after hours of refinement: here the
/// backend and the pair, in readPrompts() the tasks. Nothing if acceptance is not measured.
Result<std::optional<AcceptPair>> StudyRun::openAcceptance()
{
    if (m_plan.accept.tasks.empty())
        return std::optional<AcceptPair>();
    MLA_CHECK(checkBackend(m_job, m_plan.accept.backend, m_plan.compute.python));
    MLA_TRY(pair, openPair(acceptRequest(m_plan.checkpoint)));
    return std::optional(std::move(pair));
}

Status StudyRun::readPrompts(const AcceptPair& pair)
{
    MLA_TRY(tasks, loadTasks(m_job, acceptRequest(m_plan.checkpoint), pair.tokenizer,
                             pair.target.config()));
    return checkPrompts(pair, tasks.tasks);
}

Result<bool> StudyRun::finished(const std::string& runId, const std::string& settingsKey,
                                const json& settings, const fs::path& draft) const
{
    if (!fs::exists(m_plan.study) || !fs::exists(draft / "mla_draft.json"))
        return false;
    MLA_TRY(study, loadStudy(m_plan.study));
    const RunRecord* run = study.findRun(runId);
    if (!run)
        return false;
    const json stored = json::parse(run->settingsJson, nullptr, /*allow_exceptions=*/false);
    if (!stored.is_object() || stored.value(settingsKey, json()) != settings ||
        run->seed != m_plan.compute.seed)
        return usageError(draft.string() + " was made with other settings",
                          "remove it, or give another drafts folder and study");
    std::error_code ignored; // a kill after the study was written leaves parts behind
    fs::remove_all(partsFolder(m_plan.study, draft, runId), ignored);
    return true;
}

Status StudyRun::convert(const ConvertSettings& settings, const std::string& label)
{
    const std::string runId = checkpointId(m_plan.checkpoint) + "/" + label + "/converted";
    const fs::path output = draftPath(m_plan, label, "converted");
    MLA_TRY(done, finished(runId, "convert", toJson(settings), output));
    if (done)
        return {};
    m_job.info("converting: " + runId);
    const ConvertRequest request{m_plan.checkpoint, output,       settings, m_plan.calibration,
                                 m_plan.compute,    m_plan.study, false,    m_plan.resume};
    MLA_TRY(outcome, convertWith(m_job, request, m_windows));
    (void)outcome;
    return {};
}

Status StudyRun::refine(const std::string& label, const std::string& objective)
{
    RefineSettings settings = m_plan.refine;
    settings.objective = objective;
    const std::string runId = checkpointId(m_plan.checkpoint) + "/" + label + "/" + objective;
    const fs::path output = draftPath(m_plan, label, objective);
    MLA_TRY(done, finished(runId, "refine", toJson(settings), output));
    if (done)
        return {};
    m_job.info("refining: " + runId);
    const RefineRequest request{draftPath(m_plan, label, "converted"),
                                m_plan.checkpoint,
                                output,
                                settings,
                                {},
                                m_plan.compute,
                                m_plan.study,
                                false,
                                m_plan.resume};
    MLA_TRY(outcome, refineWith(m_job, request, m_windows));
    (void)outcome;
    return {};
}

Status StudyRun::accept(const fs::path& draft)
{
    if (m_plan.accept.tasks.empty())
        return {};
    m_job.info("measuring acceptance: " + draft.filename().string());
    MLA_TRY(outcome, measureAcceptance(m_job, acceptRequest(draft)));
    (void)outcome;
    return {};
}

/// Acceptance of a run pooled over its tasks' raw steps.
AcceptanceMetrics pooledAcceptance(const StudyData& study, const std::string& runId,
                                   const AcceptSettings& settings)
{
    AcceptanceRows rows = rowsOf(study, runId);
    std::erase_if(rows, [&](const AcceptanceRecord* row) {
        return row->chatTemplate != settings.chatTemplate;
    });
    return acceptanceMetrics(pooledSteps(rows), settings.k);
}

Result<StudyOutcome> StudyRun::summary() const
{
    MLA_TRY(study, loadStudy(m_plan.study));
    StudyOutcome outcome;
    const auto add = [&](const std::string& runId, SummaryRow row) {
        const AcceptanceMetrics metrics = pooledAcceptance(study, runId, m_plan.accept);
        row.acceptanceRate = metrics.acceptanceRate;
        row.meanAcceptanceLength = metrics.meanAcceptanceLength;
        outcome.rows.push_back(std::move(row));
    };
    SummaryRow original{"none", "original"};
    for (const RunRecord& run : study.runs)
        if (const auto stage = run.stages.find("original"); stage != run.stages.end())
            original.perplexity = stage->second.perplexity;
    original.cacheElementsPerTokenPerLayer = static_cast<double>(m_config.cacheElements(0));
    add("original", std::move(original));
    for (const ConvertSettings& conversion : m_plan.conversions) {
        const std::string stem =
            checkpointId(m_plan.checkpoint) + "/" + conversionLabel(conversion, m_config) + "/";
        std::vector<std::string> variants = {"converted"};
        variants.insert(variants.end(), m_plan.objectives.begin(), m_plan.objectives.end());
        std::map<std::string, double> rate;
        for (const std::string& variant : variants) {
            const RunRecord* run = study.findRun(stem + variant);
            if (!run)
                return computeFailed("the study lacks the run " + stem + variant,
                                     m_plan.study.string());
            SummaryRow row{conversion.converter, variant};
            row.meanRelativeError = run->meanRelativeError().value_or(0);
            const auto stage = run->stages.find(variant == "converted" ? "low_rank" : "refined");
            row.perplexity = stage == run->stages.end() ? 0 : stage->second.perplexity;
            row.cacheElementsPerTokenPerLayer = static_cast<double>(run->cacheElements);
            add(run->id, std::move(row));
            rate[variant] = outcome.rows.back().acceptanceRate;
        }
        if (rate.contains("functional") && rate.contains("partial-rope"))
            outcome.functionalGainPp[conversion.converter] =
                100 * (rate["functional"] - rate["partial-rope"]);
    }
    return outcome;
}

Result<StudyOutcome> StudyRun::run()
{
    MLA_CHECK(prepare());
    for (const ConvertSettings& conversion : m_plan.conversions) {
        const std::string label = conversionLabel(conversion, m_config);
        MLA_CHECK(convert(conversion, label));
        for (const std::string& objective : m_plan.objectives)
            MLA_CHECK(refine(label, objective));
    }
    MLA_CHECK(accept(m_plan.checkpoint));
    for (const ConvertSettings& conversion : m_plan.conversions) {
        const std::string label = conversionLabel(conversion, m_config);
        MLA_CHECK(accept(draftPath(m_plan, label, "converted")));
        for (const std::string& objective : m_plan.objectives)
            MLA_CHECK(accept(draftPath(m_plan, label, objective)));
    }
    std::error_code ignored;
    fs::remove_all(partsRoot(m_plan.study), ignored);
    return summary();
}

} // namespace

Result<StudyOutcome> runStudy(JobContext& job, const StudyPlan& plan)
{
    useOneThread();
    return guardedResult({}, [&] { return StudyRun(job, plan).run(); });
}

StudyPlan demoPlan(const fs::path& resources, const fs::path& output)
{
    StudyPlan plan;
    plan.checkpoint = resources / "demo" / "stories260K";
    plan.study = output / "demo.h5";
    plan.drafts = output / "drafts";
    plan.calibration.source = "self:" + (resources / "prompts" / "stories.txt").string();
    plan.calibration.sequences = 128;
    plan.calibration.length = 256;
    ConvertSettings transmla;
    transmla.converter = "transmla";
    transmla.kvLoraRank = 28;
    transmla.qkRopeHeadDim = 4;
    transmla.freqfold = 2;
    ConvertSettings mha2mla;
    mha2mla.converter = "mha2mla";
    mha2mla.kvLoraRank = 16;
    mha2mla.qkRopeHeadDim = 4;
    plan.conversions = {transmla, mha2mla};
    plan.refine.steps = 100;
    for (const char* task : {"animals", "friends", "weather", "lost_and_found"})
        plan.accept.tasks.push_back(resources / "demo" / "tasks" / (std::string(task) + ".jsonl"));
    return plan;
}

} // namespace mla
