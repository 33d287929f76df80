// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/export/model_card.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <sstream>

#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "core/convert/conversion_limits.h"
#include "core/evaluate/recorded_steps.h"

namespace mla
{
namespace
{

std::string fixed(double value, int decimals)
{
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", decimals, value);
    return text;
}

/// Settings for others to read: of files only the names.
void nameFilesOnly(nlohmann::json& value)
{
    if (value.is_string()) {
        const std::string text = value.get<std::string>();
        const std::size_t begin = text.starts_with("self:") ? 5 : 0;
        const std::size_t slash = text.rfind('/');
        if (slash != std::string::npos && slash >= begin)
            value = text.substr(0, begin) + text.substr(slash + 1);
    }
    if (value.is_structured())
        for (nlohmann::json& member : value)
            nameFilesOnly(member);
}

std::string settingsText(const std::string& stored)
{
    nlohmann::json settings = nlohmann::json::parse(stored, nullptr, false);
    if (settings.is_discarded())
        return {};
    nameFilesOnly(settings);
    return "\nSettings of the last stage:\n\n```json\n" + settings.dump() + "\n```\n";
}

std::string frontMatter(const ModelCard& card)
{
    std::string text = "---\nlibrary_name: transformers\npipeline_tag: text-generation\n";
    if (card.licence)
        text += "license: " + *card.licence + "\n";
    return text + "tags:\n- mla\n- speculative-decoding\n- draft-model\n---\n";
}

std::string about(const ModelCard& card)
{
    const ModelConfig& config = card.config;
    const double mla = meanCacheElements(config);
    const auto original = static_cast<double>(originalCacheElements(config));
    const std::string name = std::filesystem::path(card.source).filename().string();
    std::string text = "\n# " + name +
                       " as an MLA draft\n\nA draft model for speculative decoding: " + name +
                       " with its attention converted from GQA to multi-head latent "
                       "attention, so that it caches less.\n\n| | |\n| --- | --- |\n";
    const auto row = [&](const std::string& key, const std::string& value) {
        text += "| " + key + " | " + value + " |\n";
    };
    row("source", "`" + name + "`, fingerprint `" + card.fingerprint.substr(0, 16) + "`");
    row("converter", card.converter);
    row("variant", card.variant);
    row("KV cache, elements a token and layer", fixed(mla, 0) + " of the original's " +
                                                    fixed(original, 0) + " (" +
                                                    fixed(100 * mla / original, 0) + " %)");
    row("rotary key heads", std::to_string(config.mla->ropeKeyHeads) + " of " +
                                std::to_string(config.mla->qkRopeHeadDim) + " dims");
    row("weights", card.exported.dtype);
    row("layout", card.exported.layout);
    row("made with", card.exported.software);
    return text + settingsText(card.settings);
}

std::string fidelity(const ModelCard& card)
{
    const RunRecord* run = card.study ? card.study->findRun(card.exported.run) : nullptr;
    if (!run)
        return {};
    std::string text = "\n## Fidelity\n\n";
    if (const auto error = run->meanRelativeError())
        text +=
            "Mean relative error of the attention outputs on held-out text: " + fixed(*error, 3) +
            ".\n\n";
    if (run->stages.empty())
        return text;
    text += "| model | perplexity | KL from the original, nats a token |\n| --- | --- | --- |\n";
    for (const auto& [stage, figures] : run->stages)
        text += "| " + stage + " | " + fixed(figures.perplexity, 2) + " | " + fixed(figures.kl, 4) +
                " |\n";
    return text;
}

std::string acceptance(const ModelCard& card)
{
    std::string rows;
    if (card.study)
        for (const AcceptanceRecord& row : card.study->acceptance) {
            if (row.run != card.exported.run)
                continue;
            const AcceptanceMetrics metrics = acceptanceMetrics(stepsOf(row), row.k);
            rows += "| " + row.target + " | " + row.task + " | " + row.backend + ", " + row.method +
                    " | " + std::to_string(row.k) + " | " + fixed(row.temperature, 1) + " | " +
                    fixed(100 * metrics.acceptanceRate, 1) + " % | " +
                    fixed(metrics.meanAcceptanceLength, 2) + " |\n";
        }
    if (rows.empty())
        return {};
    return "\n## Acceptance\n\n| target | task | measured with | k | temperature | acceptance rate "
           "| "
           "mean length |\n| --- | --- | --- | --- | --- | --- | --- |\n" +
           rows;
}

std::string loading(const ModelCard& card)
{
    const bool plugin = card.exported.layout == "vllm-plugin";
    const bool stock = card.exported.layout == "deepseek";
    const std::string code = stock ? "" : ", trust_remote_code=True";
    std::string text = "\n## How to load it\n\nIn Transformers, as the assistant of its target:\n\n"
                       "```python\nfrom transformers import AutoModelForCausalLM\n\n"
                       "draft = AutoModelForCausalLM.from_pretrained(\"DIR\"" +
                       code +
                       ")\noutput = target.generate(**inputs, assistant_model=draft)\n```\n\n";
    if (plugin)
        text += "In vLLM, after `pip install --no-deps --no-build-isolation DIR/vllm_mla_draft` in "
                "its environment:\n\n";
    else
        text += stock ? "In vLLM (on CPUs with `VLLM_MLA_DISABLE=1` in the environment):\n\n"
                      : "In vLLM, without a plugin:\n\n";
    return text +
           "```python\nfrom vllm import LLM\n\nllm = LLM(model=\"TARGET\", "
           "speculative_config={\"method\": \"draft_model\", \"model\": \"DIR\", "
           "\"num_speculative_tokens\": 4}" +
           (plugin || stock ? "" : code) + ")\n```\n";
}

std::string list(const std::string& title, const std::vector<std::string>& entries)
{
    std::string text;
    for (const std::string& entry : entries)
        text += "- " + entry + "\n";
    return text.empty() ? text : "\n" + title + "\n\n" + text;
}

std::string checks(const ModelCard& card)
{
    if (card.exported.checks.empty())
        return {};
    std::string text = "\n## Verification\n\nLargest difference of a logit, over the spread of the "
                       "logits, in fp32; greedy texts up to a first difference.\n\n"
                       "| in | compared with | difference | allowed | equal tokens | |\n"
                       "| --- | --- | --- | --- | --- | --- |\n";
    for (const ExportCheckRecord& check : card.exported.checks) {
        const bool tried = check.tried();
        text +=
            "| " + (tried ? check.software : check.stack) + " | " + check.reference + " | " +
            (tried ? fixed(check.logitDifference, 6) : "-") + " | " + fixed(check.bound, 3) +
            " | " +
            (tried ? std::to_string(check.equalTokens) + " of " + std::to_string(check.greedyTokens)
                   : "-") +
            " | " + check.remark + " |\n";
    }
    return text;
}

std::string licenceNote(const ModelCard& card)
{
    const std::string name = std::filesystem::path(card.source).filename().string();
    return "\n## Licence\n\nThe weights derive from " + name +
           (card.licence
                ? ", whose licence (`" + *card.licence + "`) holds for them.\n"
                : "; its licence holds for them. The source's own card was not at hand.\n") +
           (card.exported.layout == "deepseek"
                ? ""
                : "The Python files are part of MLA Draft Workbench, GPL-3.0-or-later.\n");
}

} // namespace

std::string modelCardText(const ModelCard& card)
{
    return frontMatter(card) + about(card) + fidelity(card) + acceptance(card) +
           "\n## The layout\n" + list("Keeps:", card.exported.keeps) +
           list("Loses:", card.exported.loses) + checks(card) + loading(card) + licenceNote(card);
}

std::optional<std::string> licenceOf(const std::filesystem::path& folder)
{
    const Result<std::string> card = readFile(folder / "README.md");
    if (!card || !card->starts_with("---"))
        return std::nullopt;
    std::istringstream lines(*card);
    std::string line;
    std::getline(lines, line);
    constexpr std::string_view key = "license:";
    while (std::getline(lines, line) && !line.starts_with("---")) {
        if (!line.starts_with(key))
            continue;
        std::string name = line.substr(key.size());
        std::erase_if(name,
                      [](unsigned char c) { return std::isspace(c) || c == '"' || c == '\''; });
        const auto plain = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '.'; };
        if (!name.empty() && std::ranges::all_of(name, plain))
            return name;
    }
    return std::nullopt;
}

} // namespace mla
