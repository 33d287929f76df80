// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/resources.h"

#include <cstdlib>
#include <system_error>

namespace fs = std::filesystem;

namespace mla
{
namespace
{

bool holdsResources(const fs::path& folder)
{
    std::error_code ignored;
    return fs::is_directory(folder / "demo", ignored) &&
           fs::is_directory(folder / "prompts", ignored);
}

/// The program stands in bin/, or behind a launcher in lib/mla-draft-workbench/.
fs::path installedFolder()
{
    std::error_code failed;
    const fs::path program = fs::read_symlink("/proc/self/exe", failed);
    if (failed)
        return {};
    const fs::path folder = program.parent_path();
    const bool launched = folder.filename() == "mla-draft-workbench";
    return ((launched ? folder / "../.." : folder / "..") / "share/mla-draft-workbench")
        .lexically_normal();
}

} // namespace

Result<fs::path> resourceDirectory()
{
    if (const char* chosen = std::getenv("MLA_DRAFT_RESOURCES"); chosen && *chosen) {
        if (holdsResources(chosen))
            return fs::path(chosen);
        return badInput("no resources there: expected a folder with demo/ and prompts/", chosen,
                        "correct or unset MLA_DRAFT_RESOURCES");
    }
    const fs::path installed = installedFolder(), source = MLA_SOURCE_RESOURCES;
    for (const fs::path& folder : {installed, source})
        if (!folder.empty() && holdsResources(folder))
            return folder;
    return badInput("the program's resources are missing: neither " + installed.string() + " nor " +
                        source.string() + " holds demo/ and prompts/",
                    {}, "set MLA_DRAFT_RESOURCES to the folder that does");
}

} // namespace mla
