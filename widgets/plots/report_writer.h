// SPDX-License-Identifier: GPL-3.0-or-later
// A report as files: figures, the table twin of each, the study's tables, and a manifest that says
// what each file is. One file a step, so that a window stays alive meanwhile.
#pragma once

#include <set>
#include <vector>

#include <QString>
#include <QStringList>

#include "core/base/result.h"
#include "core/report/tables.h"
#include "widgets/plots/figure_export.h"

namespace mla::ui
{

struct ReportOptions {
    QString directory;        ///< created if missing; files of the same name are replaced
    QStringList formats;      ///< of figures: of "pdf", "svg", "png"
    QStringList tableFormats; ///< of tables and the figures' twins: of "csv", "latex", "md"
    ExportOptions figure;
};

struct ReportContent {
    QString study; ///< name of the study's file, for the manifest
    std::vector<Sheet> sheets;
    std::vector<Table> tables;
};
/// Every figure by itself, and every table.
[[nodiscard]] ReportContent wholeReport(const StudyData& study, const QString& studyPath);

class ReportWriter
{
public:
    /// Errors: Usage for an unknown format or a report without any.
    static Result<ReportWriter> create(ReportContent content, ReportOptions options);

    /// Writes the next file; the manifest comes last.
    Status next();
    [[nodiscard]] int done() const { return static_cast<int>(m_written.size()); }
    [[nodiscard]] int total() const { return static_cast<int>(m_files.size()) + 1; }
    [[nodiscard]] bool finished() const { return done() == total(); }
    [[nodiscard]] const QStringList& written() const { return m_written; } ///< paths

private:
    /// One file: a sheet's or a table's in one format.
    struct File {
        enum class Kind { Sheet, Table } kind;
        std::size_t index; ///< in m_content.sheets or m_tables
        QString name, format;
    };
    ReportWriter(ReportContent content, ReportOptions options);
    void planTable(const Table& table, const std::string& figure, std::set<std::string>& stems);
    Status write(const File& file, const QString& path) const;
    Status writeManifest(const QString& path) const;

    ReportContent m_content;
    ReportOptions m_options;
    std::vector<Table> m_tables;       ///< the figures' twins first
    std::vector<std::string> m_twinOf; ///< figure of m_tables[i]; empty for the study's own
    std::vector<File> m_files;
    QStringList m_written;
};

} // namespace mla::ui
