// SPDX-License-Identifier: GPL-3.0-or-later
// What a grid's folder holds and how far each unit of work got. Every file here appears whole, one
// writer each, so that units may run in any order and on several machines. No torch here.
//
//   OUT/grid.json           the settings that results depend on
//   OUT/state/UNIT.json     per part (variant or task): seconds, or why it failed
//   OUT/units/UNIT.h5       the unit's own small study
//   OUT/drafts/UNIT~VARIANT the drafts
//   OUT/grid.h5             the study of everything finished (or where --study says)
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/pipeline/grid_plan.h"

namespace mla
{

struct GridFolder {
    std::filesystem::path output, study;
    [[nodiscard]] std::filesystem::path settings() const { return output / "grid.json"; }
    [[nodiscard]] std::filesystem::path stateOf(const GridUnit& unit) const
    {
        return output / "state" / (unit.name + ".json");
    }
    [[nodiscard]] std::filesystem::path studyOf(const GridUnit& unit) const
    {
        return output / "units" / (unit.name + ".h5");
    }
    [[nodiscard]] std::filesystem::path draftOf(const GridUnit& unit,
                                                const std::string& variant) const
    {
        return output / "drafts" / (unit.name + "~" + variant);
    }
};

/// A part of a unit that was tried: one draft of a Draft, one task of a Measurement.
struct GridPart {
    double seconds = 0;
    std::string error; ///< empty when it succeeded
};
using GridParts = std::map<std::string, GridPart>; ///< by variant or task; untried ones are absent

/// Empty if the unit was never begun.
Result<GridParts> loadParts(const GridFolder& folder, const GridUnit& unit);
Status saveParts(const GridFolder& folder, const GridUnit& unit, const GridParts& parts);

/// Every part a unit has.
[[nodiscard]] std::vector<std::string> partsOf(const GridPlan& plan, const GridUnit& unit);

struct GridRowState {
    enum class State { Waiting, Done, Failed } state = State::Waiting;
    std::string error; ///< of a failed row
};
[[nodiscard]] std::string_view stateName(GridRowState::State state); ///< "waiting", ...

struct GridProgress {
    std::vector<GridRowState> rows; ///< one per GridPlan::rows
    int done = 0, failed = 0;       ///< rows
    /// What the unfinished parts will take if they take as long as those of their kind did; 0 while
    /// some kind of work was never done.
    double secondsLeft = 0;
};
Result<GridProgress> gridProgress(const GridPlan& plan, const GridFolder& folder);

/// Makes the folder for `settings` (canonical JSON), or takes up the one that is there: only if
/// `resume`, and only if its settings are equal; a Usage error names the first key that differs.
Status openGridFolder(const GridFolder& folder, const nlohmann::json& settings, bool resume);

} // namespace mla
