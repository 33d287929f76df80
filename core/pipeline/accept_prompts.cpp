// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pipeline/accept_prompts.h"

#include <algorithm>
#include <set>

namespace mla
{

Result<std::vector<TaskPrompts>> loadTasks(const AcceptSettings& settings,
                                           const Tokenizer& tokenizer, const ModelConfig& target)
{
    std::vector<TaskPrompts> tasks;
    for (const std::filesystem::path& path : settings.tasks) {
        MLA_TRY(lines, readJsonLines(path));
        TaskPrompts task{path.stem().string(), {}};
        for (const std::string& line : lines) {
            if (settings.limit && static_cast<int>(task.prompts.size()) >= *settings.limit)
                break;
            MLA_TRY(text, recordText(line, path.string()));
            std::vector<int> ids = tokenizer.encode(text);
            if (settings.maxPromptTokens &&
                ids.size() > static_cast<std::size_t>(*settings.maxPromptTokens))
                ids.resize(static_cast<std::size_t>(*settings.maxPromptTokens));
            const std::size_t number = task.prompts.size() + 1;
            if (ids.empty())
                return badInput("prompt " + std::to_string(number) + " encodes to no token",
                                path.string());
            if (static_cast<int>(ids.size()) + settings.maxNewTokens > target.contextLength())
                return badInput("prompt " + std::to_string(number) + " has " +
                                    std::to_string(ids.size()) + " tokens: with " +
                                    std::to_string(settings.maxNewTokens) +
                                    " new ones it exceeds the context of " +
                                    std::to_string(target.contextLength()),
                                path.string(), "cut prompts with --max-prompt-tokens");
            task.prompts.push_back(std::move(ids));
        }
        tasks.push_back(std::move(task));
    }
    return tasks;
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
