// SPDX-License-Identifier: GPL-3.0-or-later
// A model's configuration as names and values to show, after all defaults are resolved.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/checkpoint/model_config.h"

namespace mla
{

struct ConfigProperty {
    std::string name; ///< config.json's key where it has one ("rope_theta")
    std::variant<bool, std::int64_t, double, std::string> value;
    bool operator==(const ConfigProperty&) const = default;
};
/// In the order in which a person reads a model: family, sizes, rotary embedding, attention's
/// peculiarities, head, dtype, stop ids; for a draft also its latent.
[[nodiscard]] std::vector<ConfigProperty> configProperties(const ModelConfig& config);
/// "true", "576", "0.0001", "llama3"
[[nodiscard]] std::string valueText(const ConfigProperty& property);

/// As in config.json: "default", "linear", "llama3", ...
[[nodiscard]] std::string ropeTypeText(RopeType type);
/// Numbers in ascending order, runs as ranges: "0-3, 7".
[[nodiscard]] std::string rangesText(const std::vector<int>& numbers);

} // namespace mla
