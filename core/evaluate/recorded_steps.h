// SPDX-License-Identifier: GPL-3.0-or-later
// The steps that a study holds, as acceptance is computed from them. No torch here.
#pragma once

#include <vector>

#include "core/evaluate/acceptance.h"
#include "core/store/records.h"

namespace mla
{

/// Raw steps of one row, numbered as its prompts are.
[[nodiscard]] std::vector<StepCount> stepsOf(const AcceptanceRecord& row);

} // namespace mla
