// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pipeline/accept_prompts.h"

#include <algorithm>
#include <set>

#include "core/pipeline/chat_prompts.h"

namespace mla
{

namespace
{

using Texts = std::vector<std::string>;

Result<Texts> readTask(const std::filesystem::path& path, std::optional<int> limit)
{
    MLA_TRY(lines, readJsonLines(path));
    Texts texts;
    for (const std::string& line : lines) {
        if (limit && static_cast<int>(texts.size()) >= *limit)
            break;
        MLA_TRY(text, recordText(line, path.string()));
        texts.push_back(std::move(text));
    }
    return texts;
}

std::vector<int> encodePrompt(const Tokenizer& tokenizer, const std::string& text,
                              std::optional<int> longest)
{
    std::vector<int> ids = tokenizer.encode(text);
    if (longest && ids.size() > static_cast<std::size_t>(*longest))
        ids.resize(static_cast<std::size_t>(*longest));
    return ids;
}

Status checkLengths(const TaskPrompts& task, const std::filesystem::path& path, int newTokens,
                    int context)
{
    for (std::size_t i = 0; i < task.prompts.size(); ++i) {
        const std::string prompt = "prompt " + std::to_string(i + 1);
        const std::size_t size = task.prompts[i].size();
        if (size == 0)
            return badInput(prompt + " encodes to no token", path.string());
        if (static_cast<int>(size) + newTokens > context)
            return badInput(prompt + " has " + std::to_string(size) + " tokens: with " +
                                std::to_string(newTokens) + " new ones it exceeds the context of " +
                                std::to_string(context),
                            path.string(), "cut prompts with --max-prompt-tokens");
    }
    return {};
}

} // namespace

Result<LoadedTasks> loadTasks(JobContext& job, const AcceptRequest& request,
                              const Tokenizer& tokenizer, const ModelConfig& target)
{
    const AcceptSettings& settings = request.settings;
    LoadedTasks loaded;
    Texts chats; // of all tasks, so that they are rendered in one go
    for (const std::filesystem::path& path : settings.tasks) {
        MLA_TRY(texts, readTask(path, settings.limit));
        TaskPrompts task{path.stem().string(), {}};
        for (const std::string& text : texts) {
            if (!settings.chatTemplate) {
                task.prompts.push_back(encodePrompt(tokenizer, text, settings.maxPromptTokens));
                continue;
            }
            // The text is cut, not what the template makes of it: that must keep its end.
            MLA_TRY(cut, settings.maxPromptTokens
                             ? cutText(tokenizer, text, *settings.maxPromptTokens)
                             : Result<std::string>(text));
            chats.push_back(std::move(cut));
            task.prompts.emplace_back();
        }
        loaded.tasks.push_back(std::move(task));
    }
    if (settings.chatTemplate) {
        MLA_TRY(chat,
                chatPromptIds(job, request.target, chats, request.study, request.compute.python));
        std::size_t next = 0;
        for (TaskPrompts& task : loaded.tasks)
            for (std::vector<int>& prompt : task.prompts)
                prompt = std::move(chat.ids[next++]);
        loaded.warnings = std::move(chat.warnings);
    }
    for (std::size_t i = 0; i < loaded.tasks.size(); ++i)
        MLA_CHECK(checkLengths(loaded.tasks[i], settings.tasks[i], settings.maxNewTokens,
                               target.contextLength()));
    return loaded;
}

namespace
{

constexpr std::size_t kRun = 16;     // tokens in a row that chance does not give
constexpr std::size_t kShortest = 8; // prompts below it say nothing

std::set<std::vector<int>> runsOf(const std::vector<int>& ids, std::size_t size)
{
    std::set<std::vector<int>> runs;
    for (std::size_t i = 0; i + size <= ids.size(); ++i)
        runs.emplace(ids.begin() + static_cast<std::ptrdiff_t>(i),
                     ids.begin() + static_cast<std::ptrdiff_t>(i + size));
    return runs;
}

} // namespace

std::vector<std::string> overlapWarnings(const std::vector<TaskPrompts>& tasks,
                                         const CalibrationSet& calibration)
{
    std::vector<std::vector<int>> rows;
    for (int row = 0; row < calibration.sequences(); ++row) {
        const auto valid = calibration.mask[row].sum().item<std::int64_t>();
        const torch::Tensor ids = calibration.ids[row].narrow(0, 0, valid).contiguous();
        rows.emplace_back(ids.data_ptr<std::int64_t>(), ids.data_ptr<std::int64_t>() + valid);
    }
    std::vector<std::string> warnings;
    for (const TaskPrompts& task : tasks) {
        std::size_t overlapping = 0;
        for (const std::vector<int>& prompt : task.prompts) {
            const std::size_t size = std::min(kRun, prompt.size());
            if (size < kShortest)
                continue;
            const std::set<std::vector<int>> runs = runsOf(prompt, size);
            overlapping += std::any_of(rows.begin(), rows.end(), [&](const auto& row) {
                for (std::size_t i = 0; i + size <= row.size(); ++i)
                    if (runs.contains({row.begin() + static_cast<std::ptrdiff_t>(i),
                                       row.begin() + static_cast<std::ptrdiff_t>(i + size)}))
                        return true;
                return false;
            });
        }
        if (overlapping > 0)
            warnings.push_back("calibration overlaps " + std::to_string(overlapping) + " of " +
                               std::to_string(task.prompts.size()) + " prompts of task " +
                               task.name + ": its acceptance is flattered");
    }
    return warnings;
}

} // namespace mla
