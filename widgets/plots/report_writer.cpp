// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/report_writer.h"

#include <QDir>
#include <QFileInfo>
#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "core/report/report_text.h"
#include "widgets/common/plain_text.h"

namespace mla::ui
{
namespace
{

Status checkFormats(const ReportOptions& options)
{
    if (options.formats.isEmpty() && options.tableFormats.isEmpty())
        return usageError("no format given", "figures: pdf, svg, png; tables: csv, latex, md");
    for (const QString& format : options.formats)
        if (!figureFormats().contains(format))
            return usageError("unknown figure format \"" + format.toStdString() + "\"",
                              "use pdf, svg, png");
    for (const QString& format : options.tableFormats)
        if (!findTableFormat(format.toStdString()))
            return usageError("unknown table format \"" + format.toStdString() + "\"",
                              "use csv, latex, md");
    return {};
}

} // namespace

ReportContent wholeReport(const StudyData& study, const QString& studyPath)
{
    ReportContent content;
    content.study = QFileInfo(studyPath).fileName();
    for (const Figure& figure : allFigures(study))
        content.sheets.push_back(sheetOf(figure));
    content.tables = allTables(study);
    return content;
}

Result<ReportWriter> ReportWriter::create(ReportContent content, ReportOptions options)
{
    MLA_CHECK(checkFormats(options));
    return ReportWriter(std::move(content), std::move(options));
}

ReportWriter::ReportWriter(ReportContent content, ReportOptions options)
    : m_content(std::move(content)), m_options(std::move(options))
{
    std::set<std::string> sheetStems, tableStems, twins; // a twin is named like its figure
    for (std::size_t i = 0; i < m_content.sheets.size(); ++i) {
        const Sheet& sheet = m_content.sheets[i];
        const std::string stem = uniqueStem(sheet.id, sheetStems);
        for (const QString& format : std::as_const(m_options.formats))
            m_files.push_back(
                {File::Kind::Sheet, i, text(stem) + QLatin1Char('.') + format, format});
    }
    for (const Sheet& sheet : m_content.sheets)
        for (const Figure& figure : sheet.panels)
            if (twins.insert(figure.id).second)
                planTable(figureTable(figure), figure.id, tableStems);
    for (const Table& table : m_content.tables)
        planTable(table, {}, tableStems);
}

void ReportWriter::planTable(const Table& table, const std::string& figure,
                             std::set<std::string>& stems)
{
    const std::string stem = uniqueStem(table.id, stems);
    for (const QString& format : std::as_const(m_options.tableFormats))
        m_files.push_back({File::Kind::Table, m_tables.size(),
                           text(stem + findTableFormat(format.toStdString())->extension), format});
    m_tables.push_back(table);
    m_twinOf.push_back(figure);
}

Status ReportWriter::next()
{
    const QDir directory(m_options.directory);
    if (m_written.isEmpty() && !directory.mkpath(QStringLiteral(".")))
        return computeFailed("cannot create the directory", m_options.directory.toStdString());
    const auto at = static_cast<std::size_t>(done());
    const QString path = directory.filePath(at < m_files.size() ? m_files[at].name
                                                                : QStringLiteral("manifest.json"));
    MLA_CHECK(at < m_files.size() ? write(m_files[at], path) : writeManifest(path));
    m_written << path;
    return {};
}

Status ReportWriter::write(const File& file, const QString& path) const
{
    if (file.kind == File::Kind::Sheet)
        return exportSheet(m_content.sheets[file.index], path, m_options.figure);
    return writeFileAtomically(
        filePath(path), findTableFormat(file.format.toStdString())->render(m_tables[file.index]));
}

Status ReportWriter::writeManifest(const QString& path) const
{
    using Json = nlohmann::ordered_json;
    const auto filesOf = [this](File::Kind kind, std::size_t index) {
        Json names = Json::array();
        for (const File& file : m_files)
            if (file.kind == kind && file.index == index)
                names.push_back(file.name.toStdString());
        return names;
    };
    Json figures = Json::array(), tables = Json::array();
    for (std::size_t i = 0; i < m_content.sheets.size(); ++i) {
        const Sheet& sheet = m_content.sheets[i];
        Json panels = Json::array();
        for (const Figure& figure : sheet.panels)
            panels.push_back(figure.id);
        const QSizeF size = sheetSizeMm(sheet, m_options.figure);
        figures.push_back({{"id", sheet.id},
                           {"title", sheet.title},
                           {"caption", sheet.caption},
                           {"panels", panels},
                           {"files", filesOf(File::Kind::Sheet, i)},
                           {"width_mm", size.width()},
                           {"height_mm", size.height()},
                           {"font_pt", m_options.figure.fontPt},
                           {"line_pt", m_options.figure.linePt}});
    }
    for (std::size_t i = 0; i < m_tables.size(); ++i) {
        Json entry = {{"id", m_tables[i].id},
                      {"title", m_tables[i].title},
                      {"files", filesOf(File::Kind::Table, i)}};
        if (!m_twinOf[i].empty())
            entry["figure"] = m_twinOf[i];
        tables.push_back(std::move(entry));
    }
    const Json manifest = {
        {"study", m_content.study.toStdString()}, {"figures", figures}, {"tables", tables}};
    return writeFileAtomically(filePath(path), manifest.dump(2) + "\n");
}

} // namespace mla::ui
