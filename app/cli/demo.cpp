// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <array>
#include <string_view>

#include "app/cli/command.h"
#include "app/cli/demo_figures.h"
#include "app/cli/json_report.h"
#include "app/cli/options.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/resources.h"
#include "core/pipeline/pipeline.h"

namespace fs = std::filesystem;
using nlohmann::json;

namespace mla::cli
{
namespace
{

/// What a demo writes; --overwrite removes these and nothing else.
constexpr std::array<std::string_view, 6> ownNames = {"summary.json", "demo.h5", "demo.h5.lock",
                                                      "demo.parts",   "drafts",  "figures"};

enum class FolderState { Free, Unfinished, Complete, Foreign };

FolderState stateOf(const fs::path& folder)
{
    std::error_code failed;
    if (!fs::exists(folder, failed))
        return FolderState::Free;
    if (fs::is_regular_file(folder / "summary.json", failed) &&
        fs::is_regular_file(folder / "demo.h5", failed))
        return FolderState::Complete;
    bool own = false, other = false;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
        const std::string name = entry.path().filename().string();
        if (std::find(ownNames.begin(), ownNames.end(), name) != ownNames.end())
            own = true;
        else if (!name.starts_with('.')) // a killed run leaves hidden temporary files
            other = true;
    }
    if (failed)
        return FolderState::Foreign; // no directory, or not readable
    return own ? FolderState::Unfinished : other ? FolderState::Foreign : FolderState::Free;
}

Status removeOwn(const fs::path& folder)
{
    for (const std::string_view name : ownNames) {
        std::error_code failed;
        fs::remove_all(folder / name, failed);
        if (failed)
            return computeFailed("cannot be removed: " + failed.message(),
                                 (folder / name).string());
    }
    return {};
}

class Demo : public Command
{
public:
    std::string name() const override { return "demo"; }
    std::string summary() const override
    {
        return "the whole job on the embedded checkpoint: convert, refine, measure";
    }
    std::string examples() const override
    {
        return "Converts a small story model with both converters, refines each draft in two ways, "
               "and\n"
               "compares them: DIR/summary.json, DIR/demo.h5 (the study), DIR/drafts/, "
               "DIR/figures/.\n"
               "An interrupted demo is continued when it is started again.\n"
               "Next: mla-workbench mla-draft-demo/demo.h5";
    }
    void declare(CLI::App& parser) override
    {
        parser.add_option("-o,--output", m_output, "directory to write")
            ->type_name("DIR")
            ->capture_default_str();
        parser.add_flag("--overwrite", m_overwrite, "run again although DIR holds a demo");
    }
    Result<Output> run(JobContext& job) override
    {
        const fs::path folder = fs::absolute(m_output).lexically_normal();
        FolderState state = stateOf(folder);
        if (state == FolderState::Foreign && !(m_overwrite && fs::is_directory(folder)))
            return usageError(folder.string() + " exists and holds no demo",
                              "give another directory with -o");
        if (m_overwrite) {
            MLA_CHECK(removeOwn(folder));
            state = FolderState::Free;
        }
        if (state == FolderState::Complete)
            return finishedBefore(job, folder);
        MLA_TRY(outcome, compute(job, folder, state == FolderState::Unfinished));
        MLA_CHECK(
            writeFileAtomically(folder / "summary.json", summaryJson(outcome).dump(2) + "\n"));
        MLA_TRY(warnings, drawFigures(job, folder));
        return describe(outcome, folder, {}, warnings);
    }

private:
    Result<StudyOutcome> compute(JobContext& job, const fs::path& folder, bool resume) const
    {
        MLA_TRY(resources, resourceDirectory());
        std::error_code failed;
        fs::create_directories(folder, failed);
        if (failed)
            return badInput("cannot be made: " + failed.message(), folder.string());
        StudyPlan plan = demoPlan(resources, folder);
        plan.compute = common.compute;
        plan.resume = resume;
        if (resume)
            job.info("continuing the unfinished demo in " + folder.string());
        return runStudy(job, plan);
    }
    /// Figures are an extra: only being cancelled is an error, other failures are warnings.
    Result<std::vector<std::string>> drawFigures(const JobContext& job,
                                                 const fs::path& folder) const
    {
        const std::optional<fs::path> workbench = findWorkbench();
        std::error_code ignored;
        if (!workbench || fs::exists(folder / "figures", ignored))
            return std::vector<std::string>{};
        const Status drawn =
            renderFigures(job, *workbench, folder / "demo.h5", folder / "figures", common.quiet);
        if (drawn)
            return std::vector<std::string>{};
        if (drawn.error().code == ErrorCode::Cancelled)
            return drawn.error();
        return std::vector<std::string>{"no figures: " + drawn.error().text()};
    }
    Result<Output> finishedBefore(const JobContext& job, const fs::path& folder) const
    {
        const fs::path file = folder / "summary.json";
        MLA_TRY(summary, readJsonFile(file));
        MLA_TRY(outcome, summaryFromJson(summary, file.string()));
        MLA_TRY(warnings, drawFigures(job, folder));
        return describe(outcome, folder,
                        folder.string() + " holds a complete demo (--overwrite runs it again):\n\n",
                        warnings);
    }
    static Output describe(const StudyOutcome& outcome, const fs::path& folder,
                           const std::string& introduction,
                           const std::vector<std::string>& warnings)
    {
        json object = summaryJson(outcome);
        object["output"] = folder.string();
        object["warnings"] = warnings;
        return {std::move(object),
                introduction + summaryText(outcome) + "Study: " + (folder / "demo.h5").string() +
                    "\n",
                warnings};
    }

    std::string m_output = "mla-draft-demo";
    bool m_overwrite = false;
};

} // namespace

std::unique_ptr<Command> makeDemo()
{
    return std::make_unique<Demo>();
}

} // namespace mla::cli
