// SPDX-License-Identifier: GPL-3.0-or-later
// Plans as files: what `mla-draft run` takes, the workbench saves, and an unfinished study keeps.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/pipeline/settings.h"

namespace mla
{

/// BadInput that names `origin`, and the key if one is wrong.
Result<StudyPlan> parseStudyPlan(std::string_view text, const std::string& origin);
Result<StudyPlan> readStudyPlan(const std::filesystem::path& file);

} // namespace mla
