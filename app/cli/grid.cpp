// SPDX-License-Identifier: GPL-3.0-or-later
#include <sstream>

#include "app/cli/command.h"
#include "app/cli/grid_output.h"
#include "app/cli/options.h"
#include "core/pipeline/grid_run.h"
#include "core/pipeline/grid_slurm.h"
#include "core/store/study.h"

namespace fs = std::filesystem;
using nlohmann::json;

namespace mla::cli
{
namespace
{

const char* const slurmGroup = "Cluster";

class Grid : public Command
{
public:
    std::string name() const override { return "grid"; }
    std::string summary() const override
    {
        return "many pairs, converters, variants, backends and tasks, compared in matched cells";
    }
    std::string examples() const override
    {
        return "GRID.json is described in resources/grids/README.md; an interrupted grid goes on "
               "with --resume.\n"
               "Example: mla-draft grid resources/grids/demo.json -o demo-grid\n"
               "         mla-draft grid resources/grids/paper.json --models models --dry-run";
    }
    void declare(CLI::App& parser) override
    {
        parser.add_option("GRID", m_grid, "the grid (JSON)")->type_name("GRID.json")->required();
        parser.add_option("-o,--output", m_output, "folder for drafts, state and the study")
            ->type_name("DIR");
        addStudyOption(parser, m_study)->default_str("DIR/grid.h5");
        parser.add_option("--models", m_models, "folder that holds the checkpoints")
            ->type_name("DIR")
            ->default_str("the grid's own, else the current one");
        parser.add_option("--tasks-dir", m_tasks, "folder that holds the tasks, NAME.jsonl")
            ->type_name("DIR")
            ->default_str("the grid's own, else the tasks that ship");
        parser.add_flag("--dry-run", m_dryRun, "list the configurations and what is missing");
        parser.add_flag("--resume", m_resume, "go on with the grid in DIR; try failed rows again");
        parser.add_flag("--collect", m_collect, "measure nothing: bring together what is finished");
        parser.add_option("--task", m_task, "one unit of work alone, as a task of a job array")
            ->type_name("I")
            ->check(atLeast(0));
        parser.add_option("--python", common.compute.python, "Python interpreter of the backends")
            ->type_name("FILE")
            ->default_str("MLA_PYTHON, else what installer/setup.sh --python made");
        declareSlurm(parser);
    }
    Result<Output> run(JobContext& job) override
    {
        MLA_TRY(file, readGridFile(m_grid));
        MLA_TRY(plan, planGrid(std::move(file), m_models, m_tasks));
        if (m_dryRun && !m_slurm)
            return describePlan(plan, gridLacks(job, plan, common.compute.python));
        if (m_output.empty())
            return usageError("-o DIR is needed: the folder for drafts, state and the study",
                              "--dry-run writes nothing");
        GridRequest request{std::move(plan), {}, common.compute, m_resume};
        request.folder.output = fs::absolute(m_output).lexically_normal();
        request.folder.study = m_study.empty() ? request.folder.output / "grid.h5"
                                               : fs::absolute(m_study).lexically_normal();
        if (m_slurm)
            return submit(job, request);
        if (m_task)
            return runTask(job, request);
        MLA_TRY(progress, m_collect ? collectGrid(request) : runGrid(job, request));
        return results(request, progress);
    }

private:
    void declareSlurm(CLI::App& parser)
    {
        CLI::Option* slurm = parser.add_flag(
            "--slurm", m_slurm, "submit the grid as job arrays; with --dry-run print the scripts");
        parser.add_option("--slurm-partition", m_partition, "partition to submit to")
            ->type_name("NAME")
            ->needs(slurm);
        parser
            .add_option("--slurm-options", m_slurmOptions,
                        "further options of sbatch, in one word: \"--time=4:00:00 --mem=64G\"")
            ->type_name("OPTIONS")
            ->needs(slurm);
        for (CLI::Option* option : parser.get_options([](const CLI::Option* candidate) {
                 return candidate->get_lnames().size() == 1 &&
                        candidate->get_lnames().front().starts_with("slurm");
             }))
            option->group(slurmGroup);
    }
    static Result<Output> results(const GridRequest& request, const GridProgress& progress)
    {
        std::error_code ignored;
        StudyCells cells;
        if (fs::exists(request.folder.study, ignored)) {
            MLA_TRY(study, loadStudy(request.folder.study));
            cells = studyCells(study);
        }
        return describeResults(request.plan, progress, cells, request.folder.study);
    }
    Result<Output> runTask(JobContext& job, const GridRequest& request) const
    {
        MLA_CHECK(runGridUnit(job, request, static_cast<std::size_t>(*m_task)));
        const GridUnit& unit = request.plan.units[static_cast<std::size_t>(*m_task)];
        MLA_TRY(parts, loadParts(request.folder, unit));
        Output output{{{"unit", unit.name}, {"parts", json::object()}}, unit.name + "\n", {}};
        for (const auto& [part, state] : parts) {
            output.json["parts"][part] = {{"seconds", state.seconds}, {"error", state.error}};
            output.text += "  " + part + ": " +
                           (state.error.empty() ? "done" : "failed: " + state.error) + "\n";
        }
        return output;
    }
    /// What every task runs, up to --task or --collect.
    [[nodiscard]] std::vector<std::string> taskCommand(const GridRequest& request) const
    {
        std::error_code ignored;
        const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
        std::vector<std::string> words = {program.string(),
                                          "grid",
                                          fs::absolute(m_grid).lexically_normal().string(),
                                          "-o",
                                          request.folder.output.string(),
                                          "--study",
                                          request.folder.study.string(),
                                          "--models",
                                          request.plan.file.models.string(),
                                          "--tasks-dir",
                                          request.plan.file.tasksFolder.string(),
                                          "--device",
                                          common.compute.device,
                                          "--threads",
                                          std::to_string(common.compute.threads),
                                          "--seed",
                                          std::to_string(common.compute.seed)};
        if (!common.compute.python.empty())
            words.insert(words.end(), {"--python", fs::absolute(common.compute.python).string()});
        return words;
    }
    Result<Output> submit(JobContext& job, const GridRequest& request) const
    {
        SlurmSettings settings{
            m_partition, {}, false, request.folder.output / "slurm", taskCommand(request)};
        std::istringstream further(m_slurmOptions);
        for (std::string word; further >> word;)
            settings.options.push_back(word);
        const auto gpus = partitionHasGpus(job, m_partition);
        if (!gpus && !m_dryRun)
            return gpus.error();
        settings.gpu = gpus && *gpus;
        const std::vector<SlurmJob> jobs = slurmJobs(request.plan, settings);
        Output output{{{"jobs", json::array()}}, {}, {}};
        for (const SlurmJob& next : jobs) {
            output.json["jobs"].push_back({{"name", next.name}, {"script", next.script}});
            output.text += next.name + ".sh\n" + next.script + "\n";
        }
        if (m_dryRun)
            return output;
        MLA_CHECK(openGrid(request));
        MLA_TRY(ids, submitJobs(job, jobs, settings));
        output.text.clear();
        for (std::size_t i = 0; i < ids.size(); ++i) {
            output.json["jobs"][i]["id"] = ids[i];
            output.text += "job " + ids[i] + ": " + jobs[i].name + "\n";
        }
        output.text += "squeue follows them; the last one writes " + request.folder.study.string() +
                       ".\nAfterwards --collect prints the tables, --resume tries failed rows.\n";
        return output;
    }

    std::string m_grid, m_output, m_study, m_models, m_tasks, m_partition, m_slurmOptions;
    bool m_dryRun = false, m_resume = false, m_collect = false, m_slurm = false;
    std::optional<int> m_task;
};

} // namespace

std::unique_ptr<Command> makeGrid()
{
    return std::make_unique<Grid>();
}

} // namespace mla::cli
