// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/export/export_layouts.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "core/convert/conversion_limits.h"
#include "core/export/deepseek_plan.h"

namespace mla
{
namespace
{

std::string cacheSentence(const ModelConfig& draft, const char* where)
{
    std::string text = std::to_string(meanCacheElements(draft));
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.')
        text.pop_back();
    return "the latent cache" + std::string(where) + ": " + text +
           " elements a token and layer, of the original's " +
           std::to_string(originalCacheElements(draft));
}

LayoutDescription ownWeights(const ModelConfig& draft)
{
    LayoutDescription described;
    if (draft.mla->layout != DraftLayout::Own) {
        described.refusal = "another tool wrote this draft, or it is an export already; refine it "
                            "first: the result is a draft of this program";
        return described;
    }
    described.keeps = {"every weight, bias, norm and frequency set: the same model",
                       "tokenizer, chat template and generation settings"};
    described.loses = {"vLLM caches the expanded keys and values: it measures acceptance, not "
                       "the savings of the cache"};
    return described;
}

LayoutDescription describeHuggingface(const ModelConfig& draft, const std::string& /*origin*/)
{
    LayoutDescription described = ownWeights(draft);
    described.loadsIn = "Transformers, and vLLM by its Transformers backend, with "
                        "trust_remote_code; nothing to install";
    if (!described.refusal.empty())
        return described;
    described.keeps.push_back(cacheSentence(draft, " in Transformers"));
    const int width = draft.mla->qkNopeHeadDim + draft.mla->qkRopeHeadDim;
    if (!vllmCpuTakesHead(width))
        described.loses.push_back("vLLM on a CPU takes no heads of width " + std::to_string(width) +
                                  ": there it needs the layout vllm-plugin, which pads them");
    return described;
}

LayoutDescription describePlugin(const ModelConfig& draft, const std::string& /*origin*/)
{
    LayoutDescription described = ownWeights(draft);
    described.loadsIn = "vLLM without trust_remote_code once the package vllm_mla_draft of the "
                        "directory is installed; Transformers as the layout huggingface";
    if (!described.refusal.empty())
        return described;
    described.keeps.push_back(cacheSentence(draft, " in Transformers"));
    described.loses.push_back(
        "tensor parallelism splits the MLP only: every device computes all heads");
    return described;
}

LayoutDescription describeDeepseek(const ModelConfig& draft, const std::string& origin)
{
    LayoutDescription described;
    described.loadsIn = "unmodified Transformers and vLLM, as deepseek_v2: no code of ours";
    auto plan = planDeepseek(draft, origin);
    if (!plan) {
        described.refusal = plan.error().text();
        return described;
    }
    described.keeps = std::move(plan->keeps);
    described.loses = std::move(plan->loses);
    return described;
}

struct Layout {
    const char* name;
    LayoutDescription (*describe)(const ModelConfig&, const std::string& origin);
};
constexpr std::array layouts = {Layout{"huggingface", describeHuggingface},
                                Layout{"vllm-plugin", describePlugin},
                                Layout{"deepseek", describeDeepseek}};

} // namespace

std::vector<std::string> exportLayoutNames()
{
    std::vector<std::string> names;
    for (const Layout& layout : layouts)
        names.emplace_back(layout.name);
    return names;
}

Result<LayoutDescription> describeLayout(const ModelConfig& draft, const std::string& layout,
                                         const std::string& origin)
{
    const auto found = std::ranges::find(layouts, layout, &Layout::name);
    if (found == layouts.end()) {
        std::string known;
        for (const Layout& each : layouts)
            known += (known.empty() ? "" : ", ") + std::string(each.name);
        return usageError("--layout: '" + layout + "' is none of " + known);
    }
    if (!draft.isMla())
        return badInput("is no MLA draft", origin, "expected a directory that `convert` wrote");
    LayoutDescription described = found->describe(draft, origin);
    described.layout = layout;
    return described;
}

bool vllmCpuTakesHead(int width)
{
    constexpr std::array widths = {32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512};
    return std::ranges::find(widths, width) != widths.end();
}

} // namespace mla
