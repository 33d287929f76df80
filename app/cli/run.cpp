// SPDX-License-Identifier: GPL-3.0-or-later
#include <iostream>
#include <iterator>

#include "app/cli/command.h"
#include "app/cli/json_report.h"
#include "app/cli/options.h"
#include "core/base/file.h"
#include "core/pipeline/pipeline.h"
#include "core/pipeline/study_plan_file.h"

namespace mla::cli
{
namespace
{

constexpr const char* standardInput = "-";

Result<std::string> textOf(const std::string& file)
{
    if (file == standardInput)
        return std::string(std::istreambuf_iterator<char>(std::cin), {});
    return readFile(file);
}

/// What a plan cannot do without.
Status checkPaths(const StudyPlan& plan, const std::string& origin)
{
    const std::pair<const char*, const std::filesystem::path&> needed[] = {
        {"checkpoint", plan.checkpoint}, {"study", plan.study}, {"drafts", plan.drafts}};
    for (const auto& [key, path] : needed)
        if (path.empty())
            return badInput(std::string("the plan lacks \"") + key + "\"", origin);
    if (plan.conversions.empty())
        return badInput("the plan names no conversion: \"conversions\" is empty", origin);
    return {};
}

class Run : public Command
{
public:
    std::string name() const override { return "run"; }
    std::string summary() const override
    {
        return "a whole study from one file: convert, refine, measure";
    }
    std::string examples() const override
    {
        return "The workbench's new-run dialog saves such a file, and copies this command.\n"
               "Example: mla-draft run plan.json\n"
               "         mla-draft run plan.json --resume";
    }
    void declare(CLI::App& parser) override
    {
        m_parser = &parser;
        parser.add_option("PLAN", m_plan, "the plan (JSON); - reads standard input")
            ->type_name("PLAN.json")
            ->required();
        parser.add_flag("--resume", m_resume,
                        "keep finished runs of equal settings, go on with unfinished ones");
    }
    Result<Output> run(JobContext& job) override
    {
        MLA_TRY(plan, readPlan());
        const auto given = [this](const char* option) { return m_parser->count(option) > 0; };
        if (given("--device"))
            plan.compute.device = common.compute.device;
        if (given("--threads"))
            plan.compute.threads = common.compute.threads;
        if (given("--seed"))
            plan.compute.seed = common.compute.seed;
        plan.resume = plan.resume || m_resume;
        MLA_TRY(outcome, runStudy(job, plan));
        nlohmann::json object = summaryJson(outcome);
        object["study"] = plan.study.string();
        return Output{
            std::move(object), summaryText(outcome) + "Study: " + plan.study.string() + "\n", {}};
    }

private:
    Result<StudyPlan> readPlan() const
    {
        const std::string origin = m_plan == standardInput ? "standard input" : m_plan;
        MLA_TRY(text, textOf(m_plan));
        MLA_TRY(plan, parseStudyPlan(text, origin));
        MLA_CHECK(checkPaths(plan, origin));
        return std::move(plan);
    }

    CLI::App* m_parser = nullptr;
    std::string m_plan;
    bool m_resume = false;
};

} // namespace

std::unique_ptr<Command> makeRun()
{
    return std::make_unique<Run>();
}

} // namespace mla::cli
