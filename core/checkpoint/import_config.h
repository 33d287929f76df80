// SPDX-License-Identifier: GPL-3.0-or-later
// config.json of drafts that other tools converted:
//   TransMLA (github.com/MuLabPKU/TransMLA): model_type "deepseek_v3" with the source's own keys,
//     qk_latent_layernorm, and head_dim = qk_rope_head_dim; rotary rows as interleaved pairs
//   `export --layout deepseek`: the same names and rows as model_type "deepseek_v2", always with a
//     latent norm, whose eps is that of Transformers' classes
//   MHA2MLA (github.com/JT-Ushio/MHA2MLA): the source's config with an object "mha2mla", the
//     arguments of its training
// What their models compute and this program's block cannot is refused by name.
#pragma once

#include "core/base/json.h"
#include "core/base/result.h"
#include "core/checkpoint/model_config.h"

namespace mla
{

/// Whose draft this is, or Own for everything else.
DraftLayout importedLayout(const nlohmann::json& config);

/// The draft that `config` describes in `layout`, which is not Own. `origin` is the path of
/// config.json: MHA2MLA's 2-norm selection is a file beside it. The source's KV heads are not
/// recorded by TransMLA: numKeyValueHeads is then numAttentionHeads.
Result<ModelConfig> parseImported(DraftLayout layout, const nlohmann::json& config,
                                  const std::string& origin);

} // namespace mla
