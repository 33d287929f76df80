// SPDX-License-Identifier: GPL-3.0-or-later
// A grid as its JSON file states it: pairs x converters x variants x backends x tasks, and the
// settings all of them share. resources/grids/README.md documents the file. No torch here.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/base/result.h"
#include "core/base/settings.h"
#include "core/checkpoint/model_config.h"

namespace mla
{

struct GridPair {
    std::string name;                    ///< "llama-3.2-1b"; unique
    std::string family;                  ///< groups pairs in the crossover: "llama"
    std::filesystem::path target, draft; ///< checkpoints: absolute, or within the models folder
};

/// One way to convert every draft of the grid. Sizes may be shares, since models differ.
struct GridConverter {
    ConvertSettings settings;           ///< a size that is a share is 0 here
    std::string cacheElements;          ///< "28%" or "108", instead of kv_lora_rank; else empty
    std::optional<double> ropePercent;  ///< d_r as a share of head_dim, percent
    std::optional<double> learningRate; ///< of its refinements
    std::string name;                   ///< "transmla"; "transmla-2" for the second of a kind
};
/// The settings for one model: shares become sizes. A Usage error names the key.
Result<ConvertSettings> converterFor(const GridConverter& converter, const ModelConfig& model);

struct GridFile {
    std::string name;  ///< file stem unless the file says otherwise
    std::string about; ///< free text
    std::vector<GridPair> pairs;
    std::vector<GridConverter> converters;
    std::vector<std::string> variants; ///< original | converted | partial-rope | functional
    std::vector<std::string> backends; ///< native | hf | vllm
    std::vector<std::string> tasks;    ///< names, looked up in the tasks folder
    CalibrationSettings calibration;
    RefineSettings refine; ///< objective and learning rate come from variants and converters
    AcceptSettings accept; ///< without tasks and backend
    std::filesystem::path models, tasksFolder; ///< defaults the file gives; may be empty
};

/// Refuses unknown keys and values, naming the file and the key's path in it. Relative folders and
/// `self:FILE` are resolved against the grid's own folder.
Result<GridFile> readGridFile(const std::filesystem::path& path);
/// `origin`: the file, for errors and as the folder that paths start from.
Result<GridFile> parseGrid(const nlohmann::json& json, const std::filesystem::path& origin);

/// Every setting that decides a result, for comparison with an earlier run of the same grid. Lists
/// that may grow (pairs, variants, backends, tasks) are not in it.
nlohmann::json gridSettings(const GridFile& grid);

/// The settings of one measurement: those that belong to another backend are left out.
AcceptSettings acceptSettings(const GridFile& grid, const std::string& backend);

} // namespace mla
