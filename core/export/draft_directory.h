// SPDX-License-Identifier: GPL-3.0-or-later
// A draft on disk: the `huggingface` layout (config.json with auto_map, our modeling file, weights,
// tokenizer) plus what this program needs to work on: mla_draft.json (provenance),
// in mla_draft/ calibration.safetensors and conversion.safetensors (KeyBasis per layer). These
// stand apart from the weights because vLLM loads every *.safetensors file of a model's folder.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/indices.h"
#include "core/base/result.h"
#include "core/base/settings.h"
#include "core/calibrate/corpus.h"
#include "core/checkpoint/checkpoint.h"
#include "core/model/key_basis.h"

namespace mla
{

/// mla_draft.json: where a draft comes from.
struct DraftMeta {
    std::string runId;                         ///< id of the run in a study
    std::string variant;                       ///< converted | partial-rope | functional
    std::string sourcePath, sourceFingerprint; ///< the GQA checkpoint
    ConvertSettings convert;
    std::string settingsJson; ///< of the stage that wrote it
    std::string software, created;
    int keyRank = 0; ///< KeyBasis::keyRank (split SVD)
};
Result<DraftMeta> readDraftMeta(const std::filesystem::path& draft);

/// Tensors of one layer that replace the base's attention, by their names within self_attn
/// ("q_proj.weight", ...): fp32.
using LayerTensors = std::vector<std::pair<std::string, torch::Tensor>>;

struct DraftContent {
    const Checkpoint& base; ///< untouched tensors, tokenizer and config.json come from here
    ModelConfig config;     ///< of the draft
    DraftMeta meta;
    CalibrationSet calibration;
    std::filesystem::path pythonFiles; ///< folder of configuration_ and modeling_mla_draft.py
    std::vector<KeyBasis> basis;       ///< per layer
    /// Replacement tensors of a layer, or nothing where the base's stand.
    std::function<Result<std::optional<LayerTensors>>(LayerIndex)> layer;
    std::optional<DType> dtype; ///< casts every floating tensor
    /// Weights beyond it go to several files with an index; a tensor is never divided. 0 = one
    /// file.
    std::int64_t maxShardBytes = 0;
};
/// Fills `directory` (a staging folder). Weights are streamed: one layer in memory at a time. Base
/// tensors keep their dtype; quantised ones (FP8, GGUF) are written as the fp32 they decode to.
Status writeDraft(const DraftContent& content, const std::filesystem::path& directory);
/// config.json's name of a dtype that drafts are written in: F32, F16 or BF16.
[[nodiscard]] const char* configName(DType dtype);
/// Its parts, for other layouts: the tensors that content.config asks for (an output head that it
/// unties is the base's embedding) ...
Status writeWeights(const DraftContent& content, const std::filesystem::path& directory);
/// ... and everything beside the weights that travels with a model.
Status copyCompanions(const std::filesystem::path& from, const std::filesystem::path& to);

/// Where a draft keeps the calibration that it was made with (corpus.h).
std::filesystem::path calibrationFile(const std::filesystem::path& draft);

/// KeyBasis per layer from `draft`/mla_draft/conversion.safetensors.
Result<std::vector<KeyBasis>> loadKeyBasis(const std::filesystem::path& draft, int layers,
                                           int keyRank);
LayerTensors basisTensors(const KeyBasis& basis);
/// The inverse of basisTensors for names found in `file` under `prefix`; a draft of another tool
/// may have none.
Result<KeyBasis> basisFrom(const SafetensorsFile& file, const std::string& prefix, int keyRank);

} // namespace mla
