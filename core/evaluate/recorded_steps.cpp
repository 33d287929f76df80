// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluate/recorded_steps.h"

#include <algorithm>

namespace mla
{

std::vector<StepCount> stepsOf(const AcceptanceRecord& row)
{
    std::vector<StepCount> steps;
    const std::size_t count =
        std::min({row.prompt.size(), row.drafted.size(), row.accepted.size()});
    for (std::size_t i = 0; i < count; ++i)
        steps.push_back({row.prompt[i], row.drafted[i], row.accepted[i],
                         row.weight.empty() ? 1 : row.weight.at(i)});
    return steps;
}

} // namespace mla
