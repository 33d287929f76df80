// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/export/draft_directory.h"
#include "core/pipeline/pipeline.h"

namespace mla
{

Result<InspectReport> inspectModel(const std::filesystem::path& model)
{
    MLA_TRY(checkpoint, Checkpoint::open(model));
    const ModelConfig& config = checkpoint.config();
    InspectReport report;
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
    std::int64_t elements = 0;
    for (int layer = 0; layer < config.numHiddenLayers; ++layer)
        elements += config.cacheElements(layer);
    report.cacheElementsPerTokenPerLayer = static_cast<double>(elements) / config.numHiddenLayers;
    report.originalCacheElements = 2.0 * config.numKeyValueHeads * config.headDim;
    for (const std::string& name : checkpoint.names()) {
        MLA_TRY(info, checkpoint.info(name));
        report.tensors.push_back({name, std::string(dtypeName(info.dtype)), info.shape});
    }
    MLA_TRY(embedding, checkpoint.info("model.embed_tokens.weight"));
    report.dtype = config.dtype.empty() ? std::string(dtypeName(embedding.dtype)) : config.dtype;
    report.cacheBytesPerToken =
        elements * static_cast<std::int64_t>(bytesPerElement(embedding.dtype));
    if (config.isMla()) {
        report.converter = config.mla->converter;
        report.kvLoraRank = config.mla->latentRank.front();
        report.qkRopeHeadDim = config.mla->qkRopeHeadDim;
        if (report.cacheElementsPerTokenPerLayer >= report.originalCacheElements)
            report.warnings.push_back("nothing is saved: the cache is as large as the original's");
    }
    return report;
}

} // namespace mla
