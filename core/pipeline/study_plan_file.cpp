// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pipeline/study_plan_file.h"

#include "core/base/file.h"
#include "core/base/json.h"

namespace mla
{

Result<StudyPlan> parseStudyPlan(std::string_view text, const std::string& origin)
{
    MLA_TRY(json, parseJson(text, origin));
    Result<StudyPlan> plan = studyPlanFromJson(json);
    if (!plan)
        return badInput(plan.error().text(), origin);
    return plan;
}

Result<StudyPlan> readStudyPlan(const std::filesystem::path& file)
{
    MLA_TRY(text, readFile(file));
    return parseStudyPlan(text, file.string());
}

} // namespace mla
