// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>

#include "app/cli/command.h"
#include "app/cli/json_report.h"
#include "app/cli/options.h"
#include "app/cli/text.h"
#include "core/base/file.h"
#include "core/evaluate/acceptance.h"
#include "core/report/acceptance_groups.h"
#include "core/report/spec_bench.h"
#include "core/store/study.h"

using nlohmann::json;

namespace mla::cli
{
namespace
{

class ImportResults : public Command
{
public:
    std::string name() const override { return "import-results"; }
    std::string summary() const override
    {
        return "acceptance that Spec-Bench measured, into a study";
    }
    std::string examples() const override
    {
        return "FILE is an answer file of Spec-Bench (data/.../model_answer/NAME.jsonl). It does "
               "not "
               "say how\n"
               "many tokens were drafted, nor for which target.\n"
               "Example: mla-draft import-results vicuna-sps.jsonl --study my.h5 -k 5 --target "
               "vicuna-7b";
    }
    bool stoppable() const override { return false; }
    void declare(CLI::App& parser) override
    {
        addModelArgument(parser, m_file, "FILE", "answers of Spec-Bench (JSON lines)");
        addStudyOption(parser, m_study)->required();
        parser.add_option("-k", m_import.k, "tokens that were drafted per step")
            ->type_name("K")
            ->check(atLeast(1))
            ->required();
        parser.add_option("--target", m_import.target, "name of the model that verified")
            ->type_name("NAME")
            ->required();
        parser.add_option("--run", m_import.run, "name of the draft")
            ->type_name("NAME")
            ->default_str("the file's model_id");
        parser.add_option("--task", m_import.task, "all of it as one task of this name")
            ->type_name("NAME")
            ->default_str("one task a category");
        parser.add_option("--backend", m_import.backend, "what ran the models")
            ->type_name("NAME")
            ->capture_default_str();
        parser.add_option("--temperature", m_import.temperature, "that was sampled at; 0 = greedy")
            ->type_name("T")
            ->check(notNegative())
            ->capture_default_str();
    }
    Result<Output> run(JobContext&) override
    {
        MLA_TRY(text, readFile(m_file));
        MLA_TRY(records, readSpecBench(text, m_file, m_import));
        MLA_CHECK(updateStudy(m_study, [&records](StudyData& study) -> Status {
            for (const AcceptanceRecord& record : records)
                study.put(record);
            return {};
        }));
        return describe(records);
    }

private:
    [[nodiscard]] static Output describe(const std::vector<AcceptanceRecord>& records)
    {
        constexpr double percent = 100;
        TextTable table({leftColumn("Task"),
                         {"Steps"},
                         {"Drafted"},
                         {"Accepted"},
                         {"Rate (%)"},
                         {"Mean length"},
                         {"Tokens/s"}});
        json rows = json::array();
        for (const AcceptanceRecord& record : records) {
            const AcceptanceMetrics m = pooledMetrics({&record});
            table.addRow({record.task, count(std::llround(m.steps)),
                          count(std::llround(m.draftTokens)), count(std::llround(m.acceptedTokens)),
                          number(percent * m.acceptanceRate, 1), number(m.meanAcceptanceLength, 2),
                          number(record.tokensPerSecond, 1)});
            rows.push_back({{"id", record.id},
                            {"task", record.task},
                            {"steps", wholeIfPossible(m.steps)},
                            {"draft_tokens", wholeIfPossible(m.draftTokens)},
                            {"accepted_tokens", wholeIfPossible(m.acceptedTokens)},
                            {"acceptance_rate", m.acceptanceRate},
                            {"mean_acceptance_length", m.meanAcceptanceLength},
                            {"tokens_per_second", orNull(record.tokensPerSecond)}});
        }
        return {{{"rows", std::move(rows)}}, table.text(), {}};
    }

    std::string m_file, m_study;
    SpecBenchImport m_import;
};

} // namespace

std::unique_ptr<Command> makeImportResults()
{
    return std::make_unique<ImportResults>();
}

} // namespace mla::cli
