// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>

#include "app/cli/command.h"
#include "app/cli/json_report.h"
#include "app/cli/options.h"
#include "app/cli/text.h"
#include "core/pipeline/pipeline.h"
#include "core/pipeline/task_files.h"

using nlohmann::json;

namespace mla::cli
{
namespace
{

json rowJson(const AcceptRow& row)
{
    const AcceptanceMetrics& m = row.metrics;
    json divergences = json::array();
    for (const AcceptRow::Divergence& at : row.divergences)
        divergences.push_back(
            {{"prompt", at.prompt}, {"position", at.position}, {"margin", at.margin}});
    json histogram = json::array(), lengths = json::array(), shares;
    for (const double steps : m.histogram)
        histogram.push_back(wholeIfPossible(steps));
    for (const DraftLength& length : row.byLength)
        lengths.push_back({{"k", length.k},
                           {"acceptance_rate", length.acceptanceRate},
                           {"mean_acceptance_length", length.meanAcceptanceLength},
                           {"predicted_speedup", orNull(length.speedup)}});
    if (row.draftShare)
        shares = {{"draft", *row.draftShare},
                  {"verify", *row.verifyShare},
                  {"overhead", 1 - *row.draftShare - *row.verifyShare}};
    return {{"task", row.task},
            {"steps", wholeIfPossible(m.steps)},
            {"draft_tokens", wholeIfPossible(m.draftTokens)},
            {"accepted_tokens", wholeIfPossible(m.acceptedTokens)},
            {"acceptance_rate", m.acceptanceRate},
            {"mean_acceptance_length", m.meanAcceptanceLength},
            {"per_position", m.perPosition},
            {"tokens_per_second", orNull(row.tokensPerSecond)},
            {"identical_to_greedy", orNull(row.identicalToGreedy)},
            {"tokens", row.tokens},
            {"conditional_per_position", m.conditional},
            {"histogram", std::move(histogram)},
            {"expected", row.expected},
            {"per_prompt_mean_rate", m.perPromptMeanRate},
            {"per_prompt_mean_length", m.perPromptMeanLength},
            {"acceptance_rate_interval", {m.rateLow, m.rateHigh}},
            {"near_ties", row.nearTies},
            {"divergences", std::move(divergences)},
            {"tokens_per_second_runs", row.speeds},
            {"baseline_tokens_per_second_runs", row.baselineSpeeds},
            {"speedup", orNull(row.speedup)},
            {"time_share", std::move(shares)},
            {"by_k", std::move(lengths)},
            {"best_k", orNull(bestDraftLength(row.byLength))}};
}

/// Steps and tokens: whole, or with a decimal where they are expectations.
std::string countText(const AcceptRow& row, double value)
{
    return row.expected ? number(value, 1) : count(std::llround(value));
}

/// The sweep over draft lengths and the speeds beside plain decoding.
std::string describeSpeed(const AcceptRow& row)
{
    constexpr double percent = 100;
    std::string text;
    if (row.speedup)
        text += "speed " + number(*row.speedup, 2) + " times plain decoding" +
                (row.draftShare ? "; " + number(percent * *row.draftShare, 0) +
                                      " % of the time in the draft, " +
                                      number(percent * *row.verifyShare, 0) + " % in verification"
                                : "") +
                "\n";
    if (row.byLength.empty())
        return text;
    TextTable table({{"k"}, {"Rate (%)"}, {"Mean length"}, {"Predicted speed-up"}});
    for (const DraftLength& length : row.byLength)
        table.addRow({std::to_string(length.k), number(percent * length.acceptanceRate, 1),
                      number(length.meanAcceptanceLength, 2), number(length.speedup, 2)});
    text += table.text();
    const std::optional<int> best = bestDraftLength(row.byLength);
    if (!best)
        return text;
    if (row.byLength[static_cast<std::size_t>(*best - 1)].speedup < 1)
        text += "no draft length is faster than plain decoding on this machine\n";
    else
        text +=
            "best k by the cost of both models on this machine: " + std::to_string(*best) + "\n";
    return text;
}

std::string describe(const AcceptOutcome& outcome)
{
    TextTable table({leftColumn("Task"),
                     {"Steps"},
                     {"Drafted"},
                     {"Accepted"},
                     {"Rate (%)"},
                     leftColumn("95 % interval"),
                     {"Mean length"},
                     {"Tokens/s"},
                     leftColumn("Output = greedy"),
                     leftColumn("Accepted up to position (%)")});
    constexpr double percent = 100;
    const auto add = [&](const AcceptRow& row) {
        const AcceptanceMetrics& m = row.metrics;
        std::string positions;
        for (const double share : m.perPosition)
            positions += (positions.empty() ? "" : " ") + number(percent * share, 0);
        table.addRow({row.task, countText(row, m.steps), countText(row, m.draftTokens),
                      countText(row, m.acceptedTokens), number(percent * m.acceptanceRate, 1),
                      number(percent * m.rateLow, 1) + " to " + number(percent * m.rateHigh, 1),
                      number(m.meanAcceptanceLength, 2), number(row.tokensPerSecond, 1),
                      row.identicalToGreedy ? (*row.identicalToGreedy ? "yes" : "no") : "-",
                      positions});
    };
    for (const AcceptRow& row : outcome.rows)
        add(row);
    if (outcome.rows.size() > 1)
        add(outcome.pooled);
    std::string text = table.text() + describeSpeed(outcome.pooled);
    for (const AcceptRow& row : outcome.rows)
        for (const AcceptRow::Divergence& at : row.divergences)
            text += row.task + ", prompt " + std::to_string(at.prompt) +
                    ": output leaves the target's own at token " + std::to_string(at.position) +
                    ", where its two best logits differ by " + number(at.margin, 5) + "\n";
    return text;
}

class Accept : public Command
{
public:
    std::string name() const override { return "accept"; }
    std::string summary() const override
    {
        return "how many of a draft's tokens a target model accepts in speculative decoding";
    }
    std::string examples() const override
    {
        return "replay measures every draft against one stored continuation of the target; "
               "speculative runs\n"
               "the engine and reports its speed. A task is named after its file.\n"
               "Example: mla-draft accept --target models/SmolLM2-135M --draft drafts/t-functional "
               "\\\n"
               "      --tasks human_eval,tasks/cnn_dailymail.jsonl -k 4 --min-new-tokens 16";
    }
    void declare(CLI::App& parser) override
    {
        parser.add_option("--target", m_target, "model directory that verifies")
            ->type_name("DIR")
            ->required();
        parser.add_option("--draft", m_draft, "model directory that drafts: original or converted")
            ->type_name("DIR")
            ->required();
        parser
            .add_option("--tasks", m_tasks,
                        "prompts: JSONL files, or names of those in --tasks-dir, joined by commas")
            ->type_name("FILES")
            ->delimiter(',')
            ->required();
        parser.add_option("--tasks-dir", m_tasksDir, "folder in which tasks are found by name")
            ->type_name("DIR")
            ->default_str("those that ship");
        addMeasureOptions(parser);
        addStudyOption(parser, m_study);
    }
    Result<Output> run(JobContext& job) override
    {
        m_request.target = m_target;
        m_request.draft = m_draft;
        MLA_TRY(tasks, resolveTasks(m_tasks, m_tasksDir));
        m_request.settings.tasks = std::move(tasks);
        m_request.study = optionalPath(m_study);
        m_request.compute = common.compute;
        MLA_CHECK(validate(m_request.settings));
        MLA_TRY(outcome, measureAcceptance(job, m_request));
        json rows = json::array();
        for (const AcceptRow& row : outcome.rows)
            rows.push_back(rowJson(row));
        return Output{{{"rows", std::move(rows)},
                       {"pooled", rowJson(outcome.pooled)},
                       {"chat_template", m_request.settings.chatTemplate},
                       {"warnings", outcome.warnings}},
                      describe(outcome),
                      outcome.warnings};
    }

private:
    void addMeasureOptions(CLI::App& parser)
    {
        AcceptSettings& settings = m_request.settings;
        parser.add_option("-k", settings.k, "tokens drafted per step")
            ->type_name("K")
            ->check(atLeast(1))
            ->capture_default_str();
        parser.add_option("--max-new-tokens", settings.maxNewTokens, "new tokens per prompt")
            ->type_name("N")
            ->check(atLeast(1))
            ->capture_default_str();
        parser
            .add_option("--min-new-tokens", settings.minNewTokens,
                        "no end-of-text token before this many, in either model")
            ->type_name("N")
            ->check(atLeast(0))
            ->capture_default_str();
        parser
            .add_option("--max-prompt-tokens", settings.maxPromptTokens, "cut prompts to this many")
            ->type_name("N")
            ->check(atLeast(1));
        addChatOptions(parser, settings.chatTemplate, common.compute.python);
        parser.add_option("--limit", settings.limit, "prompts per task")
            ->type_name("N")
            ->check(atLeast(1))
            ->default_str("all");
        parser.add_option("--method", settings.method, "replay or speculative")
            ->type_name("NAME")
            ->default_str("replay where it is possible");
        parser
            .add_option("--backend", settings.backend, "what runs the models: native, hf or vllm")
            ->type_name("NAME")
            ->capture_default_str();
        addSamplingOptions(parser);
        parser
            .add_option("--sweep-k", settings.sweepK,
                        "also every draft length up to this one, with predicted speed-ups (replay)")
            ->type_name("K")
            ->check(atLeast(1));
        parser.add_option("--repeats", settings.repeats, "timed runs of the engine")
            ->type_name("N")
            ->check(atLeast(1))
            ->capture_default_str();
        parser.add_flag("--baseline", settings.baseline, "also time the target alone");
    }
    void addSamplingOptions(CLI::App& parser)
    {
        AcceptSettings& settings = m_request.settings;
        parser.add_option("--temperature", settings.temperature, "of both models; 0 = greedy")
            ->type_name("T")
            ->check(notNegative())
            ->capture_default_str();
        parser.add_option("--top-k", settings.topK, "sample among the N likeliest tokens; 0 = all")
            ->type_name("N")
            ->check(atLeast(0))
            ->capture_default_str();
        parser
            .add_option("--top-p", settings.topP,
                        "sample among the likeliest tokens that together reach P")
            ->type_name("P")
            ->capture_default_str();
    }

    std::string m_target, m_draft, m_study, m_tasksDir;
    std::vector<std::string> m_tasks;
    AcceptRequest m_request;
};

} // namespace

std::unique_ptr<Command> makeAccept()
{
    return std::make_unique<Accept>();
}

} // namespace mla::cli
