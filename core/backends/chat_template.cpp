// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/backends/chat_template.h"

#include "core/backends/python_environment.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/sha256.h"

namespace mla
{
namespace
{

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::chrono::minutes kStartPatience{10}; // Transformers' first import from a cold disk
constexpr std::chrono::minutes kPromptPatience{2};
constexpr const char* kFiles[] = {"tokenizer.json",
                                  "tokenizer.model",
                                  "tokenizer_config.json",
                                  "special_tokens_map.json",
                                  "added_tokens.json",
                                  "vocab.json",
                                  "merges.txt",
                                  "chat_template.jinja",
                                  "chat_template.json"};

Result<std::vector<int>> idsOf(const json& answer)
{
    const auto ids = answer.find("ids");
    std::vector<int> read;
    if (ids != answer.end() && ids->is_array())
        for (const json& id : *ids) {
            if (!id.is_number_integer())
                break;
            read.push_back(id.get<int>());
        }
    if (read.empty() || read.size() != ids->size())
        return computeFailed("the chat template gave no token ids");
    return read;
}

} // namespace

Result<std::string> chatFingerprint(const fs::path& model)
{
    std::string key;
    for (const char* name : kFiles) {
        std::error_code ignored;
        if (!fs::is_regular_file(model / name, ignored))
            continue;
        MLA_TRY(content, readFile(model / name));
        key += std::string(name) + ":" + sha256Hex(content) + "\n";
    }
    return sha256Hex(key);
}

Result<ChatPrompts> renderChat(JobContext& job, const fs::path& model,
                               const std::vector<std::string>& prompts, const std::string& python)
{
    Result<fs::path> interpreter = findPython(python);
    if (!interpreter)
        return std::move(interpreter).error().within("--chat-template");
    MLA_TRY(harness, PythonHarness::start(*interpreter, "chat_template.py"));
    job.emitEvent(StageStarted{"chat template", static_cast<int>(prompts.size()), "prompts", {}});
    MLA_TRY(opened,
            harness.ask(job, {{"tokenizer", fs::absolute(model).string()}}, kStartPatience));
    if (!opened.value("template", false))
        return usageError("--chat-template: the tokenizer of " + model.string() +
                              " has no chat template",
                          "expected chat_template.jinja, or chat_template in "
                          "tokenizer_config.json; measure without the option");
    ChatPrompts out;
    out.dated = opened.value("dated", false);
    out.software = opened.value("software", std::string());
    for (const std::string& prompt : prompts) {
        MLA_TRY(answer, harness.ask(job, {{"prompt", prompt}}, kPromptPatience));
        MLA_TRY(ids, idsOf(answer));
        out.ids.push_back(std::move(ids));
        job.emitEvent(StageProgress{"chat template", static_cast<double>(out.ids.size()),
                                    static_cast<int>(prompts.size())});
    }
    MLA_CHECK(harness.finish(job));
    return out;
}

} // namespace mla
