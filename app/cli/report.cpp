// SPDX-License-Identifier: GPL-3.0-or-later
#include <chrono>
#include <set>

#include "app/cli/command.h"
#include "app/cli/options.h"
#include "core/base/file.h"
#include "core/report/report_text.h"
#include "core/report/spec_bench.h"
#include "core/report/tables.h"
#include "core/store/study.h"

namespace mla::cli
{
namespace
{

class Report : public Command
{
public:
    std::string name() const override { return "report"; }
    std::string summary() const override
    {
        return "tables of a study: variants, acceptance, matched cells, layers";
    }
    std::string examples() const override
    {
        return "Example: mla-draft report study.h5 -o tables --tables latex\n"
               "Figures: mla-workbench --report study.h5 -o figures --format pdf,svg,png";
    }
    bool stoppable() const override { return false; }
    void declare(CLI::App& parser) override
    {
        addModelArgument(parser, m_study, "STUDY", "study file (HDF5)");
        addOutputOptions(parser, m_output, m_overwrite);
        parser.add_option("--tables", m_tables, "formats, joined by commas: csv, latex, md")
            ->type_name("FORMATS")
            ->delimiter(',')
            ->default_str("csv,latex,md");
        parser.add_flag(
            "--spec-bench", m_specBench,
            "also the steps of each measurement, as Spec-Bench writes them (JSON lines)");
    }
    Result<Output> run(JobContext&) override
    {
        for (const std::string& format : m_tables)
            if (!findTableFormat(format))
                return usageError("--tables: '" + format + "' is none of csv, latex, md");
        MLA_TRY(study, loadStudy(m_study));
        MLA_TRY(folder, StagedDirectory::create(m_output, m_overwrite));
        std::vector<std::string> files;
        std::set<std::string> used;
        for (const Table& table : allTables(study)) {
            const std::string stem = uniqueStem(table.id, used);
            for (const std::string& name :
                 std::set<std::string>(m_tables.begin(), m_tables.end())) {
                const TableFormat& format = *findTableFormat(name);
                files.push_back(stem + format.extension);
                MLA_CHECK(writeFileAtomically(folder.path() / files.back(), format.render(table)));
            }
        }
        std::vector<std::string> warnings;
        if (m_specBench)
            MLA_CHECK(writeSteps(study, folder.path(), used, files, warnings));
        MLA_CHECK(folder.commit());
        std::string text;
        for (const std::string& file : files)
            text += (std::filesystem::path(m_output) / file).string() + "\n";
        return Output{{{"output", m_output}, {"files", files}}, std::move(text), warnings};
    }

private:
    /// One file a measurement; what has no steps is left out with a warning.
    static Status writeSteps(const StudyData& study, const std::filesystem::path& folder,
                             std::set<std::string>& used, std::vector<std::string>& files,
                             std::vector<std::string>& warnings)
    {
        const std::chrono::duration<double> now =
            std::chrono::system_clock::now().time_since_epoch();
        for (const AcceptanceRecord& record : study.acceptance) {
            const Result<std::string> lines = specBenchLines(record, now.count());
            if (!lines) {
                warnings.push_back(lines.error().text());
                continue;
            }
            files.push_back(uniqueStem(record.id, used) + ".jsonl");
            MLA_CHECK(writeFileAtomically(folder / files.back(), *lines));
        }
        return {};
    }

    std::string m_study, m_output;
    bool m_overwrite = false, m_specBench = false;
    std::vector<std::string> m_tables = {"csv", "latex", "md"};
};

} // namespace

std::unique_ptr<Command> makeReport()
{
    return std::make_unique<Report>();
}

} // namespace mla::cli
