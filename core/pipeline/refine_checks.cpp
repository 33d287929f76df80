// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pipeline/refine_checks.h"

namespace mla
{

Status checkRefinement(const Checkpoint& original, const std::string& fingerprint,
                       const Checkpoint& draft, const DraftMeta& meta,
                       const RefineSettings& settings)
{
    const ModelConfig& expected = draft.config();
    const ModelConfig& source = original.config();
    const auto differs = [&](const char* key, int ofDraft, int ofOriginal) -> Status {
        if (ofDraft == ofOriginal)
            return {};
        return badInput("is not the original of this draft: " + std::string(key) + " is " +
                            std::to_string(ofOriginal) + " there and " + std::to_string(ofDraft) +
                            " in the draft",
                        original.directory().string());
    };
    MLA_CHECK(differs("num_hidden_layers", expected.numHiddenLayers, source.numHiddenLayers));
    MLA_CHECK(differs("hidden_size", expected.hiddenSize, source.hiddenSize));
    MLA_CHECK(differs("num_attention_heads", expected.numAttentionHeads, source.numAttentionHeads));
    if (expected.mla->layout != DraftLayout::TransMla) // which does not record them
        MLA_CHECK(
            differs("num_key_value_heads", expected.numKeyValueHeads, source.numKeyValueHeads));
    MLA_CHECK(differs("head_dim", expected.headDim, source.headDim));
    if (settings.layers && settings.layers->last >= source.numHiddenLayers)
        return usageError("--layers " + std::to_string(settings.layers->first) + "-" +
                          std::to_string(settings.layers->last) + ": the model has layers 0-" +
                          std::to_string(source.numHiddenLayers - 1));
    if (settings.objective == "partial-rope" && expected.mla->layout == DraftLayout::TransMla)
        return badInput("--objective partial-rope needs the rotation of the rotary keys, which "
                        "TransMLA does not store with a draft",
                        draft.directory().string(), "use --objective functional");
    if (!meta.sourceFingerprint.empty() && meta.sourceFingerprint != fingerprint)
        return badInput("is not the checkpoint this draft was converted from (" + meta.sourcePath +
                            "): its fingerprint differs",
                        original.directory().string());
    return {};
}

} // namespace mla
