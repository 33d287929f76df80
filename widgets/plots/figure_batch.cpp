// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/figure_batch.h"

#include <QDir>

#include "widgets/common/plain_text.h"

namespace mla::ui
{

void FigureBatch::start(std::vector<Figure> figures, const QString& directory,
                        const QStringList& formats, const ExportOptions& options)
{
    m_figures = std::move(figures);
    m_directory = directory;
    m_formats = formats;
    m_options = options;
    m_written.clear();
    m_busy = true;
    QMetaObject::invokeMethod(this, &FigureBatch::writeNext, Qt::QueuedConnection);
}

void FigureBatch::writeNext()
{
    const auto done = m_written.size();
    const auto total = static_cast<qsizetype>(m_figures.size()) * m_formats.size();
    if (done == total) {
        m_busy = false;
        emit finished(m_written);
        return;
    }
    const Figure& figure = m_figures[static_cast<std::size_t>(done / m_formats.size())];
    const QString path =
        QDir(m_directory)
            .filePath(text(figure.id) + QLatin1Char('.') + m_formats[done % m_formats.size()]);
    if (const Status written = exportFigure(figure, path, m_options); !written) {
        m_busy = false;
        emit failed(written.error());
        return;
    }
    m_written << path;
    emit progressed(static_cast<int>(m_written.size()), static_cast<int>(total));
    QMetaObject::invokeMethod(this, &FigureBatch::writeNext, Qt::QueuedConnection);
}

} // namespace mla::ui
