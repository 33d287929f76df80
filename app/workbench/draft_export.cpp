// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/draft_export.h"

#include <memory>

#include <QAction>
#include <QDesktopServices>
#include <QUrl>

#include "widgets/common/message_bar.h"
#include "widgets/common/plain_text.h"
#include "widgets/models/selection_model.h"
#include "widgets/models/study_document.h"

namespace mla::ui
{

Result<std::vector<LayoutDescription>> describeEveryLayout(const std::filesystem::path& draft)
{
    std::vector<LayoutDescription> layouts;
    for (const std::string& name : exportLayoutNames()) {
        MLA_TRY(layout, describeExport(draft, name));
        layouts.push_back(std::move(layout));
    }
    return layouts;
}

DraftExport::DraftExport(Parts parts, DraftDescriber describe, DraftExporter write, QWidget* window)
    : QObject(window), m_parts(parts), m_describe(std::move(describe)), m_write(std::move(write)),
      m_window(window), m_action(new QAction(tr("Export &draft…"), this))
{
    m_action->setShortcut(Qt::CTRL | Qt::SHIFT | Qt::Key_E);
    connect(m_action, &QAction::triggered, this, &DraftExport::open);
}

ExportDraftDialog* DraftExport::open()
{
    auto* dialog = new ExportDraftDialog(m_describe, m_window);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    if (m_parts.document.isLoaded())
        dialog->setStudy(m_parts.document.path());
    if (const RunRecord* run = m_parts.document.run(m_parts.selection.run()))
        dialog->setDraft(text(run->draftPath));
    connect(dialog, &ExportDraftDialog::planned, this, &DraftExport::start);
    dialog->open();
    return dialog;
}

void DraftExport::start(const ExportRequest& request)
{
    // Written by the worker thread, read when its job has ended.
    auto outcome = std::make_shared<ExportOutcome>();
    JobTask task;
    task.title = tr("Export of %1 (%2)").arg(text(request.draft.filename()), text(request.layout));
    task.study = request.study.value_or(std::filesystem::path());
    task.folder = request.output;
    task.work = [write = m_write, request, outcome](JobContext& job) -> Status {
        MLA_TRY(made, write(job, request));
        *outcome = std::move(made);
        return {};
    };
    task.succeeded = [this, outcome] { report(*outcome); };
    m_parts.jobs.start(task);
}

void DraftExport::report(const ExportOutcome& outcome)
{
    const QString folder = text(outcome.output);
    m_parts.messages.post({Notice::Severity::Info, exportSummary(outcome), exportDetails(outcome),
                           tr("Show folder"),
                           [folder] { QDesktopServices::openUrl(QUrl::fromLocalFile(folder)); }});
}

} // namespace mla::ui
