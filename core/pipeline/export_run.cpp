// SPDX-License-Identifier: GPL-3.0-or-later
#include <limits>

#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "core/base/resources.h"
#include "core/export/imported_draft.h"
#include "core/export/model_card.h"
#include "core/model/tensors.h"
#include "core/pipeline/export_deepseek.h"
#include "core/pipeline/export_verify.h"
#include "core/pipeline/run_support.h"
#include "core/store/study.h"

namespace mla
{
namespace
{

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kReport = "verification.json";
constexpr const char* kPlugin = "vllm_mla_draft";

Result<std::optional<DType>> dtypeOption(const std::optional<std::string>& name)
{
    if (!name)
        return std::optional<DType>();
    if (*name == "fp32")
        return std::optional(DType::F32);
    if (*name == "fp16")
        return std::optional(DType::F16);
    if (*name == "bf16")
        return std::optional(DType::BF16);
    return usageError("--dtype " + *name + ": expected fp32, fp16 or bf16");
}

/// What a cast may change; a draft may hold fp32 tensors whatever its others are. What a layout
/// approximates is judged by its measured loss instead.
double boundBesideDraft(std::optional<DType> dtype, const std::optional<LayoutLoss>& loss)
{
    if (loss && !loss->exact)
        return std::numeric_limits<double>::infinity();
    return dtype == DType::F16 ? kHalfBound : dtype == DType::BF16 ? kBrainBound : kExactBound;
}

/// Description of a layout that can hold the draft; the reason as an error if it cannot.
Result<LayoutDescription> usableLayout(const Checkpoint& draft, const std::string& layout)
{
    MLA_TRY(described, describeLayout(draft.config(), layout, draft.directory().string()));
    if (!described.refusal.empty())
        return badInput("the layout " + layout + " cannot hold this draft: " + described.refusal,
                        draft.directory().string());
    return std::move(described);
}

/// The package as its sources stand, without what an installation may have left beside them.
Status copyPlugin(const fs::path& from, const fs::path& to)
{
    std::error_code error;
    fs::create_directories(to / kPlugin, error);
    if (error)
        return computeFailed("cannot create: " + error.message(), (to / kPlugin).string());
    for (const char* name :
         {"pyproject.toml", "README.md", "vllm_mla_draft/__init__.py", "vllm_mla_draft/model.py",
          "vllm_mla_draft/configuration_mla_draft.py", "vllm_mla_draft/modeling_mla_draft.py"}) {
        MLA_TRY(content, readFile(from / name));
        MLA_CHECK(writeFileAtomically(to / name, content));
    }
    return {};
}

/// The draft's own weights and everything that belongs to them.
Status writeOwnWeights(const ExportRequest& request, const Checkpoint& draft, const DraftMeta& meta,
                       const CalibrationSet& calibration, std::optional<DType> dtype,
                       const fs::path& folder)
{
    MLA_TRY(basis, loadKeyBasis(request.draft, draft.config().numHiddenLayers, meta.keyRank));
    MLA_TRY(resources, resourceDirectory());
    DraftContent content{
        draft, draft.config(),       meta, calibration, resources / "python", basis, {},
        dtype, request.maxShardBytes};
    if (dtype)
        content.config.dtype = configName(*dtype);
    content.layer = [](LayerIndex) { return std::optional<LayerTensors>(); };
    MLA_CHECK(writeDraft(content, folder));
    if (request.layout != "vllm-plugin")
        return {};
    return copyPlugin(resources / "python" / kPlugin, folder / kPlugin);
}

std::int64_t weightBytes(const fs::path& folder)
{
    std::int64_t bytes = 0;
    std::error_code ignored;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored))
        if (entry.path().extension() == ".safetensors")
            bytes += static_cast<std::int64_t>(entry.file_size(ignored));
    return bytes;
}

json reportJson(const ExportRecord& record)
{
    json checks = json::array();
    for (const ExportCheckRecord& check : record.checks)
        checks.push_back({{"stack", check.stack},
                          {"tried", check.tried()},
                          {"software", check.software},
                          {"class", check.modelClass},
                          {"compared_with", check.reference},
                          {"logit_difference_of_spread", check.logitDifference},
                          {"bound", check.bound},
                          {"prompts", check.prompts},
                          {"greedy_tokens", check.greedyTokens},
                          {"equal_tokens", check.equalTokens},
                          {"passed", check.passed},
                          {"remark", check.remark}});
    return {{"run", record.run},         {"layout", record.layout},     {"dtype", record.dtype},
            {"created", record.created}, {"software", record.software}, {"keeps", record.keeps},
            {"loses", record.loses},     {"checks", std::move(checks)}};
}

Status writeCard(const ExportRequest& request, const Checkpoint& draft, const DraftMeta& meta,
                 const ExportRecord& record, const fs::path& folder)
{
    StudyData study;
    if (request.study && fs::exists(*request.study)) {
        MLA_TRY(stored, loadStudy(*request.study));
        study = std::move(stored);
    }
    const ModelCard card{draft.config(),
                         record,
                         meta.sourcePath,
                         meta.sourceFingerprint,
                         meta.variant,
                         meta.convert.converter,
                         meta.settingsJson,
                         licenceOf(meta.sourcePath),
                         &study};
    return writeFileAtomically(folder / "README.md", modelCardText(card));
}

Status verify(JobContext& job, const ExportRequest& request, const Checkpoint& draft,
              const CalibrationSet& calibration, std::optional<DType> dtype, const fs::path& folder,
              ExportOutcome& outcome)
{
    const TokenWindows windows = heldoutWindows(calibration);
    MLA_TRY(checks,
            verifyExport(job, {draft, folder, request.layout, boundBesideDraft(dtype, outcome.loss),
                               windows, request.compute}));
    outcome.maxLogitDifference = checks.front().logitDifference;
    for (const ExportCheckRecord& check : checks)
        if (!check.tried())
            outcome.warnings.push_back("not verified in " + check.stack + ": " + check.remark);
    outcome.record.checks = std::move(checks);
    return writeFileAtomically(folder / kReport, reportJson(outcome.record).dump(2) + "\n");
}

Result<ExportOutcome> exportNow(JobContext& job, const ExportRequest& request)
{
    MLA_TRY(dtype, dtypeOption(request.dtype));
    MLA_TRY(draft, openDraft(request.draft));
    MLA_TRY(layout, usableLayout(draft, request.layout));
    MLA_TRY(meta, readDraftMeta(request.draft));
    MLA_TRY(calibration, loadCalibration(calibrationFile(request.draft)));
    MLA_TRY(staged, StagedDirectory::create(request.output, request.overwrite));
    ExportOutcome outcome;
    if (request.layout == "deepseek") {
        MLA_TRY(loss, exportDeepseek(job, draft, request, dtype, staged.path()));
        outcome.loss = std::move(loss);
    } else {
        job.emitEvent(StageStarted{"export", 1, "drafts", {}});
        MLA_CHECK(writeOwnWeights(request, draft, meta, calibration, dtype, staged.path()));
    }
    outcome.output = request.output;
    ExportRecord& record = outcome.record;
    record.run = meta.runId;
    record.layout = request.layout;
    record.dtype = request.dtype.value_or("as in the draft");
    record.id = meta.runId + "/" + request.layout + "-" + request.dtype.value_or("draft");
    record.path = fs::absolute(request.output).lexically_normal().string();
    record.created = utcNow();
    record.software = softwareText();
    record.weightBytes = weightBytes(staged.path());
    record.keeps = std::move(layout.keeps);
    record.loses = std::move(layout.loses);
    if (outcome.loss)
        (outcome.loss->exact ? record.keeps : record.loses)
            .push_back("against the draft, " + layoutLossText(*outcome.loss));
    if (request.verify)
        MLA_CHECK(verify(job, request, draft, calibration, dtype, staged.path(), outcome));
    MLA_CHECK(writeCard(request, draft, meta, record, staged.path()));
    MLA_CHECK(staged.commit());
    if (request.study)
        MLA_CHECK(updateStudy(*request.study, [&](StudyData& study) -> Status {
            study.put(record);
            return {};
        }));
    return outcome;
}

} // namespace

Result<LayoutDescription> describeExport(const fs::path& draft, const std::string& layout)
{
    MLA_TRY(opened, openDraft(draft));
    return describeLayout(opened.config(), layout, draft.string());
}

Result<ExportOutcome> exportDraft(JobContext& job, const ExportRequest& request)
{
    useOneThread();
    return guardedResult("export", [&] { return exportNow(job, request); });
}

} // namespace mla
