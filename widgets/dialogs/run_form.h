// SPDX-License-Identifier: GPL-3.0-or-later
// What the user asked for in the new-run dialog, what is wrong with it, and the plan it makes.
// No widgets here: the rules are tested without a window.
#pragma once

#include <optional>
#include <vector>

#include <QByteArray>
#include <QString>
#include <QStringList>

#include "core/convert/conversion_limits.h"
#include "core/pipeline/pipeline.h"
#include "core/pipeline/settings.h"

namespace mla::ui
{

struct ConverterForm {
    bool enabled = false;
    ConvertSettings settings;
};

struct RunForm {
    QString checkpoint, target; ///< target empty = the checkpoint itself
    ConverterForm transmla, mha2mla;
    CalibrationSettings calibration;
    bool partialRope = true, functional = true;
    RefineSettings refine;
    QStringList tasks;
    AcceptSettings accept; ///< `tasks` are taken from above
    QString study, drafts;
    ComputeSettings compute;
};

/// What is known about a checkpoint folder that was typed.
struct ModelState {
    enum class Status { Unknown, Checking, Bad, Good } status = Status::Unknown;
    QString problem;      ///< when Bad
    InspectReport report; ///< when Good
};

enum class Field {
    Checkpoint,
    Target,
    Converters,
    TransmlaModel,
    TransmlaRank,
    TransmlaRope,
    TransmlaFold,
    Mha2mlaModel,
    Mha2mlaRank,
    Mha2mlaRope,
    Mha2mlaSelection,
    Calibration,
    Objectives,
    Refinement,
    Tasks,
    ChatTemplate,
    Backend,
    Study,
    Drafts,
    ExportDraft,
    ExportLayout,
    ExportOutput
};
struct Issue {
    Field field;
    bool blocking = true; ///< else a warning beside the field
    QString text;
    bool operator==(const Issue&) const = default;
};

/// The first that keeps the job from starting; null if nothing does.
[[nodiscard]] const Issue* firstBlocking(const std::vector<Issue>& issues);

/// Ranks that halve the cache of `model`; rank 1 where the converter does not take the model.
[[nodiscard]] ConvertSettings halvedCache(const std::string& converter, const ModelConfig& model);

/// Everything that keeps the run from starting, and warnings, in the order of the dialog.
[[nodiscard]] std::vector<Issue> checkForm(const RunForm& form, const ModelState& checkpoint,
                                           const ModelState& target);
[[nodiscard]] StudyPlan planFromForm(const RunForm& form);
/// The inverse, for what a form can ask for: a plan's first conversion by each converter.
[[nodiscard]] RunForm formFromPlan(const StudyPlan& plan);

/// The plan as `mla-draft run` takes it.
[[nodiscard]] QByteArray planText(const StudyPlan& plan);
/// A shell command that runs the plan anywhere the paths hold.
[[nodiscard]] QString commandLineOf(const StudyPlan& plan);

} // namespace mla::ui
