// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/report_renderer.h"

#include <algorithm>

#include "core/store/study.h"

namespace mla::ui
{
namespace
{

/// The sheet of the figures `ids`, taken from `figures`.
Result<Sheet> requestedSheet(const std::vector<Sheet>& figures, const QStringList& ids, int number,
                             int columns)
{
    std::vector<Figure> panels;
    for (const QString& id : ids) {
        const auto found = std::ranges::find(figures, id.toStdString(), &Sheet::id);
        if (found == figures.end())
            return usageError("the study has no figure '" + id.toStdString() + "'",
                              "manifest.json of a report lists the figures' ids");
        panels.push_back(found->panels.front());
    }
    return composedSheet("sheet-" + std::to_string(number), std::move(panels), columns);
}

} // namespace

Result<QStringList> renderReport(const ReportRequest& request)
{
    MLA_TRY(study, loadStudy(request.study.toStdString()));
    ReportContent content = wholeReport(study, request.study);
    const std::vector<Sheet> figures = content.sheets;
    for (const QStringList& ids : request.sheets) {
        const int number = static_cast<int>(content.sheets.size() - figures.size()) + 1;
        MLA_TRY(sheet, requestedSheet(figures, ids, number, request.sheetColumns));
        content.sheets.push_back(std::move(sheet));
    }
    MLA_TRY(writer, ReportWriter::create(std::move(content), request.options));
    while (!writer.finished())
        MLA_CHECK(writer.next());
    return writer.written();
}

void chooseHeadlessPlatform()
{
    if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM") && qEnvironmentVariableIsEmpty("DISPLAY") &&
        qEnvironmentVariableIsEmpty("WAYLAND_DISPLAY"))
        qputenv("QT_QPA_PLATFORM", "offscreen");
}

} // namespace mla::ui
