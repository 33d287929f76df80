// SPDX-License-Identifier: GPL-3.0-or-later
// The layouts a draft can be exported in, and what each makes of a given draft: known before
// anything is written. A layout is one entry of the list in export_layouts.cpp. No torch here.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/checkpoint/model_config.h"

namespace mla
{

struct LayoutDescription {
    std::string layout;                    ///< huggingface | vllm-plugin | ...
    std::string loadsIn;                   ///< one sentence: which programs, with what
    std::vector<std::string> keeps, loses; ///< sentences for people
    /// Why this draft cannot be written so; empty when it can.
    std::string refusal;
};

/// Names, in the order in which they are offered.
[[nodiscard]] std::vector<std::string> exportLayoutNames();

/// A Usage error for a name that is no layout. `origin` names the draft in reasons.
Result<LayoutDescription> describeLayout(const ModelConfig& draft, const std::string& layout,
                                         const std::string& origin);

/// Widths of a query head that vLLM's attention for CPUs takes (0.32).
[[nodiscard]] bool vllmCpuTakesHead(int width);

} // namespace mla
