// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/checkpoint.h"
#include "core/convert/conversion_limits.h"
#include "core/pipeline/pipeline.h"

namespace mla
{
namespace
{

namespace fs = std::filesystem;

constexpr const char* embeddingName = "model.embed_tokens.weight";

Result<std::vector<TensorSummary>> summaries(const Checkpoint& checkpoint)
{
    std::vector<TensorSummary> tensors;
    for (const std::string& name : checkpoint.names()) {
        MLA_TRY(info, checkpoint.info(name));
        TensorSummary tensor;
        tensor.name = name;
        tensor.dtype = dtypeName(info.dtype);
        tensor.shape = info.shape;
        MLA_TRY(storage, checkpoint.storage(name));
        tensor.storage = std::move(storage);
        tensor.bytes = checkpoint.storedBytes(name);
        tensor.file = checkpoint.fileOf(name);
        tensors.push_back(std::move(tensor));
    }
    return tensors;
}

std::string cacheTypeOf(DType dtype)
{
    switch (dtype) {
    case DType::BF16:
        return "bf16";
    case DType::F16:
        return "fp16";
    case DType::F8E4M3:
    case DType::F8E5M2:
        return "fp8";
    default:
        return "fp32";
    }
}

void describeCache(InspectReport& report, DType dtype)
{
    const ModelConfig& config = report.config;
    std::int64_t elements = 0;
    for (int layer = 0; layer < config.numHiddenLayers; ++layer)
        elements += config.cacheElements(layer);
    report.cacheElementsPerTokenPerLayer = static_cast<double>(elements) / config.numHiddenLayers;
    report.originalCacheElements = static_cast<double>(originalCacheElements(config));
    report.cacheBytesPerToken = elements * static_cast<std::int64_t>(bytesPerElement(dtype));
    report.cacheDtype = cacheTypeOf(dtype);
    if (!config.isMla())
        return;
    report.converter = config.mla->converter;
    report.kvLoraRank = config.mla->latentRank.front();
    report.qkRopeHeadDim = config.mla->qkRopeHeadDim;
}

/// What the converters will say about this model whatever their settings.
void warnOfConversion(InspectReport& report)
{
    const ModelConfig& config = report.config;
    if (config.isMla()) {
        if (report.cacheElementsPerTokenPerLayer >= report.originalCacheElements)
            report.warnings.push_back("nothing is saved: the cache is as large as the original's");
        return;
    }
    if (config.rope.type == RopeType::Dynamic)
        report.warnings.push_back("rope type 'dynamic': no converter takes this model, since its "
                                  "frequencies depend on the length of the text");
    if (config.qkNorm)
        report.warnings.push_back(
            "this model has QK-norm (q_norm, k_norm): transmla refuses it, mha2mla keeps the norm "
            "and caches one more number per KV head and token");
}

void warnOfTokenizer(InspectReport& report, const fs::path& model)
{
    const bool oneFile = !report.tensors.empty() && report.tensors.front().file.ends_with(".gguf");
    if (oneFile)
        return; // it holds the tokenizer too
    std::error_code code;
    for (const char* name : {"tokenizer.json", "tokenizer.model"})
        if (fs::exists(model / name, code))
            return;
    report.warnings.push_back("no tokenizer.json beside the weights: text cannot be encoded, so "
                              "calibration, perplexity and acceptance will not run");
}

} // namespace

std::int64_t TensorSummary::elements() const
{
    std::int64_t count = 1;
    for (const std::int64_t size : shape)
        count *= size;
    return count;
}

Result<InspectReport> inspectModel(const fs::path& model)
{
    MLA_TRY(checkpoint, Checkpoint::open(model));
    const ModelConfig& config = checkpoint.config();
    InspectReport report;
    report.config = config;
    report.properties = configProperties(config);
    report.modelType = config.modelType;
    report.attention = config.isMla() ? "mla" : "gqa";
    report.layers = config.numHiddenLayers;
    report.hiddenSize = config.hiddenSize;
    report.heads = config.numAttentionHeads;
    report.kvHeads = config.numKeyValueHeads;
    report.headDim = config.headDim;
    report.vocabSize = config.vocabSize;
    report.parameters = checkpoint.parameterCount();
    report.warnings = checkpoint.warnings();
    MLA_TRY(tensors, summaries(checkpoint));
    report.tensors = std::move(tensors);
    for (const TensorSummary& tensor : report.tensors)
        report.weightBytes += tensor.bytes;
    MLA_TRY(embedding, checkpoint.info(embeddingName));
    report.dtype = config.dtype.empty() ? std::string(dtypeName(embedding.dtype)) : config.dtype;
    describeCache(report, embedding.dtype);
    warnOfConversion(report);
    warnOfTokenizer(report, model);
    return report;
}

Status measureTensors(JobContext& job, const fs::path& model, const std::vector<std::string>& names,
                      const std::function<void(const TensorStatistics&)>& onResult)
{
    MLA_TRY(checkpoint, Checkpoint::open(model));
    const std::vector<std::string> chosen = names.empty() ? checkpoint.names() : names;
    for (const std::string& name : chosen)
        MLA_CHECK(checkpoint.has(name)
                      ? Status()
                      : Status(badInput("has no tensor '" + name + "'", model.string())));
    const int total = static_cast<int>(chosen.size());
    job.emitEvent(StageStarted{"statistics", total, "tensors", {}});
    for (int done = 0; done < total; ++done) {
        MLA_TRY(statistics, tensorStatistics(checkpoint, chosen[static_cast<std::size_t>(done)],
                                             job.stopToken()));
        onResult(statistics);
        job.emitEvent(StageProgress{"statistics", done + 1.0, total});
    }
    return {};
}

} // namespace mla
