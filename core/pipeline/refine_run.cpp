// SPDX-License-Identifier: GPL-3.0-or-later
#include <nlohmann/json.hpp>

#include <mutex>

#include "core/base/elapsed.h"
#include "core/base/resources.h"
#include "core/evaluate/fidelity.h"
#include "core/export/imported_draft.h"
#include "core/model/layer_loading.h"
#include "core/model/tensors.h"
#include "core/pipeline/draft_run.h"
#include "core/pipeline/internal.h"
#include "core/pipeline/layer_workers.h"
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
    [[nodiscard]] Status checkPair() const;
    void noteImport();
    [[nodiscard]] std::string manifest() const;
    [[nodiscard]] LayerRange range() const;
    [[nodiscard]] RefineOptions options() const;
    Result<NamedCalibration> calibration(const PartsFolder& parts);
    Result<std::pair<LayerRecord, LayerTensors>> refineOne(LayerActivations& layer);
    Status refineLayers(PartsFolder& parts);
    Result<RunRecord> record(const PartsFolder& parts) const;
    Result<DraftContent> content(const PartsFolder& parts, const RunRecord& run) const;

    JobContext& m_job;
    const RefineRequest& m_request;
    Checkpoint m_original, m_draft;
    DraftMeta m_meta; ///< of the draft that is refined
    std::string m_runId, m_fingerprint;
    NamedCalibration m_calibration;
    std::vector<KeyBasis> m_basis;
    std::mutex m_mutex;
    std::vector<std::string> m_warnings;
    torch::Device m_device = torch::kCPU;
};

Status RefineRun::checkPair() const
{
    ModelConfig expected = m_draft.config();
    const ModelConfig& source = m_original.config();
    const auto differs = [&](const char* key, int draft, int original) -> Status {
        if (draft == original)
            return {};
        return badInput("is not the original of this draft: " + std::string(key) + " is " +
                            std::to_string(original) + " there and " + std::to_string(draft) +
                            " in the draft",
                        m_original.directory().string());
    };
    MLA_CHECK(differs("num_hidden_layers", expected.numHiddenLayers, source.numHiddenLayers));
    MLA_CHECK(differs("hidden_size", expected.hiddenSize, source.hiddenSize));
    MLA_CHECK(differs("num_attention_heads", expected.numAttentionHeads, source.numAttentionHeads));
    if (expected.mla->layout != DraftLayout::TransMla) // which does not record them
        MLA_CHECK(
            differs("num_key_value_heads", expected.numKeyValueHeads, source.numKeyValueHeads));
    MLA_CHECK(differs("head_dim", expected.headDim, source.headDim));
    if (m_request.settings.layers && m_request.settings.layers->last >= source.numHiddenLayers)
        return usageError("--layers " + std::to_string(m_request.settings.layers->first) + "-" +
                          std::to_string(m_request.settings.layers->last) +
                          ": the model has layers 0-" + std::to_string(source.numHiddenLayers - 1));
    if (m_request.settings.objective == "partial-rope" &&
        expected.mla->layout == DraftLayout::TransMla)
        return badInput("--objective partial-rope needs the rotation of the rotary keys, which "
                        "TransMLA does not store with a draft",
                        m_draft.directory().string(), "use --objective functional");
    if (!m_meta.sourceFingerprint.empty() && m_meta.sourceFingerprint != m_fingerprint)
        return badInput("is not the checkpoint this draft was converted from (" +
                            m_meta.sourcePath + "): its fingerprint differs",
                        m_original.directory().string());
    return {};
}

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

LayerRange RefineRun::range() const
{
    return m_request.settings.layers.value_or(
        LayerRange{0, m_original.config().numHiddenLayers - 1});
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
    return json{
        {"stage", "refine"},
        {"run", m_runId},
        {"parent", m_meta.runId},
        {"draft", fs::absolute(m_request.draft).lexically_normal().string()},
        {"original", fs::absolute(m_request.original).lexically_normal().string()},
        {"fingerprint", m_fingerprint},
        {"output", fs::absolute(m_request.output).lexically_normal().string()},
        {"refine", toJson(m_request.settings)},
        {"calibration", m_request.calibration ? toJson(*m_request.calibration) : json("draft")},
        {"seed", m_request.compute.seed}}
        .dump(2);
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

Result<std::pair<LayerRecord, LayerTensors>> RefineRun::refineOne(LayerActivations& layer)
{
    const SteadyClock::time_point begun = SteadyClock::now();
    const GqaBlock& gqa = std::get<GqaBlock>(layer.weights.attention);
    MLA_TRY(start, loadMlaBlock(m_draft, layer.layer, m_device));
    const CalibrationSet& set = m_calibration.set;
    const torch::Tensor mask = set.mask.to(m_device);
    const std::int64_t heldout = set.heldout(), train = set.sequences() - heldout;
    const KeyBasis& basis = m_basis[static_cast<std::size_t>(layer.layer.value)];
    const auto objective =
        m_request.settings.objective == "functional"
            ? functionalObjective(layer.output.narrow(0, 0, train), mask.narrow(0, 0, train))
            : partialRopeObjective(gqa, basis);
    const LayerData data{layer.layer, layer.input, layer.output, mask, static_cast<int>(heldout)};
    MLA_TRY(refined, refineLayer(m_job, start, basis, *objective, data, options()));

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
    for (const std::string& warning : refined.warnings) {
        m_job.warn(warning);
        const std::scoped_lock lock(m_mutex);
        m_warnings.push_back(warning);
    }
    return std::pair{std::move(record), draftTensors(refined.block)};
}

Status RefineRun::refineLayers(PartsFolder& parts)
{
    const LayerRange wanted = range();
    const int total = wanted.last - wanted.first + 1;
    m_job.emitEvent(StageStarted{"refine", total, "layers", m_runId});
    int done = static_cast<int>(parts.finished().size());
    return forEachLayer(
        m_job, m_original, m_calibration.set, m_device, workerCount(m_request.compute, m_device),
        [&](LayerIndex layer) {
            return layer.value >= wanted.first && layer.value <= wanted.last &&
                   !parts.finished().contains(layer);
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
    run.settingsJson = json{{"refine", toJson(m_request.settings)},
                            {"learning_rate", options().learningRate},
                            {"compute", toJson(m_request.compute)}}
                           .dump();
    run.device = deviceText(m_device);
    run.software = softwareText();
    run.created = utcNow();
    run.seed = m_request.compute.seed;
    run.kvLoraRank = m_draft.config().mla->latentRank.front();
    run.qkRopeHeadDim = m_draft.config().mla->qkRopeHeadDim;
    run.cacheElements = m_draft.config().cacheElements(0);
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
    DraftContent content{m_draft,
                         ownLayout(m_draft.config(), m_original.config()),
                         m_meta,
                         m_calibration.set,
                         resources / "python",
                         m_basis,
                         {},
                         {}};
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
        if (layer.value < range().first || layer.value > range().last) {
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
    MLA_CHECK(checkPair());
    if (isImported(m_draft))
        noteImport();
    const std::string stem = m_meta.runId.substr(0, m_meta.runId.rfind('/'));
    m_runId = stem + "/" + m_request.settings.objective;
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
    if (request.calibration)
        MLA_CHECK(validate(*request.calibration));
    MLA_TRY(original, openSource(request.original));
    MLA_TRY(draft, openDraft(request.draft));
    MLA_TRY(meta, draftMeta(draft));
    RefineRun run(job, request, std::move(original), std::move(draft), std::move(meta));
    std::optional<Result<RunOutcome>> outcome;
    MLA_CHECK(guarded("refine", [&]() -> Status {
        outcome.emplace(run.run(windows));
        return {};
    }));
    return std::move(*outcome);
}

Result<RunOutcome> refineDraft(JobContext& job, const RefineRequest& request)
{
    return refineWith(job, request, {});
}

} // namespace mla
