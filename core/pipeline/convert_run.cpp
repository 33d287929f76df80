// SPDX-License-Identifier: GPL-3.0-or-later
#include <nlohmann/json.hpp>

#include <array>
#include <mutex>

#include "core/base/elapsed.h"
#include "core/base/resources.h"
#include "core/convert/conversion_limits.h"
#include "core/convert/converter.h"
#include "core/convert/kv_factorization.h"
#include "core/convert/rope_residual.h"
#include "core/evaluate/fidelity.h"
#include "core/model/layer_loading.h"
#include "core/model/tensors.h"
#include "core/pipeline/draft_run.h"
#include "core/pipeline/internal.h"
#include "core/pipeline/layer_workers.h"
#include "core/refine/layer_refiner.h"

namespace mla
{
namespace
{

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kPairs = "rope_pairs";
const std::string kFullRank = "full_rank."; // prefix of projections that lose rotation alone
constexpr std::array<std::pair<const char*, torch::Tensor MlaBlock::*>, 10> projections = {{
    {"wq", &MlaBlock::wq},
    {"bq", &MlaBlock::bq},
    {"wdkv", &MlaBlock::wdkv},
    {"bdkv", &MlaBlock::bdkv},
    {"wkr", &MlaBlock::wkr},
    {"bkr", &MlaBlock::bkr},
    {"wuk", &MlaBlock::wuk},
    {"buk", &MlaBlock::buk},
    {"wuv", &MlaBlock::wuv},
    {"buv", &MlaBlock::buv},
}};
constexpr std::int64_t kResidualSequences = 2; // attention logits are quadratic in length

torch::Tensor pairsTensor(const std::vector<std::vector<int>>& pairs)
{
    std::vector<torch::Tensor> rows;
    for (const std::vector<int>& head : pairs)
        rows.push_back(torch::tensor(head, torch::kInt64));
    return torch::stack(rows);
}

std::vector<std::vector<int>> pairsFrom(const torch::Tensor& tensor)
{
    std::vector<std::vector<int>> pairs;
    for (std::int64_t head = 0; head < tensor.size(0); ++head) {
        pairs.emplace_back();
        for (std::int64_t i = 0; i < tensor.size(1); ++i)
            pairs.back().push_back(tensor[head][i].item<int>());
    }
    return pairs;
}

/// KeyBasis::keyRank of a `split` conversion: a matter of sizes alone.
int keyRankOf(const ModelConfig& config, int ropeDim, int rank)
{
    const int keyRows = config.numKeyValueHeads * (config.headDim - ropeDim);
    const int valueRows = config.numKeyValueHeads * config.headDim;
    return splitKeyRank(std::min(keyRows, config.hiddenSize),
                        std::min(valueRows, config.hiddenSize), rank);
}

/// One conversion in work.
class ConvertRun
{
public:
    ConvertRun(JobContext& job, const ConvertRequest& request, Checkpoint original,
               std::unique_ptr<Converter> converter)
        : m_job(job), m_request(request), m_original(std::move(original)),
          m_converter(std::move(converter))
    {
    }
    Result<RunOutcome> run(const TokenWindows& windows);

private:
    [[nodiscard]] std::string manifest() const;
    Result<std::pair<LayerRecord, LayerTensors>> convertLayer(LayerActivations& layer) const;
    Status convertLayers(PartsFolder& parts);
    Result<ModelConfig> draftConfig(const PartsFolder& parts) const;
    Result<RunRecord> record(const PartsFolder& parts, const ModelConfig& config) const;
    Result<DraftContent> content(const PartsFolder& parts, const ModelConfig& config,
                                 const RunRecord& run) const;
    Result<bool> atFullRank(const PartsFolder& parts, Decoder& draft) const;
    [[nodiscard]] int layers() const { return m_original.config().numHiddenLayers; }
    [[nodiscard]] json settings() const
    {
        return {{"convert", toJson(m_request.settings)},
                {"calibration", toJson(m_request.calibration)},
                {"compute", toJson(m_request.compute)}};
    }

    JobContext& m_job;
    const ConvertRequest& m_request;
    Checkpoint m_original;
    std::unique_ptr<Converter> m_converter;
    std::string m_runId, m_fingerprint;
    NamedCalibration m_calibration;
    torch::Device m_device = torch::kCPU;
};

std::string ConvertRun::manifest() const
{
    return json{{"stage", "convert"},
                {"run", m_runId},
                {"checkpoint", fs::absolute(m_request.checkpoint).lexically_normal().string()},
                {"fingerprint", m_fingerprint},
                {"output", fs::absolute(m_request.output).lexically_normal().string()},
                {"convert", toJson(m_request.settings)},
                {"calibration", toJson(m_request.calibration)},
                {"seed", m_request.compute.seed}}
        .dump(2);
}

Result<std::pair<LayerRecord, LayerTensors>> ConvertRun::convertLayer(LayerActivations& layer) const
{
    const SteadyClock::time_point begun = SteadyClock::now();
    const GqaBlock& gqa = std::get<GqaBlock>(layer.weights.attention);
    const CalibrationSet& set = m_calibration.set;
    const std::int64_t heldout = set.heldout(), train = set.sequences() - heldout;
    const LayerSample sample{gqa, layer.input.narrow(0, 0, train), set.mask.narrow(0, 0, train)};
    const int rank = m_request.settings.kvLoraRank;
    const int full = m_converter->fullRank(m_original.config());
    MLA_TRY(converted, m_converter->convert(sample, rank));
    MLA_TRY(lossless, m_converter->convert(sample, full)); // only the rotary change is lossy in it
    converted.block = movedTo(std::move(converted.block), m_device);
    lossless.block = movedTo(std::move(lossless.block), m_device);

    const LayerData data{layer.layer, layer.input, layer.output, set.mask,
                         static_cast<int>(heldout)};
    const auto objective = functionalObjective(layer.output, set.mask.to(layer.output.device()));
    LayerRecord record;
    record.layer = layer.layer;
    record.spectrum = std::move(converted.spectrum);
    record.rope = std::move(converted.rope);
    const std::int64_t rows = std::min(kResidualSequences, heldout);
    measureScoreResidual(gqa, lossless.block, layer.input.narrow(0, train, rows),
                         set.mask.narrow(0, train, rows), *record.rope);
    record.after =
        blockFidelity(gqa, converted.block, layer.input.narrow(0, train, heldout),
                      layer.output.narrow(0, train, heldout), set.mask.narrow(0, train, heldout));
    record.lossAfter = heldoutLoss(*objective, converted.block, data, 4);
    LayerTensors tensors = draftTensors(converted.block);
    for (auto& entry : basisTensors(converted.basis))
        tensors.push_back(std::move(entry));
    tensors.emplace_back(kPairs, pairsTensor(converted.ropePairs));
    for (const auto& [name, projection] : projections)
        if (const torch::Tensor& tensor = lossless.block.*projection;
            tensor.defined() && tensor.numel() > 0) // without nope dims W_uk has no rows
            tensors.emplace_back(kFullRank + name, tensor.to(torch::kCPU).contiguous());
    record.seconds = secondsSince(begun);
    record.complete = true;
    return std::pair{std::move(record), std::move(tensors)};
}

Status ConvertRun::convertLayers(PartsFolder& parts)
{
    std::mutex mutex;
    m_job.emitEvent(StageStarted{"convert", layers(), "layers", m_runId});
    int done = static_cast<int>(parts.finished().size());
    return forEachLayer(
        m_job, m_original, m_calibration.set, m_device, workerCount(m_request.compute, m_device),
        [&](LayerIndex layer) { return !parts.finished().contains(layer); },
        [&](LayerActivations& layer) -> Status {
            if (m_job.stopRequested())
                return cancelled();
            MLA_TRY(result, convertLayer(layer));
            std::vector<TensorView> views;
            for (const auto& [name, tensor] : result.second)
                views.push_back(viewOf(name, tensor));
            const std::scoped_lock lock(mutex);
            MLA_CHECK(parts.write(result.first, views));
            m_job.emitEvent(layerFinished(result.first, "convert"));
            m_job.emitEvent(StageProgress{"convert", static_cast<double>(++done), layers()});
            return {};
        });
}

Result<ModelConfig> ConvertRun::draftConfig(const PartsFolder& parts) const
{
    ModelConfig config = m_original.config();
    config.modelType = "mla_draft";
    config.qkvBias = false; // query_bias, kv_down_bias and kv_up_bias say it of a draft
    MlaConfig mla;
    mla.converter = m_request.settings.converter;
    mla.qkRopeHeadDim = m_request.settings.qkRopeHeadDim;
    mla.vHeadDim = config.headDim;
    // The amplitude of YaRN's cos and sin, for all dims: those that lose rotation had it too.
    const double amplitude = config.rope.attentionFactor;
    mla.attentionScale = amplitude * amplitude / std::sqrt(static_cast<double>(config.headDim));
    for (int layer = 0; layer < layers(); ++layer) {
        MLA_TRY(file, parts.tensors(LayerIndex(layer)));
        MLA_TRY(pairs, loadTensor(file, kPairs, torch::kInt64));
        const auto shape = [&](const char* name) { return file.tensors().at(name).shape; };
        mla.ropePairs.push_back(pairsFrom(pairs));
        mla.ropeKeyHeads = static_cast<int>(pairs.size(0));
        mla.kvUpHeads = mla.ropeKeyHeads == 1 && file.tensors().contains("rope_map")
                            ? config.numAttentionHeads
                            : config.numKeyValueHeads;
        mla.latentRank.push_back(static_cast<int>(shape("kv_b_proj.weight")[1]));
        mla.qkNopeHeadDim =
            static_cast<int>(shape("kv_b_proj.weight")[0]) / mla.kvUpHeads - mla.vHeadDim;
        mla.queryBias = file.tensors().contains("q_proj.bias");
        mla.kvDownBias = file.tensors().contains("kv_a_proj_with_mqa.bias");
        mla.kvUpBias = file.tensors().contains("kv_b_proj.bias");
    }
    config.mla = std::move(mla);
    return config;
}

Result<RunRecord> ConvertRun::record(const PartsFolder& parts, const ModelConfig& config) const
{
    RunRecord run;
    run.id = m_runId;
    run.variant = "converted";
    run.converter = m_request.settings.converter;
    run.checkpoint = checkpointId(m_original.directory());
    run.calibration = m_calibration.id;
    run.settingsJson = settings().dump();
    run.device = deviceText(m_device);
    run.software = softwareText();
    run.created = utcNow();
    run.seed = m_request.compute.seed;
    run.kvLoraRank = m_request.settings.kvLoraRank;
    run.qkRopeHeadDim = m_request.settings.qkRopeHeadDim;
    run.cacheElements = config.cacheElements(0);
    run.originalCacheElements = m_original.config().cacheElements(0);
    run.warnings = conversionWarnings(m_original.config(), run.cacheElements);
    for (int layer = 0; layer < layers(); ++layer) {
        MLA_TRY(part, parts.record(LayerIndex(layer)));
        run.layers.push_back(std::move(part));
    }
    return run;
}

Result<DraftContent> ConvertRun::content(const PartsFolder& parts, const ModelConfig& config,
                                         const RunRecord& run) const
{
    MLA_TRY(resources, resourceDirectory());
    DraftContent content{m_original,           config, {}, m_calibration.set,
                         resources / "python", {},     {}, {}};
    content.meta.runId = run.id;
    content.meta.variant = run.variant;
    content.meta.sourcePath = fs::absolute(m_request.checkpoint).lexically_normal().string();
    content.meta.sourceFingerprint = m_fingerprint;
    content.meta.convert = m_request.settings;
    content.meta.settingsJson = run.settingsJson;
    content.meta.software = run.software;
    content.meta.created = run.created;
    if (m_request.settings.svd == "split")
        content.meta.keyRank =
            keyRankOf(m_original.config(), m_request.settings.qkRopeHeadDim, run.kvLoraRank);
    for (int layer = 0; layer < layers(); ++layer) {
        MLA_TRY(file, parts.tensors(LayerIndex(layer)));
        MLA_TRY(basis, basisFrom(file, "", content.meta.keyRank));
        content.basis.push_back(std::move(basis));
    }
    content.layer = [&parts](LayerIndex layer) -> Result<std::optional<LayerTensors>> {
        MLA_TRY(file, parts.tensors(layer));
        LayerTensors tensors;
        for (const auto& [name, info] : file.tensors()) {
            if (!name.ends_with(".weight") && !name.ends_with(".bias"))
                continue;
            MLA_TRY(tensor, loadTensor(file, name, torch::kFloat32));
            tensors.emplace_back(name, std::move(tensor));
        }
        return std::optional(std::move(tensors));
    };
    return content;
}

/// The draft with the projections of its full rank. Parts that an older version began do not have
/// them.
Result<bool> ConvertRun::atFullRank(const PartsFolder& parts, Decoder& draft) const
{
    for (int layer = 0; layer < layers(); ++layer) {
        MLA_TRY(file, parts.tensors(LayerIndex(layer)));
        auto block = std::get<MlaBlock>(draft.layer(LayerIndex(layer)).attention);
        for (const auto& [name, projection] : projections) {
            torch::Tensor& tensor = block.*projection;
            tensor = torch::Tensor();
            if (file.tensors().contains(kFullRank + name)) {
                MLA_TRY(stored, loadTensor(file, kFullRank + name, torch::kFloat32, m_device));
                tensor = std::move(stored);
            }
        }
        if (!block.wdkv.defined())
            return false;
        block.rank = static_cast<int>(block.wdkv.size(0));
        if (!block.wuk.defined())
            block.wuk = torch::empty({0, block.rank}, block.wdkv.options());
        draft.replaceAttention(LayerIndex(layer), std::move(block));
    }
    return true;
}

Result<RunOutcome> ConvertRun::run(const TokenWindows& windows)
{
    const SteadyClock::time_point begun = SteadyClock::now();
    MLA_TRY(device, resolveDevice(m_request.compute.device));
    m_device = device;
    MLA_TRY(fingerprint, m_original.fingerprint());
    m_fingerprint = std::move(fingerprint);
    m_runId = checkpointId(m_original.directory()) + "/" +
              conversionLabel(m_request.settings, m_original.config()) + "/converted";
    const RunTarget target{m_request.output, m_request.study, m_request.overwrite,
                           m_request.resume};
    MLA_TRY(parts, openRun(target, m_runId, manifest()));
    MLA_TRY(calibration, obtainCalibration(m_job, m_original, m_fingerprint, m_request.calibration,
                                           m_request.compute, m_request.study,
                                           parts.folder() / "calibration.safetensors"));
    m_calibration = std::move(calibration);
    MLA_CHECK(convertLayers(parts));
    MLA_TRY(config, draftConfig(parts));
    MLA_TRY(run, record(parts, config));
    for (const std::string& warning : run.warnings)
        m_job.warn(warning);
    MLA_TRY(draft, content(parts, config, run));
    return finishRun(m_job, target, parts,
                     {m_original, m_fingerprint, m_calibration, std::move(draft), std::move(run),
                      "low_rank", windows, m_device, workerCount(m_request.compute, m_device),
                      [&](Decoder& model) { return atFullRank(parts, model); }},
                     begun);
}

} // namespace

Result<RunOutcome> convertWith(JobContext& job, const ConvertRequest& request,
                               const TokenWindows& windows)
{
    useOneThread();
    MLA_CHECK(validate(request.settings));
    MLA_CHECK(validate(request.calibration));
    MLA_TRY(original, openSource(request.checkpoint));
    MLA_TRY(converter, makeConverter(request.settings));
    MLA_CHECK(converter->check(original.config()));
    ConvertRun run(job, request, std::move(original), std::move(converter));
    return guardedResult("convert", [&] { return run.run(windows); });
}

Result<RunOutcome> convertCheckpoint(JobContext& job, const ConvertRequest& request)
{
    return convertWith(job, request, {});
}

} // namespace mla
