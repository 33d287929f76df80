// SPDX-License-Identifier: GPL-3.0-or-later
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "core/base/elapsed.h"
#include "core/base/resources.h"
#include "core/evaluate/fidelity.h"
#include "core/export/deepseek_plan.h"
#include "core/export/imported_draft.h"
#include "core/model/constant_channel.h"
#include "core/model/layer_loading.h"
#include "core/model/tensors.h"
#include "core/pipeline/draft_run.h"
#include "core/pipeline/internal.h"
#include "core/pipeline/layer_workers.h"
#include "core/pipeline/refine_checks.h"
#include "core/refine/layer_refiner.h"
#include "core/store/study.h"

namespace mla
{
namespace
{

namespace fs = std::filesystem;
using nlohmann::json;

/// One refinement in work.
class RefineRun
{
public:
    RefineRun(JobContext& job, const RefineRequest& request, Checkpoint original, Checkpoint draft,
              DraftMeta meta)
        : m_job(job), m_request(request), m_original(std::move(original)),
          m_draft(std::move(draft)), m_meta(std::move(meta))
    {
    }
    Result<RunOutcome> run(const TokenWindows& windows);

private:
    void noteImport();
    Status chooseLayout();
    Result<MlaBlock> startOf(LayerActivations& layer);
    void warn(const std::string& text);
    [[nodiscard]] std::string manifest() const;
    [[nodiscard]] LayerRange range() const;
    [[nodiscard]] bool inRange(LayerIndex layer) const;
    [[nodiscard]] RefineOptions options() const;
    Result<NamedCalibration> calibration(const PartsFolder& parts);
    Result<std::pair<LayerRecord, LayerTensors>> refineOne(LayerActivations& layer);
    Status refineLayers(PartsFolder& parts);
    Result<RunRecord> record(const PartsFolder& parts) const;
    Result<DraftContent> content(const PartsFolder& parts, const RunRecord& run) const;

    JobContext& m_job;
    const RefineRequest& m_request;
    Checkpoint m_original, m_draft;
    DraftMeta m_meta;       ///< of the draft that is refined
    ModelConfig m_config;   ///< of what comes out
    bool m_addNorm = false; ///< every layer gets a latent norm, refined or not
    std::string m_runId, m_fingerprint;
    NamedCalibration m_calibration;
    std::vector<KeyBasis> m_basis;
    std::mutex m_mutex;
    std::vector<std::string> m_warnings;
    torch::Device m_device = torch::kCPU;
};

/// Says what the draft's own directory does not.
void RefineRun::noteImport()
{
    std::string text = importedFrom(m_draft) + " wrote this draft: its source is taken to be " +
                       m_original.directory().string();
    if (!m_request.calibration) {
        const CalibrationSettings settings;
        text += ", and calibration is " + std::to_string(settings.sequences) + " sequences of " +
                std::to_string(settings.length) + " tokens that the source generates";
    }
    m_job.warn(text);
    m_warnings.push_back(std::move(text));
}

/// The config of the result, or why it cannot be had in the layout asked for.
Status RefineRun::chooseLayout()
{
    m_config = ownLayout(m_draft.config(), m_original.config());
    if (m_request.layout == "huggingface")
        return {};
    MLA_TRY(plan, planDeepseek(m_config, m_draft.directory().string()));
    m_addNorm = !plan.exact;
    m_config = withLatentNorm(std::move(m_config));
    return {};
}

void RefineRun::warn(const std::string& text)
{
    m_job.warn(text);
    const std::scoped_lock lock(m_mutex);
    m_warnings.push_back(text);
}

LayerRange RefineRun::range() const
{
    return m_request.settings.layers.value_or(
        LayerRange{0, m_original.config().numHiddenLayers - 1});
}

bool RefineRun::inRange(LayerIndex layer) const
{
    return layer.value >= range().first && layer.value <= range().last;
}

RefineOptions RefineRun::options() const
{
    const RefineSettings& s = m_request.settings;
    RefineOptions options;
    options.steps = s.steps;
    options.learningRate =
        s.learningRate.value_or(m_meta.convert.converter == "mha2mla" ? 4e-3 : 2e-3);
    options.batchSequences = std::max(1, s.batchTokens / m_calibration.set.length());
    options.clip = s.clip;
    options.warmup = s.warmup;
    options.seed = m_request.compute.seed;
    return options;
}

std::string RefineRun::manifest() const
{
    json manifest = {
        {"stage", "refine"},
        {"run", m_runId},
        {"parent", m_meta.runId},
        {"draft", fs::absolute(m_request.draft).lexically_normal().string()},
        {"original", fs::absolute(m_request.original).lexically_normal().string()},
        {"fingerprint", m_fingerprint},
        {"output", fs::absolute(m_request.output).lexically_normal().string()},
        {"refine", toJson(m_request.settings)},
        {"calibration", m_request.calibration ? toJson(*m_request.calibration) : json("draft")},
        {"seed", m_request.compute.seed}};
    if (m_request.layout != "huggingface")
        manifest["layout"] = m_request.layout;
    return manifest.dump(2);
}

Result<NamedCalibration> RefineRun::calibration(const PartsFolder& parts)
{
    if (m_request.calibration || isImported(m_draft))
        return obtainCalibration(
            m_job, m_original, m_fingerprint, m_request.calibration.value_or(CalibrationSettings{}),
            m_request.compute, m_request.study, parts.folder() / "calibration.safetensors");
    MLA_TRY(set, loadCalibration(calibrationFile(m_request.draft)));
    NamedCalibration named{std::move(set), "of-" + m_meta.runId};
    if (m_request.study && fs::exists(*m_request.study)) { // the same set under the id it has there
        MLA_TRY(study, loadStudy(*m_request.study));
        if (const RunRecord* parent = study.findRun(m_meta.runId))
            named.id = parent->calibration;
    }
    return named;
}

/// The draft's block as training begins with it.
Result<MlaBlock> RefineRun::startOf(LayerActivations& layer)
{
    constexpr double kLargeSpread = 0.1; // a few percent is usual
    MLA_TRY(block, loadMlaBlock(m_draft, layer.layer, m_device));
    if (!m_addNorm)
        return std::move(block);
    const CalibrationSet& set = m_calibration.set;
    const std::int64_t train = set.sequences() - set.heldout();
    const ConstantChannel channel =
        fitConstantChannel(block, layer.input.narrow(0, 0, train), set.mask.narrow(0, 0, train),
                           std::max(kStockLatentNormEps, m_config.rmsNormEps));
    if (channel.spread > kLargeSpread)
        warn("layer " + std::to_string(layer.layer.value) +
             ": the constant of the latent norm varies by " +
             std::to_string(std::lround(100 * channel.spread)) + " % over the calibration");
    const bool keysMatter = m_request.settings.objective == "partial-rope";
    return withConstantChannel(block, channel, keysMatter ? NopeKeyBias::Carry : NopeKeyBias::Drop);
}

Result<std::pair<LayerRecord, LayerTensors>> RefineRun::refineOne(LayerActivations& layer)
{
    const SteadyClock::time_point begun = SteadyClock::now();
    const GqaBlock& gqa = std::get<GqaBlock>(layer.weights.attention);
    MLA_TRY(start, startOf(layer));
    const CalibrationSet& set = m_calibration.set;
    const torch::Tensor mask = set.mask.to(m_device);
    const std::int64_t heldout = set.heldout(), train = set.sequences() - heldout;
    const KeyBasis& basis = m_basis[static_cast<std::size_t>(layer.layer.value)];
    const auto objective =
        m_request.settings.objective == "functional"
            ? functionalObjective(layer.output.narrow(0, 0, train), mask.narrow(0, 0, train))
            : partialRopeObjective(gqa, basis);
    const LayerData data{layer.layer, layer.input, layer.output, mask, static_cast<int>(heldout)};
    RefineOptions training = options();
    if (!inRange(layer.layer))
        training.steps = 0; // it only gets its norm
    MLA_TRY(refined, refineLayer(m_job, start, basis, *objective, data, training));

    const auto fidelity = [&](const MlaBlock& block) {
        return blockFidelity(gqa, block, layer.input.narrow(0, train, heldout),
                             layer.output.narrow(0, train, heldout),
                             mask.narrow(0, train, heldout));
    };
    LayerRecord record;
    record.layer = layer.layer;
    record.before = fidelity(start);
    record.after = fidelity(refined.block);
    record.lossBefore = refined.lossBefore;
    record.lossAfter = refined.lossAfter;
    record.keptConverted = refined.keptConverted;
    record.loss = std::move(refined.curve);
    record.seconds = secondsSince(begun);
    record.complete = true;
    for (const std::string& warning : refined.warnings)
        warn(warning);
    return std::pair{std::move(record), draftTensors(refined.block)};
}

Status RefineRun::refineLayers(PartsFolder& parts)
{
    const int total = m_addNorm ? m_config.numHiddenLayers : range().last - range().first + 1;
    m_job.emitEvent(StageStarted{"refine", total, "layers", m_runId});
    int done = static_cast<int>(parts.finished().size());
    return forEachLayer(
        m_job, m_original, m_calibration.set, m_device, workerCount(m_request.compute, m_device),
        [&](LayerIndex layer) {
            return (m_addNorm || inRange(layer)) && !parts.finished().contains(layer);
        },
        [&](LayerActivations& layer) -> Status {
            MLA_TRY(result, refineOne(layer));
            std::vector<TensorView> views;
            for (const auto& [name, tensor] : result.second)
                views.push_back(viewOf(name, tensor));
            const std::scoped_lock lock(m_mutex);
            MLA_CHECK(parts.write(result.first, views));
            m_job.emitEvent(layerFinished(result.first, "refine"));
            m_job.emitEvent(StageProgress{"refine", static_cast<double>(++done), total});
            return {};
        });
}

Result<RunRecord> RefineRun::record(const PartsFolder& parts) const
{
    RunRecord run;
    run.id = m_runId;
    run.variant = m_request.settings.objective;
    run.converter = m_meta.convert.converter;
    run.checkpoint = checkpointId(m_original.directory());
    run.parent = m_meta.runId;
    run.calibration = m_calibration.id;
    json settings = {{"refine", toJson(m_request.settings)},
                     {"learning_rate", options().learningRate},
                     {"layout", m_request.layout},
                     {"compute", toJson(m_request.compute)}};
    if (m_request.calibration) // not the one of the draft's conversion
        settings["calibration"] = toJson(*m_request.calibration);
    run.settingsJson = settings.dump();
    run.device = deviceText(m_device);
    run.software = softwareText();
    run.created = utcNow();
    run.seed = m_request.compute.seed;
    run.kvLoraRank = m_config.mla->latentRank.front();
    run.qkRopeHeadDim = m_config.mla->qkRopeHeadDim;
    run.cacheElements = m_config.cacheElements(0);
    run.originalCacheElements = m_original.config().cacheElements(0);
    run.warnings = m_warnings;
    for (int layer = range().first; layer <= range().last; ++layer) {
        MLA_TRY(part, parts.record(LayerIndex(layer)));
        run.layers.push_back(std::move(part));
    }
    return run;
}

Result<DraftContent> RefineRun::content(const PartsFolder& parts, const RunRecord& run) const
{
    MLA_TRY(resources, resourceDirectory());
    DraftContent content{m_draft, m_config, m_meta, m_calibration.set, resources / "python",
                         m_basis, {},       {}};
    if (isImported(m_draft)) {
        content.meta.sourcePath = fs::absolute(m_request.original).lexically_normal().string();
        content.meta.sourceFingerprint = m_fingerprint;
    }
    content.meta.runId = run.id;
    content.meta.variant = run.variant;
    content.meta.settingsJson = run.settingsJson;
    content.meta.software = run.software;
    content.meta.created = run.created;
    content.layer = [this, &parts](LayerIndex layer) -> Result<std::optional<LayerTensors>> {
        if (!m_addNorm && !inRange(layer)) {
            if (!isImported(m_draft))
                return std::optional<LayerTensors>();
            MLA_TRY(block, loadMlaBlock(m_draft, layer)); // as it is, in our layout
            return std::optional(draftTensors(block));
        }
        MLA_TRY(file, parts.tensors(layer));
        LayerTensors tensors;
        for (const auto& [name, info] : file.tensors()) {
            MLA_TRY(tensor, loadTensor(file, name, torch::kFloat32));
            tensors.emplace_back(name, std::move(tensor));
        }
        return std::optional(std::move(tensors));
    };
    return content;
}

Result<RunOutcome> RefineRun::run(const TokenWindows& windows)
{
    const SteadyClock::time_point begun = SteadyClock::now();
    MLA_TRY(device, resolveDevice(m_request.compute.device));
    m_device = device;
    MLA_TRY(fingerprint, m_original.fingerprint());
    m_fingerprint = std::move(fingerprint);
    MLA_CHECK(checkRefinement(m_original, m_fingerprint, m_draft, m_meta, m_request.settings));
    MLA_CHECK(chooseLayout());
    if (isImported(m_draft))
        noteImport();
    const std::string stem = m_meta.runId.substr(0, m_meta.runId.rfind('/'));
    m_runId = stem + "/" + m_request.settings.objective;
    if (m_request.layout != "huggingface")
        m_runId += "-" + m_request.layout; // a run beside the one without a norm
    if (m_runId == m_meta.runId)
        m_runId += "-again"; // a refined draft refined once more is a run of its own
    const RunTarget target{m_request.output, m_request.study, m_request.overwrite,
                           m_request.resume};
    MLA_TRY(parts, openRun(target, m_runId, manifest()));
    MLA_TRY(named, calibration(parts));
    m_calibration = std::move(named);
    MLA_TRY(basis, draftKeyBasis(m_draft, m_meta));
    m_basis = std::move(basis);
    MLA_CHECK(refineLayers(parts));
    MLA_TRY(run, record(parts));
    MLA_TRY(draft, content(parts, run));
    return finishRun(m_job, target, parts,
                     {m_original, m_fingerprint, m_calibration, std::move(draft), std::move(run),
                      "refined", windows, m_device, workerCount(m_request.compute, m_device)},
                     begun);
}

} // namespace

Result<RunOutcome> refineWith(JobContext& job, const RefineRequest& request,
                              const TokenWindows& windows)
{
    useOneThread();
    MLA_CHECK(validate(request.settings));
    if (request.layout != "huggingface" && request.layout != "deepseek")
        return usageError("--layout: '" + request.layout + "' is none of huggingface, deepseek");
    if (request.calibration)
        MLA_CHECK(validate(*request.calibration));
    MLA_TRY(original, openSource(request.original));
    MLA_TRY(draft, openDraft(request.draft));
    MLA_TRY(meta, draftMeta(draft));
    RefineRun run(job, request, std::move(original), std::move(draft), std::move(meta));
    return guardedResult("refine", [&] { return run.run(windows); });
}

Result<RunOutcome> refineDraft(JobContext& job, const RefineRequest& request)
{
    return refineWith(job, request, {});
}

} // namespace mla
