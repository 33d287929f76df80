// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <chrono>

namespace mla
{

/// Measures durations: never set back by the wall clock.
using SteadyClock = std::chrono::steady_clock;

[[nodiscard]] inline double secondsSince(SteadyClock::time_point begun)
{
    return std::chrono::duration<double>(SteadyClock::now() - begun).count();
}

} // namespace mla
