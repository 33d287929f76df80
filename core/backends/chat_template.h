// SPDX-License-Identifier: GPL-3.0-or-later
// Chat templates, rendered and tokenised by Transformers in the Python environment: this program
// interprets none itself. No torch here.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/job.h"
#include "core/base/result.h"

namespace mla
{

/// SHA-256 over the files of a model directory that decide what a chat prompt becomes: tokenizer
/// and template.
Result<std::string> chatFingerprint(const std::filesystem::path& model);

struct ChatPrompts {
    std::vector<std::vector<int>> ids; ///< of each prompt, generation prompt included
    bool dated = false;                ///< the template may write today's date
    std::string software;              ///< "transformers 5.19.0"
};

/// Each prompt as one user turn followed by the generation prompt, by the template of `model`'s
/// tokenizer. Usage errors: no Python environment (`python` as in findPython), or a tokenizer
/// without a template, which is named.
Result<ChatPrompts> renderChat(JobContext& job, const std::filesystem::path& model,
                               const std::vector<std::string>& prompts, const std::string& python);

} // namespace mla
