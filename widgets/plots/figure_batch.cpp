// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/figure_batch.h"

namespace mla::ui
{

void FigureBatch::start(ReportContent content, ReportOptions options)
{
    if (busy())
        return;
    Result<ReportWriter> writer = ReportWriter::create(std::move(content), std::move(options));
    if (!writer) {
        emit failed(writer.error());
        return;
    }
    m_writer.emplace(std::move(*writer));
    QMetaObject::invokeMethod(this, &FigureBatch::writeNext, Qt::QueuedConnection);
}

void FigureBatch::writeNext()
{
    if (const Status written = m_writer->next(); !written) {
        m_writer.reset();
        emit failed(written.error());
        return;
    }
    if (m_writer->finished()) {
        const QStringList files = m_writer->written();
        m_writer.reset();
        emit finished(files);
        return;
    }
    emit progressed(m_writer->done(), m_writer->total());
    QMetaObject::invokeMethod(this, &FigureBatch::writeNext, Qt::QueuedConnection);
}

} // namespace mla::ui
