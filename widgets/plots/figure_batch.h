// SPDX-License-Identifier: GPL-3.0-or-later
// Writes a report, one file per turn of the event loop, so that the window stays alive.
#pragma once

#include <optional>

#include <QObject>
#include <QStringList>

#include "core/base/result.h"
#include "widgets/plots/report_writer.h"

namespace mla::ui
{

/// Lives on the GUI thread.
class FigureBatch : public QObject
{
    Q_OBJECT
public:
    explicit FigureBatch(QObject* parent = nullptr) : QObject(parent) {}

    /// Does nothing while another report is being written.
    void start(ReportContent content, ReportOptions options);
    [[nodiscard]] bool busy() const { return m_writer.has_value(); }

signals:
    void progressed(int done, int total); ///< files
    void finished(const QStringList& files);
    void failed(const mla::Error& error);

private:
    void writeNext();

    std::optional<ReportWriter> m_writer;
};

} // namespace mla::ui
