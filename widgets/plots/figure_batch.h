// SPDX-License-Identifier: GPL-3.0-or-later
// Writes many figures to files, one per turn of the event loop, so that the window stays alive.
#pragma once

#include <vector>

#include <QObject>
#include <QStringList>

#include "core/base/result.h"
#include "core/report/figure_data.h"
#include "widgets/plots/figure_export.h"

namespace mla::ui
{

/// Lives on the GUI thread. Files are named by the figures' ids; existing ones are replaced.
class FigureBatch : public QObject
{
    Q_OBJECT
public:
    explicit FigureBatch(QObject* parent = nullptr) : QObject(parent) {}

    void start(std::vector<Figure> figures, const QString& directory, const QStringList& formats,
               const ExportOptions& options);
    [[nodiscard]] bool busy() const { return m_busy; }

signals:
    void progressed(int done, int total); ///< files
    void finished(const QStringList& files);
    void failed(const mla::Error& error);

private:
    void writeNext();

    std::vector<Figure> m_figures;
    QString m_directory;
    QStringList m_formats, m_written;
    ExportOptions m_options;
    bool m_busy = false;
};

} // namespace mla::ui
