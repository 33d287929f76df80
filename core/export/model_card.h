// SPDX-License-Identifier: GPL-3.0-or-later
// README.md of an exported directory: a model card as Hugging Face's Hub reads it. No torch here.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/checkpoint/model_config.h"
#include "core/store/records.h"

namespace mla
{

struct ModelCard {
    const ModelConfig& config; ///< of the draft
    const ExportRecord& exported;
    std::string source;                       ///< folder of the source checkpoint
    std::string fingerprint;                  ///< of the source
    std::string variant, converter, settings; ///< settings: JSON of the stage
    std::optional<std::string> licence;       ///< of the source, as its own card names it
    const StudyData* study = nullptr;         ///< fidelity and acceptance come from it
};
[[nodiscard]] std::string modelCardText(const ModelCard& card);

/// The `license:` of the YAML front matter of `folder`/README.md, if there is one.
[[nodiscard]] std::optional<std::string> licenceOf(const std::filesystem::path& folder);

} // namespace mla
