// SPDX-License-Identifier: GPL-3.0-or-later
// Where the files that ship with the programs stand: demo/, prompts/, tasks/, python/, help/.
#pragma once

#include <filesystem>

#include "core/base/result.h"

namespace mla
{

/// The first of these that is there: $MLA_DRAFT_RESOURCES, share/mla-draft-workbench of the prefix
/// that the program is installed in, resources/ of the source tree it was built from. A variable
/// that is set and names no such folder is a BadInput error, not a reason to look elsewhere.
Result<std::filesystem::path> resourceDirectory();

} // namespace mla
