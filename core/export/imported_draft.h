// SPDX-License-Identifier: GPL-3.0-or-later
// Drafts that another tool wrote, or `export --layout deepseek`, have no mla_draft.json,
// calibration or key basis: what stands in for them. The same calls answer for our own drafts, from
// their files.
#pragma once

#include "core/export/draft_directory.h"

namespace mla
{

/// Whether another tool wrote it, or it was exported for one (MlaConfig::layout is not Own).
bool isImported(const Checkpoint& draft);
/// "TransMLA", "MHA2MLA" or "export --layout deepseek", of an imported draft.
std::string importedFrom(const Checkpoint& draft);

/// mla_draft.json, or what config.json tells of an imported draft; its source is unknown then.
Result<DraftMeta> draftMeta(const Checkpoint& draft);

/// The key basis of every layer: conversion.safetensors, or of an imported MHA2MLA draft the order
/// of its rotary dims. TransMLA does not store its rotation: both members stay undefined.
Result<std::vector<KeyBasis>> draftKeyBasis(const Checkpoint& draft, const DraftMeta& meta);

/// The config of `imported` in our layout, with what its config.json does not tell from `original`.
ModelConfig ownLayout(const ModelConfig& imported, const ModelConfig& original);

} // namespace mla
