// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/export/imported_draft.h"

#include <algorithm>

namespace mla
{
namespace
{

namespace fs = std::filesystem;

DraftMeta importedMeta(const Checkpoint& draft)
{
    const MlaConfig& mla = *draft.config().mla;
    DraftMeta meta;
    meta.runId =
        fs::absolute(draft.directory() / "").lexically_normal().parent_path().filename().string() +
        "/imported";
    meta.variant = "converted";
    meta.convert.converter = mla.converter;
    meta.convert.kvLoraRank = mla.latentRank.front();
    meta.convert.qkRopeHeadDim = mla.qkRopeHeadDim;
    meta.convert.ropeSelect.clear(); // not one of ours by name
    meta.convert.svd = mla.splitLatent ? "split" : "joint";
    meta.keyRank = mla.splitLatent ? mla.latentRank.front() / 2 : 0;
    meta.software = importedFrom(draft);
    return meta;
}

/// Source dims of a head at each place of [rotary; nope], both half-split and ascending.
torch::Tensor rotaryFirst(const std::vector<int>& kept, int headDim)
{
    std::vector<std::int64_t> rotary, nope;
    for (int dim = 0; dim < headDim; ++dim)
        (std::ranges::find(kept, dim % (headDim / 2)) != kept.end() ? rotary : nope).push_back(dim);
    rotary.insert(rotary.end(), nope.begin(), nope.end());
    return torch::tensor(rotary, torch::kInt64);
}

} // namespace

bool isImported(const Checkpoint& draft)
{
    return draft.config().isMla() && draft.config().mla->layout != DraftLayout::Own;
}

std::string importedFrom(const Checkpoint& draft)
{
    if (draft.config().mla->layout == DraftLayout::Mha2Mla)
        return "MHA2MLA";
    return draft.config().modelType == "deepseek_v2" ? "export --layout deepseek" : "TransMLA";
}

Result<DraftMeta> draftMeta(const Checkpoint& draft)
{
    if (isImported(draft))
        return importedMeta(draft);
    return readDraftMeta(draft.directory());
}

Result<std::vector<KeyBasis>> draftKeyBasis(const Checkpoint& draft, const DraftMeta& meta)
{
    const ModelConfig& config = draft.config();
    if (!isImported(draft))
        return loadKeyBasis(draft.directory(), config.numHiddenLayers, meta.keyRank);
    std::vector<KeyBasis> all;
    for (const std::vector<std::vector<int>>& heads : config.mla->ropePairs) {
        KeyBasis basis;
        basis.keyRank = meta.keyRank;
        if (config.mla->layout == DraftLayout::Mha2Mla) {
            std::vector<torch::Tensor> rows;
            for (const std::vector<int>& kept : heads)
                rows.push_back(rotaryFirst(kept, config.headDim));
            basis.permutation = torch::stack(rows);
        }
        all.push_back(std::move(basis));
    }
    return all;
}

ModelConfig ownLayout(const ModelConfig& imported, const ModelConfig& original)
{
    ModelConfig config = imported;
    if (imported.mla->layout == DraftLayout::Own)
        return config;
    config.modelType = "mla_draft";
    config.numKeyValueHeads = original.numKeyValueHeads;
    config.mla->layout = DraftLayout::Own;
    config.mla->queryRank = 0;
    config.mla->splitLatent = false;
    return config;
}

} // namespace mla
