// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/dialogs/export_form.h"

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>

#include "widgets/common/plain_text.h"

namespace mla::ui
{

namespace
{

QString tr(const char* text, int count = -1)
{
    return QCoreApplication::translate("ExportForm", text, nullptr, count);
}

QString cleanPath(const QString& path)
{
    return QDir::cleanPath(QFileInfo(path).absoluteFilePath());
}

/// The nearest folder above `path` that is there.
QFileInfo existingParent(const QString& path)
{
    QFileInfo info(QFileInfo(path).absolutePath());
    while (!info.exists() && !QDir(info.absoluteFilePath()).isRoot())
        info = QFileInfo(info.absolutePath());
    return info;
}

QString outputProblem(const ExportForm& form)
{
    if (form.output.isEmpty())
        return tr("Choose a folder to write.");
    const QFileInfo output(form.output);
    if (!form.draft.isEmpty() && cleanPath(form.output) == cleanPath(form.draft))
        return tr("This is the draft itself; choose another folder.");
    if (output.exists() && !output.isDir())
        return tr("This is a file; choose a folder.");
    if (output.exists() && !form.overwrite)
        return tr("The folder exists. Choose another, or allow it to be replaced.");
    const QFileInfo parent = existingParent(form.output);
    if (!parent.isDir() || !parent.isWritable())
        return tr("%1 cannot be written to.").arg(parent.absoluteFilePath());
    return {};
}

QString checkLine(const ExportCheckRecord& check)
{
    if (!check.tried())
        return tr("%1: not tried, %2").arg(text(check.stack), text(check.remark));
    QString line = tr("%1: logits within %2 of their spread, %3 of %4 greedy tokens equal")
                       .arg(text(check.stack))
                       .arg(check.logitDifference, 0, 'g', 2)
                       .arg(check.equalTokens)
                       .arg(check.greedyTokens);
    if (!check.remark.empty())
        line += QStringLiteral("; ") + text(check.remark);
    return line;
}

} // namespace

const LayoutDescription* DraftState::find(const QString& layout) const
{
    for (const LayoutDescription& description : layouts)
        if (text(description.layout) == layout)
            return &description;
    return nullptr;
}

std::vector<Issue> checkExport(const ExportForm& form, const DraftState& draft)
{
    std::vector<Issue> issues;
    const auto block = [&](Field field, const QString& text) {
        issues.push_back({field, true, text});
    };
    if (form.draft.isEmpty())
        block(Field::ExportDraft, tr("Choose the folder of a draft."));
    else if (draft.status == DraftState::Status::Bad)
        block(Field::ExportDraft, draft.problem);
    else if (draft.status != DraftState::Status::Good)
        block(Field::ExportDraft, tr("The draft is being read…"));
    else if (const LayoutDescription* layout = draft.find(form.layout);
             layout && !layout->refusal.empty())
        block(Field::ExportLayout,
              tr("This layout cannot hold the draft: %1").arg(text(layout->refusal)));
    if (const QString problem = outputProblem(form); !problem.isEmpty())
        block(Field::ExportOutput, problem);
    else if (form.overwrite && QFileInfo::exists(form.output))
        issues.push_back(
            {Field::ExportOutput, false, tr("What is in the folder now will be replaced.")});
    return issues;
}

ExportRequest requestFromForm(const ExportForm& form)
{
    ExportRequest request;
    request.draft = filePath(form.draft);
    request.output = filePath(form.output);
    request.layout = form.layout.toStdString();
    if (!form.dtype.isEmpty())
        request.dtype = form.dtype.toStdString();
    request.verify = form.verify;
    request.overwrite = form.overwrite;
    if (!form.study.isEmpty())
        request.study = filePath(form.study);
    request.maxShardBytes = static_cast<std::int64_t>(form.shardGigabytes * 1e9);
    return request;
}

QString exportSummary(const ExportOutcome& outcome)
{
    QStringList agreeing, untried;
    for (const ExportCheckRecord& check : outcome.record.checks)
        (check.tried() ? agreeing : untried) << text(check.stack);
    QString line = tr("Draft exported to %1.").arg(text(outcome.output));
    if (!agreeing.isEmpty())
        line += QLatin1Char(' ') + tr("Checked in %1.").arg(agreeing.join(QStringLiteral(", ")));
    if (!untried.isEmpty())
        line += QLatin1Char(' ') + tr("Not checked in %1.").arg(untried.join(QStringLiteral(", ")));
    return line;
}

QString exportDetails(const ExportOutcome& outcome)
{
    QStringList lines;
    for (const ExportCheckRecord& check : outcome.record.checks)
        lines << checkLine(check);
    if (outcome.loss && outcome.loss->exact) // else among what is lost
        lines << tr("Against the draft, %1").arg(text(layoutLossText(*outcome.loss)));
    for (const std::string& lost : outcome.record.loses)
        lines << tr("Lost: %1").arg(text(lost));
    for (const std::string& warning : outcome.warnings)
        lines << tr("Warning: %1").arg(text(warning));
    return lines.join(QLatin1Char('\n'));
}

} // namespace mla::ui
