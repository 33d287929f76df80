// SPDX-License-Identifier: GPL-3.0-or-later
// Prompts of a chat, rendered once and kept in the study.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/job.h"
#include "core/base/result.h"
#include "core/checkpoint/tokenizer.h"

namespace mla
{

struct ChatPromptIds {
    std::vector<std::vector<int>> ids; ///< of each text
    std::vector<std::string> warnings;
};

/// Token ids of each text as one user turn of the chat template of `model`. Texts that `study`
/// holds for the same tokenizer and template are taken from there; the others are rendered by
/// Transformers (renderChat) and stored.
Result<ChatPromptIds> chatPromptIds(JobContext& job, const std::filesystem::path& model,
                                    const std::vector<std::string>& texts,
                                    const std::optional<std::filesystem::path>& study,
                                    const std::string& python);

/// The longest beginning of `text` that has at most `tokens` tokens and ends with a whole
/// character.
Result<std::string> cutText(const Tokenizer& tokenizer, const std::string& text, int tokens);

} // namespace mla
