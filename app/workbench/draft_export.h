// SPDX-License-Identifier: GPL-3.0-or-later
// "Export draft…": the dialog, the job that writes and verifies, and the message with the result.
#pragma once

#include <QObject>

#include "widgets/dialogs/export_draft_dialog.h"
#include "widgets/jobs/study_jobs.h"

class QAction;
class QWidget;

namespace mla::ui
{

class MessageBar;
class SelectionModel;
class StudyDocument;

using DraftExporter = std::function<Result<ExportOutcome>(JobContext&, const ExportRequest&)>;

/// Core's: every layout's description for one draft.
Result<std::vector<LayoutDescription>> describeEveryLayout(const std::filesystem::path& draft);

class DraftExport : public QObject
{
    Q_OBJECT
public:
    struct Parts {
        StudyDocument& document;
        SelectionModel& selection;
        StudyJobs& jobs;
        MessageBar& messages;
    };
    DraftExport(Parts parts, DraftDescriber describe, DraftExporter write, QWidget* window);

    [[nodiscard]] QAction* action() const { return m_action; }
    /// Starts with the selected run's draft.
    ExportDraftDialog* open();

private:
    void start(const ExportRequest& request);
    void report(const ExportOutcome& outcome);

    Parts m_parts;
    DraftDescriber m_describe;
    DraftExporter m_write;
    QWidget* m_window;
    QAction* m_action;
};

} // namespace mla::ui
