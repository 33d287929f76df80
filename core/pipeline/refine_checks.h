// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/base/settings.h"
#include "core/checkpoint/checkpoint.h"
#include "core/export/draft_directory.h"

namespace mla
{

/// Whether `original`, with that fingerprint, is what `draft` was converted from, and the settings
/// can be followed for the two.
Status checkRefinement(const Checkpoint& original, const std::string& fingerprint,
                       const Checkpoint& draft, const DraftMeta& meta,
                       const RefineSettings& settings);

} // namespace mla
