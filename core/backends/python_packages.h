// SPDX-License-Identifier: GPL-3.0-or-later
// Which Python packages an interpreter has. No torch here.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/job.h"
#include "core/base/result.h"

namespace mla
{

/// Those of `packages` that `python` cannot import, found without importing them.
Result<std::vector<std::string>> missingPackages(JobContext& job,
                                                 const std::filesystem::path& python,
                                                 const std::vector<std::string>& packages);

/// Whether a backend of acceptance, "native", "hf" or "vllm", could start here, in the interpreter
/// that findPython(`python`) gives. A Usage error says what is missing and how to get it.
Status checkBackend(JobContext& job, const std::string& backend, const std::string& python);

} // namespace mla
