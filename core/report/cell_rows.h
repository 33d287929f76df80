// SPDX-License-Identifier: GPL-3.0-or-later
// What decides whether two acceptance measurements may be compared: of study_cells.h alone.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <tuple>

#include "core/store/records.h"

namespace mla
{

/// What two halves of one seed must share; a greedy measurement has no random numbers of its own.
using Seed = std::tuple<std::uint64_t, std::string, std::uint64_t>; // run, calibration, measurement

struct CellRow {
    const AcceptanceRecord* record = nullptr;
    const RunRecord* run = nullptr; ///< null: `original` without a run of its own
    std::string variant;
    std::string source;     ///< checkpoint the draft was made from; "" = not known
    std::string conversion; ///< everything that decided the conversion, "" for the original
    std::string budget;     ///< everything that decided the refinement but objective and rate
    Seed seed;
};

/// Everything refinements of one conversion and budget share.
struct Slot {
    std::string source, converter, conversion, budget;
    auto operator<=>(const Slot&) const = default;
};

/// How a row was measured.
struct Measuring {
    std::string target, backend, task, protocol; ///< protocol: as shown, and what is not shown
    auto operator<=>(const Measuring&) const = default;
};

/// `onlySource`: of the study, what an `original` without a run was made from.
[[nodiscard]] CellRow describeRow(const StudyData& study, const AcceptanceRecord& record,
                                  const std::string& onlySource);
/// The one checkpoint all drafts were made from, else "".
[[nodiscard]] std::string onlySourceOf(const StudyData& study);
[[nodiscard]] Measuring measuringOf(const AcceptanceRecord& record);
/// The limit on prompts that a row was measured with.
[[nodiscard]] std::string limitOf(const AcceptanceRecord& record);
/// ", 45 steps" of a refinement's budget, "" if it names none.
[[nodiscard]] std::string stepsText(const std::string& budget);

} // namespace mla
