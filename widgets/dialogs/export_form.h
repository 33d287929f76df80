// SPDX-License-Identifier: GPL-3.0-or-later
// What the user asked for in the export dialog, what is wrong with it, and the request it makes.
// No widgets here: the rules are tested without a window.
#pragma once

#include <vector>

#include <QString>

#include "core/pipeline/pipeline.h"
#include "widgets/dialogs/run_form.h"

namespace mla::ui
{

struct ExportForm {
    QString draft, output; ///< directories
    QString layout = QStringLiteral("huggingface");
    QString dtype; ///< fp32 | fp16 | bf16; empty = as in the draft
    double shardGigabytes = double(defaultShardBytes) / 1e9;
    bool verify = true;
    bool overwrite = false;
    QString study; ///< the export is recorded there; empty = nowhere
};

/// What is known about a draft folder that was typed.
struct DraftState {
    enum class Status { Unknown, Checking, Bad, Good } status = Status::Unknown;
    QString problem;                        ///< when Bad
    std::vector<LayoutDescription> layouts; ///< when Good: every layout, in offered order
    [[nodiscard]] const LayoutDescription* find(const QString& layout) const;
};

/// Everything that keeps the export from starting, and warnings, in the order of the dialog.
[[nodiscard]] std::vector<Issue> checkExport(const ExportForm& form, const DraftState& draft);
[[nodiscard]] ExportRequest requestFromForm(const ExportForm& form);

/// One line: what the export came to and how far each program agrees with it.
[[nodiscard]] QString exportSummary(const ExportOutcome& outcome);
/// Everything measured and lost, a line each.
[[nodiscard]] QString exportDetails(const ExportOutcome& outcome);

} // namespace mla::ui
