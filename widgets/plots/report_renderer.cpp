// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/report_renderer.h"

#include <QDir>
#include <QSaveFile>
#include <nlohmann/json.hpp>

#include "core/report/figure_data.h"
#include "core/store/study.h"

namespace mla::ui
{
namespace
{

const QStringList kFormats{QStringLiteral("pdf"), QStringLiteral("svg"), QStringLiteral("png")};

Status checkRequest(const ReportRequest& request)
{
    if (request.formats.isEmpty())
        return usageError("no figure format given", "use pdf, svg, png");
    for (const QString& format : request.formats)
        if (!kFormats.contains(format))
            return usageError("unknown figure format \"" + format.toStdString() + "\"",
                              "use pdf, svg, png");
    return {};
}

Status writeManifest(const nlohmann::ordered_json& manifest, const QString& path)
{
    const std::string text = manifest.dump(2) + "\n";
    QSaveFile file(path);
    if (!file.open(QIODevice::WriteOnly) || file.write(text.c_str()) < 0 || !file.commit())
        return computeFailed("cannot write: " + file.errorString().toStdString(),
                             path.toStdString());
    return {};
}

} // namespace

Result<QStringList> renderReport(const ReportRequest& request)
{
    MLA_CHECK(checkRequest(request));
    MLA_TRY(study, loadStudy(request.study.toStdString()));
    QDir directory(request.directory);
    if (!directory.mkpath(QStringLiteral(".")))
        return computeFailed("cannot create the directory", request.directory.toStdString());
    QStringList written;
    nlohmann::ordered_json figures = nlohmann::ordered_json::array();
    for (const Figure& figure : allFigures(study)) {
        nlohmann::ordered_json files = nlohmann::ordered_json::array();
        for (const QString& format : request.formats) {
            const QString name =
                QStringLiteral("%1.%2").arg(QString::fromStdString(figure.id), format);
            const QString path = directory.filePath(name);
            MLA_CHECK(exportFigure(figure, path, request.options));
            written << path;
            files.push_back(name.toStdString());
        }
        figures.push_back({{"id", figure.id},
                           {"title", figure.title},
                           {"caption", figure.caption},
                           {"files", files},
                           {"width_mm", request.options.widthMm},
                           {"height_mm", request.options.heightMm}});
    }
    const QString manifest = directory.filePath(QStringLiteral("manifest.json"));
    MLA_CHECK(writeManifest(
        {{"study", QFileInfo(request.study).fileName().toStdString()}, {"figures", figures}},
        manifest));
    return written << manifest;
}

void chooseHeadlessPlatform()
{
    if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM") && qEnvironmentVariableIsEmpty("DISPLAY") &&
        qEnvironmentVariableIsEmpty("WAYLAND_DISPLAY"))
        qputenv("QT_QPA_PLATFORM", "offscreen");
}

} // namespace mla::ui
